"""OpenAI chat completions, streaming and not, and the list of models.

Knows that protocol alone. Error texts and codes are those that the public API is reported to send; standard
library only, since the supplier's child process imports it.
"""

import json
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

_COMPLETIONS = "/v1/chat/completions"
_MODELS = "/v1/models"
_PIECE_CHARACTERS = 24

_FINISH = {
    # What other harnesses and APIs write for the same thing.
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "tool_use": "tool_calls",
} | {each: each for each in ("stop", "length", "tool_calls", "content_filter")}

_ERRORS: dict[str, tuple[str, str | int | None, str | None, str]] = {
    # slug: type, code, param, message
    "bad_json": (
        "invalid_request_error",
        None,
        None,
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP"
        " library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)",
    ),
    "no_model": ("invalid_request_error", None, None, "you must provide a model parameter"),
    "no_messages": (
        "invalid_request_error",
        "missing_required_parameter",
        "messages",
        "Missing required parameter: 'messages'.",
    ),
    "bad_messages": ("invalid_request_error", "invalid_type", "messages", "Invalid type for 'messages'."),
    "unknown_url": ("invalid_request_error", None, None, "Invalid URL."),
    "bad_method": ("invalid_request_error", "method_not_supported", None, "Not allowed."),
    "bad_request": ("invalid_request_error", None, None, "The request is no valid HTTP."),
    "too_large": ("invalid_request_error", None, None, "The request is too large."),
    "key_rejected": (
        "invalid_request_error",
        "invalid_api_key",
        None,
        "Incorrect API key provided: sk-*****************************case."
        " You can find your API key at https://platform.openai.com/account/api-keys.",
    ),
    "server_out_of_memory": ("internal_server_error", None, None, "CUDA out of memory."),
    "upstream_failed": ("server_error", "upstream_failed", None, "The upstream failed."),
}


class OpenAIChat:
    """The `openai-chat` wire."""

    name: ClassVar[str] = "openai-chat"
    paths: ClassVar[tuple[str, ...]] = (_COMPLETIONS, _MODELS, f"{_MODELS}/*")

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
            return _parse_completion(request.body)
        if request.path == _MODELS:
            return PlainAnswer(_json({"object": "list", "data": [_model("regcase")]}))
        return PlainAnswer(_json(_model(request.path.rpartition("/")[2])))

    def render(self, reply: Reply, streaming: bool) -> Iterator[bytes]:
        """Yield one JSON document, or the events: role, content, calls, finish, usage where asked for, end."""
        if streaming:
            yield from (b"data: " + _json(each) + b"\n\n" for each in _chunks(reply))
            yield b"data: [DONE]\n\n"
            return
        message: dict[str, Any] = {"role": "assistant", "content": _content(reply), "refusal": None}
        if reply.tool_calls:
            message["tool_calls"] = [_call(each) for each in reply.tool_calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
        yield _json(_envelope(reply, "chat.completion") | {"choices": [choice], "usage": _usage(reply)})

    def render_error(self, status: int, slug: str, message: str | None = None) -> bytes:
        """Return the error object; an unknown slug is its own code."""
        kind, code, param, text = _ERRORS.get(
            slug, ("server_error" if status >= 500 else "invalid_request_error", slug, None, slug)
        )
        error = {"message": message or text, "type": kind, "param": param, "code": code}
        return _json({"error": error})

    def read_answer(self, body: bytes, streaming: bool) -> UpstreamReply:
        """Read text, calls, id and finish reason of an answer, also of one that broke off."""
        if streaming:
            return _read_stream(body)
        try:
            data = json.loads(body)
        except ValueError:
            return UpstreamReply()
        data = data if isinstance(data, dict) else {}
        choice = _first(data.get("choices"))
        message = choice.get("message") if isinstance(choice.get("message"), dict) else None
        calls = _read_calls(message.get("tool_calls")) if message else ()
        return UpstreamReply(
            id=_text_or_none(data.get("id")),
            text=_flat(message.get("content")) if message and message.get("content") is not None else None,
            tool_calls=calls,
            finish=_text_or_none(choice.get("finish_reason")),
            has_choice=message is not None,
            error=_error_word(data),
        )

    def key_headers(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return the bearer header."""
        return (("authorization", f"Bearer {key}"),)


def _parse_completion(body: bytes) -> ModelRequest | Refusal:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return Refusal(400, "bad_json")
    if not isinstance(data, dict):
        return Refusal(400, "bad_json")
    if not isinstance(data.get("model"), str) or not data["model"]:
        return Refusal(400, "no_model")
    messages = data.get("messages")
    if messages is None:
        return Refusal(400, "no_messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        return Refusal(
            400, "bad_messages", "Invalid 'messages': expected a non-empty array of objects, each with a role."
        )
    tools = data.get("tools")
    options = data.get("stream_options")
    return ModelRequest(
        wire=OpenAIChat.name,
        model=data["model"],
        streaming=data.get("stream") is True,
        messages=tuple(_read_message(each) for each in messages),
        tools=tuple(_tool_name(each) for each in tools if _tool_name(each)) if isinstance(tools, list) else (),
        usage_asked=isinstance(options, dict) and options.get("include_usage") is True,
    )


def _read_message(message: Mapping[str, Any]) -> Message:
    return Message(
        role=str(message.get("role", "")),
        text=_flat(message.get("content")),
        tool_calls=_read_calls(message.get("tool_calls")),
        tool_call_id=_text_or_none(message.get("tool_call_id")),
    )


def _read_calls(calls: Any) -> tuple[Call, ...]:
    if not isinstance(calls, list):
        return ()
    functions = [(each, each.get("function")) for each in calls if isinstance(each, dict)]
    return tuple(
        Call(_text_or_none(each.get("id")), str(function.get("name", "")), str(function.get("arguments", "")))
        for each, function in functions
        if isinstance(function, dict)
    )


def _tool_name(tool: Any) -> str:
    function = tool.get("function") if isinstance(tool, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else ""


def _flat(content: Any) -> str:
    """Return the text of a content that is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [each.get("text") if isinstance(each, dict) else each for each in content]
    return "".join(each for each in texts if isinstance(each, str))


def _chunks(reply: Reply) -> Iterator[dict[str, Any]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        # Where usage was asked for, every chunk before the last has it as null.
        nothing_yet = {"usage": None} if reply.usage_asked else {}
        return _envelope(reply, "chat.completion.chunk") | {"choices": [choice]} | nothing_yet

    yield chunk({"role": "assistant", "content": None if _content(reply) is None else "", "refusal": None})
    for piece in _pieces(_content(reply) or ""):
        yield chunk({"content": piece})
    for index, call in enumerate(reply.tool_calls):
        opened = _call(call) | {"index": index}
        opened["function"] = {"name": call.name, "arguments": ""}
        yield chunk({"tool_calls": [opened]})
        for piece in _pieces(call.arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(reply))
    if reply.usage_asked:
        # Only where asked for: it has no choice, and a loop that takes the first of each chunk dies of it.
        yield _envelope(reply, "chat.completion.chunk") | {"choices": [], "usage": _usage(reply)}


def _pieces(text: str) -> Iterator[str]:
    yield from (text[start : start + _PIECE_CHARACTERS] for start in range(0, len(text), _PIECE_CHARACTERS))


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
    written = sum(len(each.name) + len(each.arguments) for each in reply.tool_calls) + len(reply.text or "")
    tokens = written // 4 + (written > 0)
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
    for line in body.decode("utf-8", "replace").splitlines():
        if not line.startswith("data:") or line.removeprefix("data:").strip() == "[DONE]":
            continue
        try:
            data = json.loads(line.removeprefix("data:"))
        except ValueError:
            continue
        if not isinstance(data, dict):
            continue
        found["id"] = found["id"] or _text_or_none(data.get("id"))
        found["error"] = found["error"] or _error_word(data)
        choice = _first(data.get("choices"))
        delta = choice.get("delta")
        if isinstance(delta, dict):
            has_choice = True
            has_text = has_text or isinstance(delta.get("content"), str)
            texts.append(_flat(delta.get("content")))
            _merge_calls(calls, delta.get("tool_calls"))
        found["finish"] = _text_or_none(choice.get("finish_reason")) or found["finish"]
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
    for delta in deltas if isinstance(deltas, list) else ():
        if not isinstance(delta, dict) or not isinstance(delta.get("index"), int):
            continue
        call = calls.setdefault(delta["index"], {"name": "", "arguments": ""})
        if isinstance(delta.get("id"), str):
            call["id"] = delta["id"]
        function = delta.get("function")
        for key in ("name", "arguments"):
            value = function.get(key) if isinstance(function, dict) else None
            call[key] += value if isinstance(value, str) else ""


def _error_word(data: Mapping[str, Any]) -> str | None:
    """Return the code or type of an error, never its message: it may quote a key."""
    error = data.get("error")
    if error is None or error == {}:
        return None
    words = [error.get("code"), error.get("type")] if isinstance(error, dict) else []
    return next((str(each)[:80] for each in words if each), "no code")


def _first(choices: Any) -> dict[str, Any]:
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "pytest-regcase"}


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
