"""Messages as model APIs spell them, made into transcript lines with our step numbering.

Knows three spellings and no trial format: OpenAI chat messages, Anthropic content blocks, Responses items. Pure;
must import no importer. An importer feeds what it found in order, and adds what only its format knows.

What surprises: a Responses reply is several items in a row (`message`, `function_call`, ...), so an item of the
model's behind another one belongs to the same reply; an Anthropic user message holds tool results, which become
lines of their own; a message's reasoning is no part of what was said, so it is left out and counted.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pytest_regcase.importers.reading import filled, mapping, moment, present, sequence, text
from pytest_regcase.importers.steps import line_from
from pytest_regcase.records.plurals import how_many
from pytest_regcase.records.trial import ToolCall, TranscriptLine

Role = Literal["system", "user", "assistant", "tool"]
ROLES: Final[Mapping[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
"""How the three spellings call who speaks, and our word for it."""
_TEXT_KEYS: Final = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Types of a content part that is text, and the key that holds it."""
_CALL_ITEMS: Final = frozenset({"function_call", "custom_tool_call"})
_RESULT_ITEMS: Final = frozenset({"function_call_output", "custom_tool_call_output"})


@dataclass(frozen=True)
class Content:
    """What a message's content holds."""

    text: str | None = None
    """None where there is no content at all; "" where it is there and empty."""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[Mapping[str, Any], ...] = ()
    """Anthropic `tool_result` blocks, as they stand."""
    left_out: tuple[str, ...] = ()
    """Types of the parts that are neither text, call nor result."""


def content_of(value: Any) -> Content:
    """Take a content apart: a text, or a list of texts and parts."""
    if not isinstance(value, list):
        return Content(text(value))
    texts: list[str] = []
    calls: list[ToolCall] = []
    results: list[Mapping[str, Any]] = []
    left_out: list[str] = []
    for part in value:
        part = {"text": part} if isinstance(part, str) else mapping(part)
        kind = filled(part.get("type", "text")) or "unknown"
        if (said := text(part.get(_TEXT_KEYS.get(kind, "")))) is not None:
            texts.append(said)
        elif kind == "tool_use" and (name := filled(part.get("name"))):
            calls.append(
                ToolCall(id=filled(part.get("id")), name=name, arguments=arguments_text(part.get("input")))
            )
        elif kind == "tool_result":
            results.append(part)
        else:
            left_out.append(kind if part else "unknown")
    return Content("".join(texts) if texts or not calls else None, tuple(calls), tuple(results), tuple(left_out))


def arguments_text(value: Any) -> str:
    """Return a call's arguments as JSON text: as the model wrote it, or written again where only its value is."""
    if isinstance(value, str):
        return value
    return json.dumps({} if value is None else value, ensure_ascii=False)


def tool_calls_of(value: Any) -> tuple[ToolCall, ...]:
    """Return the calls of a `tool_calls` list; what has no name is no call.

    Taken are ``{"id", "function": {"name", "arguments"}}``, ``{"id", "name", "arguments" | "args" | "input"}`` and
    ``[id, name, arguments]``.
    """
    found = []
    for call in sequence(value):
        match call:
            case [call_id, str(name), arguments] if name:
                found.append(ToolCall(id=filled(call_id), name=name, arguments=arguments_text(arguments)))
            case {"function": {"name": str(name), **rest}} if name:
                found.append(
                    ToolCall(id=filled(call.get("id")), name=name, arguments=arguments_text(rest.get("arguments")))
                )
            case {"name": str(name), **rest} if name:
                given = next((rest[key] for key in ("arguments", "args", "input") if key in rest), None)
                call_id = filled(rest.get("call_id")) or filled(rest.get("id"))
                found.append(ToolCall(id=call_id, name=name, arguments=arguments_text(given)))
    return tuple(found)


class ChatLines:
    """The lines of one conversation. Feed it in order: `take` any message, or say what it was.

    Facts given by name (`model`, `finish`, `usage`, `at`, `offered_tools`, `raw_output`) go to the line as they
    are, and win over what the message itself says.
    """

    def __init__(self) -> None:
        self.lines: list[TranscriptLine] = []
        self.replies = 0
        """Complete replies so far."""
        self._steps_of_calls: dict[str, int] = {}
        self._left_out: Counter[str] = Counter()
        self._strange = 0
        self._may_go_on = False

    @property
    def missing(self) -> list[str]:
        """Sentences: what was there and is not in the lines."""
        found = [
            how_many(count, "content part") + f" of type {kind} left out"
            for kind, count in sorted(self._left_out.items())
        ]
        if self._strange:
            found.append(how_many(self._strange, "message") + " without a role that we know left out")
        return found

    def take_all(self, messages: Iterable[Any], origin: str = "messages") -> "ChatLines":
        """Take a list of messages that stands at `origin`; return self."""
        for index, message in enumerate(messages):
            self.take(message, f"{origin}[{index}]")
        return self

    def take(self, message: Any, origin: str, **facts: Any) -> None:
        """Take one message in any of the three spellings; what is none is counted in `missing`."""
        message = mapping(message)
        facts = {name: fact for name, fact in facts.items() if fact is not None}
        kind, role = filled(message.get("type")), filled(message.get("role"))
        if kind in _CALL_ITEMS or kind in _RESULT_ITEMS or kind == "reasoning":
            self._item(message, kind, origin, facts)
        elif message.get("object") == "response":
            self.response(message, origin, **facts)
        elif role is not None and role in ROLES:
            self._message(message, ROLES[role], origin, facts)
        else:
            self._strange += 1

    def reply(self, origin: str, said: str | None, calls: Sequence[ToolCall] = (), **facts: Any) -> TranscriptLine:
        """Add a complete reply of the model: it opens the next step."""
        self.replies += 1
        self._steps_of_calls.update({call.id: self.replies for call in calls if call.id})
        line = line_from(origin, step=self.replies, role="assistant", text=said, tool_calls=tuple(calls), **facts)
        return self._add(line)

    def failed_call(self, origin: str, error: str, said: str | None = None, **facts: Any) -> TranscriptLine:
        """Add a model call that gave no reply: it stands on the step that never came."""
        line = line_from(origin, step=self.replies + 1, role="assistant", text=said, error=error, **facts)
        return self._add(line)

    def said(
        self, origin: str, role: Role, said: str | None, *, call_id: str | None = None, **facts: Any
    ) -> TranscriptLine:
        """Add what somebody else said. A tool's result has the step of its call, else that of the last reply."""
        step = self._steps_of_calls.get(call_id or "", self.replies)
        line = line_from(origin, step=step, role=role, text=said, tool_call_id=call_id, **facts)
        return self._add(line)

    def response(self, response: Mapping[str, Any], origin: str, **facts: Any) -> None:
        """Add a whole Responses object as one reply."""
        texts: list[str] = []
        calls: list[ToolCall] = []
        for item in map(mapping, sequence(response.get("output"))):
            if item.get("type") == "message":
                texts.append(self.content(item.get("content")).text or "")
            elif item.get("type") in _CALL_ITEMS:
                calls.extend(_call_of_item(item))
            else:
                self._left_out[filled(item.get("type")) or "unknown"] += 1
        known = {**_facts_of(response), "response_id": filled(response.get("id")), **facts}
        self.reply(origin, "\n".join(texts), calls, **known)

    def content(self, value: Any) -> Content:
        """Take a content apart, and count what is left out of it."""
        found = content_of(value)
        self._left_out.update(found.left_out)
        return found

    def end_reply(self) -> None:
        """Say that the next item of the model's belongs to another reply, where a format shows that."""
        self._may_go_on = False

    def _message(self, message: Mapping[str, Any], role: Role, origin: str, facts: Mapping[str, Any]) -> None:
        content = self.content(message.get("content"))
        known = {**_facts_of(message), **facts}
        if role != "assistant":
            self._from_others(message, content, role, origin, known)
            return
        calls = (*content.calls, *tool_calls_of(message.get("tool_calls")))
        if not calls and isinstance(message.get("function_call"), dict):  # the API of 2023
            calls = tool_calls_of([message["function_call"]])
        if message.get("type") == "message" and "tool_calls" not in message and not content.calls:
            self._model_item(origin, content.text, (), known)
        else:
            self.reply(origin, content.text, calls, **known)
            # A Responses list also takes a reply's text as a plain message, its calls as items behind it.
            self._may_go_on = not calls

    def _from_others(
        self, message: Mapping[str, Any], content: Content, role: Role, origin: str, facts: Mapping[str, Any]
    ) -> None:
        facts = {name: fact for name, fact in facts.items() if name in ("at", "raw_output", "error")}
        for index, result in enumerate(content.results):
            said = self.content(result.get("content")).text
            failed = {"error": said or "is_error"} if result.get("is_error") is True else {}
            call_id = filled(result.get("tool_use_id"))
            self.said(f"{origin}.content[{index}]", "tool", said, call_id=call_id, **{**facts, **failed})
        if content.results and not content.text:
            return
        call_id = filled(message.get("tool_call_id")) if role == "tool" else None
        self.said(origin, role, content.text, call_id=call_id, **facts)

    def _item(self, item: Mapping[str, Any], kind: str, origin: str, facts: Mapping[str, Any]) -> None:
        if kind == "reasoning":
            self._left_out[kind] += 1
        elif kind in _CALL_ITEMS:
            self._model_item(origin, None, _call_of_item(item), {**_facts_of(item), **facts})
        else:
            output = item.get("output")
            said = self.content(output).text if isinstance(output, str | list) else arguments_text(output)
            facts = {name: fact for name, fact in facts.items() if name in ("at", "raw_output", "error")}
            self.said(origin, "tool", said, call_id=filled(item.get("call_id")), **facts)

    def _model_item(
        self, origin: str, said: str | None, calls: Sequence[ToolCall], facts: Mapping[str, Any]
    ) -> None:
        """Add an item of the model's: to the reply right before it, else as a new one."""
        if not self._may_go_on:
            self.reply(origin, said, calls, **facts)
        else:
            last = self.lines.pop()
            texts = [each for each in (last.text, said) if each is not None]
            kept = {name: getattr(last, name) for name in last.model_fields_set if name != "origin"}
            kept |= {"text": "\n".join(texts) if texts else None, "tool_calls": (*last.tool_calls, *calls)}
            self._steps_of_calls.update({call.id: last.step for call in calls if call.id})
            self.lines.append(line_from(last.origin or origin, **{**kept, **facts}))
        self._may_go_on = True

    def _add(self, line: TranscriptLine) -> TranscriptLine:
        self.lines.append(line)
        self._may_go_on = False
        return line


def _call_of_item(item: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    name = filled(item.get("name"))
    if name is None:
        return ()
    given = item.get("arguments", item.get("input"))  # `input` in custom_tool_call: free text, not JSON
    return (ToolCall(id=filled(item.get("call_id")), name=name, arguments=arguments_text(given)),)


def _facts_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a message itself says of its line, where it says it."""
    found = {
        "finish": filled(message.get("finish_reason")) or filled(message.get("stop_reason")),
        "usage": present(dict(mapping(message.get("usage")))) or None,
        "model": filled(message.get("model")),
        "at": moment(message.get("timestamp")),
    }
    return {name: fact for name, fact in found.items() if fact is not None}
