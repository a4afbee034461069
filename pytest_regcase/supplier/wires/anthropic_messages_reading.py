"""Anthropic messages: requests and answers into canonical messages and replies.

Knows that protocol alone. In it tool results stand inside of user messages; here each is a message of its own with
the role `tool`, in its place, so that calls and their results can be checked as on every other wire. Standard
library only, since the supplier's child process imports it.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from pytest_regcase.supplier.protocol import Call, Message, ModelRequest, Refusal, UpstreamReply
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

NAME = "anthropic-messages"
INVALID_INPUT = "INVALID_JSON"
"""Where arguments stand that are no JSON object, as the API's documentation has it: an ``input`` must be one."""


def read_request(
    body: bytes, reader: Reader[tuple[Message, ...]], *, counting: bool = False
) -> ModelRequest | Refusal:
    """Read the body of ``POST /v1/messages``; a malformed one is refused as the real API does.

    `reader` reads with `read_message`; `counting`: of ``/v1/messages/count_tokens``, without ``max_tokens``.
    """
    data = json_object(body)
    if data is None:
        return Refusal(400, "bad_json")
    if not isinstance(data.get("model"), str) or not data["model"]:
        return Refusal(400, "no_model")
    messages = data.get("messages")
    if messages is None:
        return Refusal(400, "no_messages")
    if not counting and (bad_count := _what_count_is_bad(data.get("max_tokens"))) is not None:
        return Refusal(400, "no_max_tokens", bad_count)
    bad = _what_is_bad(messages)
    if bad is not None:
        return Refusal(400, "bad_messages", bad)
    system = flat(data.get("system"))
    names = [text_or_none(each.get("name")) for each in objects(data.get("tools"))]
    return ModelRequest(
        wire=NAME,
        model=data["model"],
        streaming=data.get("stream") is True,
        messages=(
            *((Message("system", system),) if system else ()),
            *chain.from_iterable(reader.read(messages)),
        ),
        tools=tuple(each for each in names if each is not None),
        usage_asked=True,
    )


def _what_count_is_bad(value: Any) -> str | None:
    if value is None:
        return "max_tokens: Field required"
    if not isinstance(value, int) or isinstance(value, bool):
        return "max_tokens: Input should be a valid integer"
    return None if value > 0 else "max_tokens: Input should be greater than or equal to 1"


def _what_is_bad(messages: Any) -> str | None:
    if not isinstance(messages, list):
        return "messages: Input should be a valid list"
    if not messages:
        return "messages: at least one message is required"
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            return f"messages.{number}: Input should be a valid dictionary or object to extract fields from"
        role = message.get("role")
        if role == "system":
            return (
                'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter,'
                ' not "system" as an input message role.'
            )
        if role not in ("user", "assistant"):
            return f"messages.{number}.role: Input should be 'user' or 'assistant'"
        if not isinstance(message.get("content"), str | list):
            return f"messages.{number}.content: Input should be a valid string or a valid list"
    return None


def read_message(message: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return a message, or its parts in order: tool results, and what was said before, between and after them."""
    return tuple(_parts_of(message))


def _parts_of(message: Mapping[str, Any]) -> Iterator[Message]:
    content = message["content"]
    if isinstance(content, str):
        yield Message(message["role"], content)
        return
    if message["role"] == "assistant":
        yield Message("assistant", _text_of(objects(content)), _calls_in(objects(content)))
        return
    said: list[dict[str, Any]] = []
    results = 0
    for block in objects(content):
        if block.get("type") != "tool_result":
            said.append(block)
            continue
        if said:
            yield Message(message["role"], _text_of(said))
            said = []
        results += 1
        yield Message("tool", flat(block.get("content")), tool_call_id=text_or_none(block.get("tool_use_id")))
    if said or not results:
        yield Message(message["role"], _text_of(said))


def _text_of(blocks: list[dict[str, Any]]) -> str:
    return flat([each for each in blocks if each.get("type") == "text"])


def _calls_in(blocks: list[dict[str, Any]]) -> tuple[Call, ...]:
    return tuple(
        Call(text_or_none(each.get("id")), str(each.get("name", "")), arguments_of(each.get("input")))
        for each in blocks
        if each.get("type") == "tool_use"
    )


def arguments_of(given: Any) -> str:
    """Return an ``input`` as the JSON text of canonical calls; what `input_of` had to wrap comes out again."""
    if isinstance(given, dict) and set(given) == {INVALID_INPUT} and isinstance(given[INVALID_INPUT], str):
        return str(given[INVALID_INPUT])
    return json.dumps({} if given is None else given, ensure_ascii=False)


def input_of(arguments: str) -> dict[str, Any]:
    """Return canonical arguments as the JSON object that an ``input`` must be."""
    found = json_object(arguments or "{}")
    try:
        json.dumps(found, allow_nan=False)
    except (ValueError, RecursionError):
        found = None
    return {INVALID_INPUT: arguments} if found is None else found


def read_message_object(data: Mapping[str, Any]) -> UpstreamReply:
    """Read a message object; an empty ``content`` is an answer on this wire: the model had nothing to say."""
    blocks = objects(data.get("content"))
    said = [each for each in blocks if each.get("type") == "text"]
    return UpstreamReply(
        id=text_or_none(data.get("id")) if data.get("type") == "message" else None,
        text=_text_of(said) if said else None,
        tool_calls=_calls_in(blocks),
        finish=text_or_none(data.get("stop_reason")),
        has_choice=isinstance(data.get("content"), list),
        error=error_word(data),
    )


def read_stream(body: bytes) -> UpstreamReply:
    """Read the events of a stream, also of one that broke off."""
    begun: dict[str, Any] | None = None
    finish = error = None
    blocks: dict[int, dict[str, Any]] = {}
    for data in stream_events(body):
        kind, index = data.get("type"), data.get("index")
        error = error or error_word(data)
        if kind == "message_start":
            begun = member(data, "message")
        elif kind == "message_delta":
            finish = text_or_none(member(data, "delta").get("stop_reason")) or finish
        elif kind == "content_block_start" and isinstance(index, int):
            blocks[index] = member(data, "content_block") | {"partial": ""}
        elif kind == "content_block_delta" and index in blocks:
            delta = member(data, "delta")
            blocks[index]["partial"] += str(delta.get("text") or delta.get("partial_json") or "")
    said = [each for _, each in sorted(blocks.items()) if each.get("type") == "text"]
    used = [each for _, each in sorted(blocks.items()) if each.get("type") == "tool_use"]
    return UpstreamReply(
        id=text_or_none(begun.get("id")) if begun else None,
        text="".join(str(each.get("text", "")) + each["partial"] for each in said) if said else None,
        tool_calls=tuple(_streamed_call(each) for each in used),
        finish=finish,
        has_choice=begun is not None,
        error=error,
    )


def _streamed_call(block: Mapping[str, Any]) -> Call:
    partial = str(block["partial"])
    whole = json_object(partial) if partial else {}
    # A call that broke off keeps what came of its arguments.
    arguments = partial if whole is None else arguments_of(whole)
    return Call(text_or_none(block.get("id")), str(block.get("name", "")), arguments)
