"""OpenAI chat completions, streaming and not, and the list of models.

Knows that protocol alone. Error texts and codes are those that the public API is reported to send; standard
library only, since the supplier's child process imports it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pytest_regcase.supplier.protocol import (
    Call,
    HttpRequest,
    Message,
    ModelRequest,
    PlainAnswer,
    Refusal,
    Reply,
    UpstreamReply,
)
from pytest_regcase.supplier.wires.openai_errors import error_object
from pytest_regcase.supplier.wires.reading import (
    Reader,
    error_word,
    flat,
    json_object,
    member,
    objects,
    stream_events,
    text_or_none,
)
from pytest_regcase.supplier.wires.rendering import as_json, event, pieces, written_tokens

_COMPLETIONS = "/v1/chat/completions"
_MODELS = "/v1/models"

_FINISH = {
    # What other harnesses and APIs write for the same thing.
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
} | {each: each for each in ("stop", "length", "tool_calls", "content_filter")}


class OpenAIChat:
    """The `openai-chat` wire."""

    name: ClassVar[str] = "openai-chat"
    paths: ClassVar[tuple[str, ...]] = (_COMPLETIONS, _MODELS, f"{_MODELS}/*")
    marked_by: ClassVar[tuple[str, ...]] = ()
    reply_id_prefix: ClassVar[str] = "chatcmpl-"
    request_id_header: ClassVar[str] = "x-request-id"
    clients_add_version: ClassVar[bool] = False

    def __init__(self) -> None:
        self._reader = Reader(_read_message)

    def parse(self, request: HttpRequest) -> ModelRequest | Refusal | PlainAnswer:
        """Read a request; a malformed one is refused as the real API does."""
        wanted = "POST" if request.path == _COMPLETIONS else "GET"
        if request.method != wanted:
            return Refusal(
                405,
                "bad_method",
                f"Not allowed to {request.method} on {request.path}."
                " (HINT: Perhaps you meant to use a different HTTP method?)",
            )
        if request.path == _COMPLETIONS:
            return _parse_completion(request.body, self._reader)
        if request.path == _MODELS:
            return PlainAnswer(as_json({"object": "list", "data": [_model("regcase")]}))
        return PlainAnswer(as_json(_model(request.path.rpartition("/")[2])))

    def render(self, reply: Reply, streaming: bool) -> Iterator[bytes]:
        """Yield one JSON document, or the events: role, content, calls, finish, usage where asked for, end."""
        if streaming:
            yield from self.render_unfinished(reply)
            yield event(_chunk(reply, {}, _finish(reply)))
            if reply.usage_asked:
                # Only where asked for: it has no choice, and a loop that takes the first of each chunk dies of it.
                usage = {"choices": [], "usage": _usage(reply)}
                yield event(_envelope(reply, "chat.completion.chunk") | usage)
            yield b"data: [DONE]\n\n"
            return
        message: dict[str, Any] = {"role": "assistant", "content": _content(reply), "refusal": None}
        if reply.tool_calls:
            message["tool_calls"] = [_call(each) for each in reply.tool_calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
        yield as_json(_envelope(reply, "chat.completion") | {"choices": [choice], "usage": _usage(reply)})

    def render_unfinished(self, reply: Reply) -> Iterator[bytes]:
        """Yield the events of role, content and calls."""
        content = _content(reply)
        yield event(
            _chunk(reply, {"role": "assistant", "content": None if content is None else "", "refusal": None})
        )
        for piece in pieces(content or ""):
            yield event(_chunk(reply, {"content": piece}))
        for index, call in enumerate(reply.tool_calls):
            opened = _call(call) | {"index": index, "function": {"name": call.name, "arguments": ""}}
            yield event(_chunk(reply, {"tool_calls": [opened]}))
            for piece in pieces(call.arguments):
                delta = {"index": index, "function": {"arguments": piece}}
                yield event(_chunk(reply, {"tool_calls": [delta]}))

    def render_error(
        self,
        status: int,
        slug: str,
        message: str | None = None,
        *,
        request_id: str | None = None,  # noqa: ARG002
    ) -> bytes:
        """Return the error object; an unknown slug is its own code. Only the header holds the request's id."""
        return as_json({"error": error_object(status, slug, message)})

    def render_error_event(self, status: int, slug: str, message: str | None = None) -> bytes:
        """Return a chunk that is the error object: what servers send that fail after their 200."""
        return event({"error": error_object(status, slug, message)})

    def read_answer(self, body: bytes, streaming: bool) -> UpstreamReply:
        """Read text, calls, id and finish reason of an answer, also of one that broke off."""
        if streaming:
            return _read_stream(body)
        data = json_object(body) or {}
        choice = _first(data.get("choices"))
        message = choice.get("message") if isinstance(choice.get("message"), dict) else None
        calls = _read_calls(message.get("tool_calls")) if message else ()
        return UpstreamReply(
            id=text_or_none(data.get("id")),
            text=flat(message.get("content")) if message and message.get("content") is not None else None,
            tool_calls=calls,
            finish=text_or_none(choice.get("finish_reason")),
            has_choice=message is not None,
            error=error_word(data),
        )

    def key_headers(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return the bearer header."""
        return (("authorization", f"Bearer {key}"),)


def _parse_completion(body: bytes, reader: Reader[Message]) -> ModelRequest | Refusal:
    data = json_object(body)
    if data is None:
        return Refusal(400, "bad_json")
    if not isinstance(data.get("model"), str) or not data["model"]:
        return Refusal(400, "no_model")
    messages = data.get("messages")
    if messages is None:
        return Refusal(400, "no_messages")
    if not isinstance(messages, list) or {*map(type, messages)} != {dict}:
        return Refusal(
            400, "bad_messages", "Invalid 'messages': expected a non-empty array of objects, each with a role."
        )
    functions = [each.get("function") for each in objects(data.get("tools"))]
    names = [text_or_none(each.get("name")) for each in functions if isinstance(each, dict)]
    return ModelRequest(
        wire=OpenAIChat.name,
        model=data["model"],
        streaming=data.get("stream") is True,
        messages=reader.read(messages),
        tools=tuple(each for each in names if each is not None),
        usage_asked=member(data, "stream_options").get("include_usage") is True,
    )


def _read_message(message: Mapping[str, Any]) -> Message:
    return Message(
        str(message.get("role", "")),
        flat(message.get("content")),
        _read_calls(message.get("tool_calls")),
        text_or_none(message.get("tool_call_id")),
    )


def _read_calls(calls: Any) -> tuple[Call, ...]:
    if not calls:
        return ()
    # Lists, not generators, here and below: this runs for every message of every request.
    return tuple(
        [
            Call(text_or_none(each.get("id")), str(function.get("name", "")), str(function.get("arguments", "")))
            for each in objects(calls)
            if isinstance(function := each.get("function"), dict)
        ]
    )


def _chunk(reply: Reply, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    # Where usage was asked for, every chunk before the last has it as null.
    nothing_yet = {"usage": None} if reply.usage_asked else {}
    return _envelope(reply, "chat.completion.chunk") | {"choices": [choice]} | nothing_yet


def _envelope(reply: Reply, kind: str) -> dict[str, Any]:
    return {
        "id": reply.id,
        "object": kind,
        "created": reply.created,
        "model": reply.model,
        "system_fingerprint": None,
    }


def _content(reply: Reply) -> str | None:
    return "" if reply.text is None and not reply.tool_calls else reply.text


def _finish(reply: Reply) -> str:
    return _FINISH.get(reply.finish or "", "tool_calls" if reply.tool_calls else "stop")


def _call(call: Call) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _usage(reply: Reply) -> dict[str, int]:
    tokens = written_tokens(reply)
    return {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": tokens,
        "total_tokens": reply.prompt_tokens + tokens,
    }


def _read_stream(body: bytes) -> UpstreamReply:
    texts: list[str] = []
    calls: dict[int, dict[str, str]] = {}
    found: dict[str, str | None] = {"id": None, "finish": None, "error": None}
    has_choice = has_text = False
    for data in stream_events(body):
        found["id"] = found["id"] or text_or_none(data.get("id"))
        found["error"] = found["error"] or error_word(data)
        choice = _first(data.get("choices"))
        delta = choice.get("delta")
        if isinstance(delta, dict):
            has_choice = True
            has_text = has_text or isinstance(delta.get("content"), str)
            texts.append(flat(delta.get("content")))
            _merge_calls(calls, delta.get("tool_calls"))
        found["finish"] = text_or_none(choice.get("finish_reason")) or found["finish"]
    return UpstreamReply(
        id=found["id"],
        text="".join(texts) if has_text else None,
        tool_calls=tuple(
            Call(each.get("id"), each["name"], each["arguments"]) for _, each in sorted(calls.items())
        ),
        finish=found["finish"],
        has_choice=has_choice,
        error=found["error"],
    )


def _merge_calls(calls: dict[int, dict[str, str]], deltas: Any) -> None:
    for delta in objects(deltas):
        if not isinstance(delta.get("index"), int):
            continue
        call = calls.setdefault(delta["index"], {"name": "", "arguments": ""})
        if isinstance(delta.get("id"), str):
            call["id"] = delta["id"]
        function = delta.get("function")
        for key in ("name", "arguments"):
            value = function.get(key) if isinstance(function, dict) else None
            call[key] += value if isinstance(value, str) else ""


def _first(choices: Any) -> dict[str, Any]:
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "pytest-regcase"}
