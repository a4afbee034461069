"""OpenAI responses, streaming and not, and the count of input tokens.

Knows that protocol alone; requests and answers are read in `openai_responses_reading`. A reply's text is one
message item, each call a ``function_call`` item whose ``call_id`` is the recorded id. Standard library only, since
the supplier's child process imports it.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from pytest_regcase.supplier.protocol import (
    Call,
    HttpRequest,
    ModelRequest,
    PlainAnswer,
    Refusal,
    Reply,
    UpstreamReply,
)
from pytest_regcase.supplier.wires.openai_errors import ERRORS, ErrorText, error_object
from pytest_regcase.supplier.wires.openai_responses_reading import (
    NAME,
    input_characters,
    item_ids,
    read_item,
    read_request,
    read_response,
    read_stream,
)
from pytest_regcase.supplier.wires.reading import Reader, json_object
from pytest_regcase.supplier.wires.rendering import as_json, event, pieces, rough_tokens, written_tokens

_RESPONSES = "/v1/responses"
_INPUT_TOKENS = f"{_RESPONSES}/input_tokens"

_INCOMPLETE = {
    "length": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "model_length": "max_output_tokens",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
"""Reasons for which a reply is incomplete; any other is complete, with calls or without."""

_OWN = "invalid_request_error"
_ERRORS = ERRORS | {
    "no_model": ErrorText(_OWN, "missing_required_parameter", "model", "Missing required parameter: 'model'."),
    "no_messages": ErrorText(_OWN, "missing_required_parameter", "input", "Missing required parameter: 'input'."),
    "bad_messages": ErrorText(
        _OWN, "invalid_type", "input", "Invalid type for 'input': expected a string or an array of objects."
    ),
    "previous_not_found": ErrorText(
        _OWN, "previous_response_not_found", "previous_response_id", "Previous response not found."
    ),
    "item_not_found": ErrorText(_OWN, None, "input", "Item not found."),
    "context_too_long": ErrorText(
        _OWN,
        "context_length_exceeded",
        "input",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    "internal_error": ERRORS["internal_error"]._replace(code="server_error"),
}
_ERROR_SEQUENCE_NUMBER = 2
"""Of an error event: behind ``response.created`` and ``response.in_progress``, where the API is seen to fail."""


class OpenAIResponses:
    """The `openai-responses` wire."""

    name: ClassVar[str] = NAME
    paths: ClassVar[tuple[str, ...]] = (_RESPONSES, _INPUT_TOKENS)
    marked_by: ClassVar[tuple[str, ...]] = ()
    reply_id_prefix: ClassVar[str] = "resp_"
    request_id_header: ClassVar[str] = "x-request-id"
    clients_add_version: ClassVar[bool] = False

    def __init__(self) -> None:
        self._reader = Reader(read_item)

    def parse(self, request: HttpRequest) -> ModelRequest | Refusal | PlainAnswer:
        """Read a request; a malformed one is refused as the real API does."""
        if request.method != "POST":
            return Refusal(
                405,
                "bad_method",
                f"Not allowed to {request.method} on {request.path}."
                " (HINT: Perhaps you meant to use a different HTTP method?)",
            )
        if request.path == _RESPONSES:
            return read_request(request.body, self._reader)
        characters = input_characters(request.body)
        if isinstance(characters, Refusal):
            return characters
        tokens = {"object": "response.input_tokens", "input_tokens": rough_tokens(characters)}
        return PlainAnswer(as_json(tokens))

    def render(self, reply: Reply, streaming: bool) -> Iterator[bytes]:
        """Yield one response object, or the typed events from ``response.created`` to ``response.completed``."""
        if not streaming:
            yield as_json(_response(reply, _status(reply), _output(reply)))
            return
        for number, data in enumerate((*_opening(reply), *_contents(reply), _end(reply))):
            yield _numbered(data, number)

    def render_unfinished(self, reply: Reply) -> Iterator[bytes]:
        """Yield the events up to the last that brings something of the answer: never one that says it is done."""
        begun = [*_opening(reply), *_contents(reply)]
        last = max(
            n for n, each in enumerate(begun) if each["type"].endswith((".delta", ".added", ".in_progress"))
        )
        yield from (_numbered(data, number) for number, data in enumerate(begun[: last + 1]))

    def render_error(
        self,
        status: int,
        slug: str,
        message: str | None = None,
        *,
        request_id: str | None = None,  # noqa: ARG002
    ) -> bytes:
        """Return the error object; an unknown slug is its own code. Only the header holds the request's id."""
        return as_json({"error": error_object(status, slug, message, _ERRORS)})

    def render_error_event(self, status: int, slug: str, message: str | None = None) -> bytes:
        """Return the ``error`` event, with the error nested in it.

        The reference shows it flat; public logs of the API show it nested, and only so do the SDKs raise it.
        """
        error = error_object(status, slug, message, _ERRORS)
        return _numbered({"type": "error", "error": error}, _ERROR_SEQUENCE_NUMBER)

    def read_answer(self, body: bytes, streaming: bool) -> UpstreamReply:
        """Read text, calls, id and why it ended, also of an answer that broke off."""
        return read_stream(body) if streaming else read_response(json_object(body) or {})

    def key_headers(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return the bearer header."""
        return (("authorization", f"Bearer {key}"),)


def _numbered(data: dict[str, Any], number: int) -> bytes:
    return event(data | {"sequence_number": number}, data["type"])


def _opening(reply: Reply) -> tuple[dict[str, Any], ...]:
    begun = _response(reply, "in_progress", [])
    return {"type": "response.created", "response": begun}, {"type": "response.in_progress", "response": begun}


def _contents(reply: Reply) -> Iterator[dict[str, Any]]:
    for index, item in enumerate(_output(reply)):
        place = {"output_index": index, "item_id": item["id"]}
        empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
        begun = item | {"status": "in_progress"} | empty
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        if item["type"] == "message":
            yield from _text_events(place | {"content_index": 0}, item["content"][0])
        else:
            kind = "response.function_call_arguments"
            for piece in pieces(item["arguments"]):
                yield {"type": f"{kind}.delta", **place, "delta": piece}
            yield {"type": f"{kind}.done", **place, "name": item["name"], "arguments": item["arguments"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _text_events(place: dict[str, Any], part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "response.content_part.added", **place, "part": part | {"text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}


def _end(reply: Reply) -> dict[str, Any]:
    status = _status(reply)
    return {"type": f"response.{status}", "response": _response(reply, status, _output(reply))}


def _status(reply: Reply) -> str:
    return "incomplete" if reply.finish in _INCOMPLETE else "completed"


def _output(reply: Reply) -> list[dict[str, Any]]:
    message_id, call_stem = item_ids(reply.id)
    items = [_call(call, f"{call_stem}{number}") for number, call in enumerate(reply.tool_calls)]
    if reply.text is None and reply.tool_calls:
        return items
    text = {"type": "output_text", "text": reply.text or "", "annotations": [], "logprobs": []}
    message = {"id": message_id, "type": "message", "status": _status(reply), "role": "assistant"}
    return [message | {"content": [text]}, *items]


def _call(call: Call, item_id: str) -> dict[str, Any]:
    return {
        "id": item_id,
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def _response(reply: Reply, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    incomplete = {"reason": _INCOMPLETE[reply.finish]} if status == "incomplete" and reply.finish else None
    return {
        "id": reply.id,
        "object": "response",
        "created_at": reply.created,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": incomplete,
        "instructions": None,
        "max_output_tokens": None,
        "metadata": {},
        "model": reply.model,
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None if status == "in_progress" else _usage(reply),
        "user": None,
    }


def _usage(reply: Reply) -> dict[str, Any]:
    tokens = written_tokens(reply)
    return {
        "input_tokens": reply.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.prompt_tokens + tokens,
    }
