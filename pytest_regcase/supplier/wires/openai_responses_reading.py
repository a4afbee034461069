"""OpenAI responses: requests and answers into canonical messages and replies.

Knows that protocol alone. In it an assistant's turn is several items (a message, function calls, reasoning), which
are one canonical message here, so that calls and their results can be checked as on every other wire. Standard
library only, since the supplier's child process imports it.
"""

from collections.abc import Iterable, Iterator, Mapping
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

NAME = "openai-responses"
_CALL, _OUTPUT = "_call", "_call_output"
"""How the types of items end that call a tool of the client's, and that answer such a call."""
_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}
_ENDS = ("response.completed", "response.incomplete", "response.failed")


def read_request(body: bytes, reader: Reader[Message | None]) -> ModelRequest | Refusal:
    """Read the body of ``POST /v1/responses``; a malformed one is refused as the real API does.

    `reader` reads with `read_item`.
    """
    data = json_object(body)
    if data is None:
        return Refusal(400, "bad_json")
    if not isinstance(data.get("model"), str) or not data["model"]:
        return Refusal(400, "no_model")
    given = data.get("input")
    previous = text_or_none(data.get("previous_response_id"))
    if given is None and previous is None:
        return Refusal(400, "no_messages")
    if given is not None and not isinstance(given, str) and len(objects(given)) != len(_array(given)):
        return Refusal(400, "bad_messages")
    if isinstance(given, list) and not given and previous is None:
        return Refusal(400, "no_messages")
    instructions = flat(data.get("instructions"))
    head = (Message("system", instructions),) if instructions else ()
    items = [{"role": "user", "content": given}] if isinstance(given, str) else objects(given)
    tools = [
        text_or_none(each.get("name")) or text_or_none(each.get("type")) for each in objects(data.get("tools"))
    ]
    return ModelRequest(
        wire=NAME,
        model=data["model"],
        streaming=data.get("stream") is True,
        messages=(*head, *_turns(reader.read(items))),
        tools=tuple(each for each in tools if each is not None),
        usage_asked=True,
        continues=previous,
        kept=data.get("store") is not False,
    )


def input_characters(body: bytes) -> int | Refusal:
    """Return how long the texts of a token count's request are; refused like a request for a reply."""
    request = read_request(body, Reader(read_item))
    return request if isinstance(request, Refusal) else sum(len(each.text) for each in request.messages)


def _turns(messages: Iterable[Message | None]) -> Iterator[Message]:
    """Yield canonical messages; what an assistant says and calls in a row is one."""
    turn: list[Message] = []
    for message in messages:
        if message is None:
            # Reasoning and the like: neither said nor called, and inside of a turn.
            continue
        if turn and not (message.role == "assistant" and message.stands_for == turn[0].stands_for):
            yield _joined(turn)
            turn = []
        if message.role == "assistant":
            turn.append(message)
        else:
            yield message
    if turn:
        yield _joined(turn)


def read_item(item: Mapping[str, Any]) -> Message | None:
    """Return what one item says, calls or answers; None where it does none of that."""
    kind = item.get("type")
    if kind == "item_reference":
        reply = reply_of_item(str(item.get("id", "")))
        return None if reply is None else Message("assistant", "", stands_for=reply)
    if isinstance(kind, str) and kind.endswith(_OUTPUT):
        call_id = text_or_none(item.get("call_id")) or text_or_none(item.get("id"))
        return Message("tool", flat(item.get("output")), tool_call_id=call_id)
    if isinstance(kind, str) and kind.endswith(_CALL):
        call = read_call(item)
        return None if call is None else Message("assistant", "", (call,))
    if kind in (None, "message") and isinstance(item.get("role"), str):
        return Message(item["role"], flat(item.get("content")))
    return None


def _joined(turn: list[Message]) -> Message:
    calls = tuple(call for each in turn for call in each.tool_calls)
    return Message("assistant", "".join(each.text for each in turn), calls, stands_for=turn[0].stands_for)


def read_call(item: Mapping[str, Any]) -> Call | None:
    """Return the call of a ``function_call``, ``custom_tool_call`` or the like; None for the API's own tools."""
    call_id = text_or_none(item.get("call_id"))
    if call_id is None:
        return None
    name = text_or_none(item.get("name")) or str(item.get("type", "")).removesuffix(_CALL)
    return Call(call_id, name, str(item.get("arguments", item.get("input", "{}"))))


def item_ids(reply_id: str) -> tuple[str, str]:
    """Return the id of a reply's message, and what the ids of its calls begin with."""
    core = reply_id.removeprefix("resp_")
    return f"msg_{core}", f"fc_{core}_"


def reply_of_item(item_id: str) -> str | None:
    """Return the reply that an item of ours belongs to; None for one that we never sent, such as reasoning."""
    kind, _, core = item_id.partition("_")
    if kind == "msg" and core:
        return f"resp_{core}"
    if kind == "fc" and "_" in core:
        return f"resp_{core.rpartition('_')[0]}"
    return None


def read_response(data: Mapping[str, Any]) -> UpstreamReply:
    """Read a response object. An ``output`` without a message or a call holds no answer."""
    said = [each for each in objects(data.get("output")) if each.get("type") == "message"]
    calls = [call for each in objects(data.get("output")) if (call := _call_in_output(each)) is not None]
    parts = [part for each in said for part in objects(each.get("content"))]
    return UpstreamReply(
        id=text_or_none(data.get("id")),
        text="".join(str(each.get("text", "")) for each in parts) if said else None,
        tool_calls=tuple(calls),
        finish=_finish(data, bool(calls)),
        has_choice=bool(said or calls),
        error=error_word(data),
    )


def read_stream(body: bytes) -> UpstreamReply:
    """Read the events of a stream, also of one that broke off: then from its deltas."""
    reply_id = error = finish = None
    texts: dict[int, str] = {}
    calls: dict[int, Call] = {}
    for data in stream_events(body):
        kind, index = data.get("type"), data.get("output_index")
        response = member(data, "response")
        reply_id = reply_id or text_or_none(response.get("id"))
        error = error or error_word(response) or (_error_of_event(data) if kind == "error" else error_word(data))
        if kind in _ENDS:
            # The whole response once more, as it was built from the deltas.
            finish = _finish(response, bool(calls))
        if not isinstance(index, int):
            continue
        item = member(data, "item")
        if kind in ("response.output_item.added", "response.output_item.done"):
            call = _call_in_output(item)
            if call is not None:
                calls[index] = call
            elif item.get("type") == "message":
                texts.setdefault(index, "")
        elif kind == "response.output_text.delta":
            texts[index] = texts.get(index, "") + str(data.get("delta", ""))
        elif kind == "response.function_call_arguments.delta" and index in calls:
            call = calls[index]
            calls[index] = Call(call.id, call.name, call.arguments + str(data.get("delta", "")))
    return UpstreamReply(
        id=reply_id,
        text="".join(texts[each] for each in sorted(texts)) if texts else None,
        tool_calls=tuple(calls[each] for each in sorted(calls)),
        finish=finish,
        has_choice=bool(texts or calls),
        error=error,
    )


def _call_in_output(item: Mapping[str, Any]) -> Call | None:
    kind = item.get("type")
    return read_call(item) if isinstance(kind, str) and kind.endswith(_CALL) else None


def _finish(response: Mapping[str, Any], called: bool) -> str | None:
    """Return why it ended, in the words of chat completions, which every other wire knows."""
    if response.get("status") == "incomplete":
        reason = str(member(response, "incomplete_details").get("reason", ""))
        return _INCOMPLETE.get(reason, reason or "incomplete")
    if response.get("status") == "completed":
        return "tool_calls" if called else "stop"
    return None


def _error_of_event(data: Mapping[str, Any]) -> str:
    """Return the word of an error event: nested, as the API sends it, or flat, as its reference has it."""
    return error_word(data) or str(data.get("code") or "no code")[:80]


def _array(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
