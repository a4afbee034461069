"""Anthropic messages, streaming and not, the count of tokens, and the list of models.

Knows that protocol alone; requests and answers are read in `anthropic_messages_reading`. Standard library only,
since the supplier's child process imports it.
"""

import json
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
from pytest_regcase.supplier.wires.anthropic_errors import error_body, error_in_stream
from pytest_regcase.supplier.wires.anthropic_messages_reading import (
    NAME,
    input_of,
    read_message,
    read_message_object,
    read_request,
    read_stream,
)
from pytest_regcase.supplier.wires.reading import Reader, json_object
from pytest_regcase.supplier.wires.rendering import as_json, event, pieces, rough_tokens, written_tokens

_MESSAGES = "/v1/messages"
_COUNT_TOKENS = f"{_MESSAGES}/count_tokens"
_MODELS = "/v1/models"

_STOP_REASONS = {
    # What other harnesses and APIs write for the same thing.
    "stop": "end_turn",
    "length": "max_tokens",
    "model_length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
} | {each: each for each in ("end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal")}


class AnthropicMessages:
    """The `anthropic-messages` wire."""

    name: ClassVar[str] = NAME
    paths: ClassVar[tuple[str, ...]] = (_MESSAGES, _COUNT_TOKENS, _MODELS, f"{_MODELS}/*")
    marked_by: ClassVar[tuple[str, ...]] = ("anthropic-version", "x-api-key")
    reply_id_prefix: ClassVar[str] = "msg_"
    request_id_header: ClassVar[str] = "request-id"
    clients_add_version: ClassVar[bool] = True

    def __init__(self) -> None:
        self._reader = Reader(read_message)

    def parse(self, request: HttpRequest) -> ModelRequest | Refusal | PlainAnswer:
        """Read a request; a malformed one is refused as the real API does.

        Its headers are not asked for: a gateway in the supplier's place needs neither key nor version.
        """
        if request.method != ("POST" if request.path.startswith(_MESSAGES) else "GET"):
            return Refusal(405, "bad_method")
        if request.path == _MESSAGES:
            return read_request(request.body, self._reader)
        if request.path == _COUNT_TOKENS:
            read = read_request(request.body, Reader(read_message), counting=True)
            if isinstance(read, Refusal):
                return read
            characters = sum(len(each.text) for each in read.messages)
            return PlainAnswer(as_json({"input_tokens": rough_tokens(characters)}))
        if request.path == _MODELS:
            listed = {"data": [_model("regcase")], "has_more": False, "first_id": "regcase", "last_id": "regcase"}
            return PlainAnswer(as_json(listed))
        return PlainAnswer(as_json(_model(request.path.rpartition("/")[2])))

    def render(self, reply: Reply, streaming: bool) -> Iterator[bytes]:
        """Yield one message object, or the events from ``message_start`` to ``message_stop``."""
        if not streaming:
            ended = {"stop_reason": _stop_reason(reply), "stop_sequence": None, "usage": _usage(reply)}
            yield as_json(_message(reply) | {"content": list(_content(reply))} | ended)
            return
        yield from (_typed(each) for each in _begun(reply))
        delta = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
        yield _typed(
            {"type": "message_delta", "delta": delta, "usage": {"output_tokens": _usage(reply)["output_tokens"]}}
        )
        yield _typed({"type": "message_stop"})

    def render_unfinished(self, reply: Reply) -> Iterator[bytes]:
        """Yield the events up to the last that brings something of the answer: never one that says it is done."""
        begun = list(_begun(reply))
        last = max(n for n, each in enumerate(begun) if each["type"] != "content_block_stop")
        yield from (_typed(each) for each in begun[: last + 1])

    def render_error(
        self, status: int, slug: str, message: str | None = None, *, request_id: str | None = None
    ) -> bytes:
        """Return the error body; its type follows from the status, an unknown slug is its own text."""
        return as_json(error_body(status, slug, message, request_id=request_id))

    def render_error_event(self, status: int, slug: str, message: str | None = None) -> bytes:
        """Return the ``error`` event."""
        return _typed(error_in_stream(status, slug, message))

    def read_answer(self, body: bytes, streaming: bool) -> UpstreamReply:
        """Read text, calls, id and stop reason of an answer, also of one that broke off."""
        return read_stream(body) if streaming else read_message_object(json_object(body) or {})

    def key_headers(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return the key's header."""
        return (("x-api-key", key),)


def _typed(data: dict[str, Any]) -> bytes:
    return event(data, data["type"])


def _begun(reply: Reply) -> Iterator[dict[str, Any]]:
    """Yield the events up to the end of the last content block."""
    nothing_yet: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
    usage = _usage(reply) | {"output_tokens": 1}
    yield {"type": "message_start", "message": _message(reply) | nothing_yet | {"usage": usage}}
    for index, block in enumerate(_content(reply)):
        place = {"index": index}
        empty: dict[str, Any] = {"text": ""} if block["type"] == "text" else {"input": {}}
        yield {"type": "content_block_start", **place, "content_block": block | empty}
        if index == 0:
            yield {"type": "ping"}
        if block["type"] == "text":
            deltas = [{"type": "text_delta", "text": each} for each in pieces(block["text"])]
        else:
            # An empty one first, as the API sends it.
            written = json.dumps(block["input"]) if block["input"] else ""
            deltas = [{"type": "input_json_delta", "partial_json": each} for each in ("", *pieces(written))]
        yield from ({"type": "content_block_delta", **place, "delta": each} for each in deltas)
        yield {"type": "content_block_stop", **place}


def _message(reply: Reply) -> dict[str, Any]:
    return {"id": reply.id, "type": "message", "role": "assistant", "model": reply.model}


def _content(reply: Reply) -> Iterator[dict[str, Any]]:
    """Yield the content blocks; an empty reply has none, as the API answers where the model said nothing."""
    if reply.text:
        yield {"type": "text", "text": reply.text}
    yield from (_tool_use(each) for each in reply.tool_calls)


def _tool_use(call: Call) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": input_of(call.arguments)}


def _stop_reason(reply: Reply) -> str:
    """Return why it stopped; with calls never ``end_turn``: this API's clients run them for ``tool_use`` only."""
    recorded = _STOP_REASONS.get(reply.finish or "", "end_turn")
    return "tool_use" if reply.tool_calls and recorded == "end_turn" else recorded


def _usage(reply: Reply) -> dict[str, Any]:
    return {
        "input_tokens": reply.prompt_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": max(1, written_tokens(reply)),
        "service_tier": "standard",
    }


def _model(name: str) -> dict[str, Any]:
    return {"type": "model", "id": name, "display_name": name, "created_at": "2025-01-01T00:00:00Z"}
