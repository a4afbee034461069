"""The words of a GenAI span: its attributes and events as chat messages, in the spellings of four conventions.

Knows `gen_ai.input.messages` / `gen_ai.output.messages` (role and parts), `gen_ai.prompt.N.*` (OpenLLMetry),
`gen_ai.prompt` / `gen_ai.completion` (JSON texts, deprecated), and message events. Pure; must import no importer.
Names after the OpenTelemetry semantic conventions for generative AI and OpenLLMetry's SpanAttributes.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pytest_regcase.importers.chat_messages import arguments_text
from pytest_regcase.importers.json_records import decoded
from pytest_regcase.importers.reading import filled, mapping, sequence, text

_NUMBERED = re.compile(r"(\d{1,6})\.(?:tool_calls\.(\d{1,6})\.)?(\w+)")
_EVENT_ROLES: Final[Mapping[str, str]] = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "choice",
}

Attributes = Mapping[str, Any]
Event = tuple[str, Attributes]
Message = Mapping[str, Any]


def attributes_of(value: Any) -> dict[str, Any]:
    """Return an OTLP attribute list as plain values; of a key that is there twice the last one counts."""
    found: dict[str, Any] = {}
    for pair in map(mapping, sequence(value)):
        key = text(pair.get("key"))
        if key is not None:
            found[key] = _any_value(pair.get("value"))
    return found


def _any_value(value: Any) -> Any:
    value = mapping(value)
    for kind in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        if kind in value:
            return value[kind]
    if "intValue" in value:  # int64 is a text in OTLP JSON
        number = value["intValue"]
        is_text = isinstance(number, str) and re.fullmatch(r"-?\d{1,19}", number) is not None
        return int(number) if is_text else number
    if "arrayValue" in value:
        return [_any_value(each) for each in sequence(mapping(value["arrayValue"]).get("values"))]
    if "kvlistValue" in value:
        return attributes_of(mapping(value["kvlistValue"]).get("values"))
    return None


def given_messages(attributes: Attributes, events: Sequence[Event]) -> tuple[Message, ...]:
    """Return the messages of a model call's request; none where the span does not hold its content."""
    system = decoded(attributes.get("gen_ai.system_instructions"))
    before: list[Message] = []
    if system:
        before = _messages(
            [
                {"role": "system", "parts": system}
                if isinstance(system, list)
                else {"role": "system", "content": system}
            ]
        )
    recorded = decoded(attributes.get("gen_ai.input.messages"))
    if recorded is None:
        recorded = decoded(attributes.get("gen_ai.prompt"))
    if recorded is None:
        recorded = next(
            (decoded(each.get("gen_ai.prompt")) for name, each in events if name == "gen_ai.content.prompt"), None
        )
    if recorded is None:
        recorded = _numbered(attributes, "gen_ai.prompt.") or _of_events(events, choices=False)
    return (*before, *_messages(recorded))


def said_message(attributes: Attributes, events: Sequence[Event]) -> Message | None:
    """Return a model call's first reply as an assistant message; None where the span does not hold its content."""
    recorded = decoded(attributes.get("gen_ai.output.messages"))
    if recorded is None:
        recorded = decoded(attributes.get("gen_ai.completion"))
    if recorded is None:
        recorded = next(
            (
                decoded(each.get("gen_ai.completion"))
                for name, each in events
                if name == "gen_ai.content.completion"
            ),
            None,
        )
    if recorded is None:
        recorded = _numbered(attributes, "gen_ai.completion.") or _of_events(events, choices=True)
    if isinstance(recorded, dict):
        recorded = [recorded]
    if isinstance(recorded, str):
        return {"role": "assistant", "content": recorded}
    for message in _messages(
        [{"role": "assistant", **each} if isinstance(each, dict) else each for each in sequence(recorded)]
    ):
        if message.get("role") == "assistant":
            return message
    return None


def _messages(recorded: Any) -> list[Message]:
    if isinstance(recorded, str):
        return [{"role": "user", "content": recorded}]
    found: list[Message] = []
    for message in map(mapping, [recorded] if isinstance(recorded, dict) else sequence(recorded)):
        if "parts" in message:
            found.extend(_of_parts(message))
        elif message:
            plain = {key: value for key, value in message.items() if key != "type"}
            if "content" not in plain and "text" in plain:
                plain["content"] = plain["text"]
            found.append(plain)
    return found


def _of_parts(message: Message) -> list[Message]:
    """Return a message of parts as chat messages: each tool result is one of its own."""
    content: list[Any] = []
    calls: list[Any] = []
    results: list[Message] = []
    for part in sequence(message.get("parts")):
        part = {"type": "text", "content": part} if isinstance(part, str) else mapping(part)
        kind = filled(part.get("type")) or "unknown"
        if kind == "text":
            content.append({"type": "text", "text": part.get("content")})
        elif kind == "tool_call":
            calls.append({"id": part.get("id"), "name": part.get("name"), "arguments": part.get("arguments")})
        elif kind == "tool_call_response":
            response = part.get("response", part.get("result"))
            results.append({"role": "tool", "tool_call_id": part.get("id"), "content": _words(response)})
        else:
            content.append({"type": kind})
    if results and not content and not calls:
        return results
    said = {"role": message.get("role"), "content": content, "finish_reason": message.get("finish_reason")}
    return [*results, {**said, "tool_calls": calls} if calls else said]


def _words(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _numbered(attributes: Attributes, prefix: str) -> list[Message] | None:
    """Gather ``<prefix>N.role`` and its like into messages, in the order of N."""
    found: dict[int, dict[str, Any]] = {}
    calls: dict[int, dict[int, dict[str, Any]]] = {}
    for key, value in attributes.items():
        matched = _NUMBERED.fullmatch(key.removeprefix(prefix)) if key.startswith(prefix) else None
        if matched is None:
            continue
        message = found.setdefault(int(matched[1]), {})
        if matched[2] is not None:
            calls.setdefault(int(matched[1]), {}).setdefault(int(matched[2]), {})[matched[3]] = value
        else:
            message[matched[3]] = decoded(value) if matched[3] == "content" else value
    for index, message in found.items():
        if index in calls:
            message["tool_calls"] = [
                {**call, "arguments": arguments_text(call.get("arguments"))}
                for _, call in sorted(calls[index].items())
            ]
        if isinstance(message.get("content"), dict):
            message["content"] = _words(message["content"])
    return [found[index] for index in sorted(found)] or None


def _of_events(events: Sequence[Event], *, choices: bool) -> list[Message] | None:
    found: list[Message] = []
    for name, attributes in events:
        role = _EVENT_ROLES.get(name)
        if role is None or (role == "choice") != choices:
            continue
        body = mapping(decoded(attributes.get("gen_ai.event.content")))
        known = {**attributes, **body}
        message = mapping(decoded(known.get("message"))) if choices else known
        plain = {
            "role": "assistant" if choices else role,
            "content": message.get("content", known.get("content")),
            "tool_calls": decoded(message.get("tool_calls")),
            "tool_call_id": known.get("id"),
            "finish_reason": known.get("finish_reason"),
        }
        found.append({key: value for key, value in plain.items() if value is not None})
    return found or None
