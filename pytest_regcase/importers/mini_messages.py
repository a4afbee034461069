"""The messages of a mini-swe-agent trajectory as transcript lines.

Knows the message shapes of v0, v1 and v2 (tool calls, text blocks, Responses items). Must import no importer.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pytest_regcase.importers.reading import filled, mapping, moment, present, sequence, text
from pytest_regcase.importers.steps import line_from
from pytest_regcase.records.trial import ToolCall, TranscriptLine

_HINT_CHARACTERS = 40


class Conversation:
    """The lines, the exit message's facts, the task's text, and what could not be read."""

    def __init__(self, messages: Sequence[Any], agent_config: Mapping[str, Any]) -> None:
        self.lines: list[TranscriptLine] = []
        self.missing: list[str] = []
        self.exit_extra: Mapping[str, Any] = {}
        self.interrupted = False
        """The last message is a person's interruption."""
        self._replies = 0
        self._steps_of_calls: dict[str, int] = {}
        self._hidden_actions = 0
        self._parts_left_out = 0
        strange = 0
        for index, message in enumerate(messages):
            if isinstance(message, dict):
                self._take(message, f"messages[{index}]")
            else:
                strange += 1
        if strange:
            self.missing.append(f"{strange} messages are no objects and are left out")
        if self._hidden_actions:
            self.missing.append(
                f"{self._hidden_actions} replies ran commands that neither their text nor their tool calls hold:"
                " replaying them does nothing"
            )
        if self._parts_left_out:
            self.missing.append(f"{self._parts_left_out} content parts that are no text are left out")
        self.task_text = self._task_text(agent_config)

    def _take(self, message: Mapping[str, Any], origin: str) -> None:
        role = message.get("role")
        extra = mapping(message.get("extra"))
        at = moment(extra.get("timestamp", message.get("timestamp")))
        self.interrupted = extra.get("interrupt_type") == "UserInterruption"
        if role == "exit":
            self.exit_extra = extra
        elif role == "assistant":
            self._reply(message, extra, origin, at)
        elif role is None and message.get("object") == "response":
            self._response_items(message, extra, origin, at)
        elif role is None and message.get("type") == "function_call_output":
            self._line("tool", text(message.get("output")), message.get("call_id"), extra, origin, at)
        elif role in ("system", "user", "tool", "developer"):
            self._format_error(extra, origin, at)
            role = "system" if role == "developer" else role
            self._line(role, self._content(message.get("content")), message.get("tool_call_id"), extra, origin, at)
        else:
            self.missing.append(f"{origin} has a role that we do not know and is left out")

    def _line(
        self,
        role: Any,
        content: str | None,
        call_id: Any,
        extra: Mapping[str, Any],
        origin: str,
        at: datetime | None,
    ) -> None:
        call_id = filled(call_id)
        self.lines.append(
            line_from(
                origin,
                step=self._steps_of_calls.get(call_id or "", self._replies),
                role=role,
                text=content,
                tool_call_id=call_id if role == "tool" else None,
                raw_output=text(extra.get("raw_output")),
                at=at,
            )
        )

    def _reply(
        self, message: Mapping[str, Any], extra: Mapping[str, Any], origin: str, at: datetime | None
    ) -> None:
        calls = tuple(_tool_calls(message.get("tool_calls")))
        self._add_reply(self._content(message.get("content")), calls, extra, origin, at)

    def _response_items(
        self, message: Mapping[str, Any], extra: Mapping[str, Any], origin: str, at: datetime | None
    ) -> None:
        """Take a reply as the Responses API gives it: one object with output items."""
        texts: list[str] = []
        calls: list[ToolCall] = []
        for item in map(mapping, sequence(message.get("output"))):
            if item.get("type") == "message":
                texts.append(self._content(item.get("content")) or "")
            elif item.get("type") == "function_call" and (name := filled(item.get("name"))):
                calls.append(
                    ToolCall(
                        id=filled(item.get("call_id")), name=name, arguments=text(item.get("arguments")) or "{}"
                    )
                )
        self._add_reply("\n".join(texts), tuple(calls), {"response": message, **extra}, origin, at)

    def _add_reply(
        self,
        content: str | None,
        calls: tuple[ToolCall, ...],
        extra: Mapping[str, Any],
        origin: str,
        at: datetime | None,
    ) -> None:
        self._replies += 1
        self._steps_of_calls.update({call.id: self._replies for call in calls if call.id})
        commands = [filled(mapping(action).get("command")) for action in sequence(extra.get("actions"))]
        if not calls and any(command and command not in (content or "") for command in commands):
            self._hidden_actions += 1
        response = mapping(extra.get("response"))
        choices = sequence(response.get("choices"))
        self.lines.append(
            line_from(
                origin,
                step=self._replies,
                role="assistant",
                text=content,
                tool_calls=calls,
                finish=filled(mapping(choices[0]).get("finish_reason")) if choices else None,
                usage=present(dict(mapping(response.get("usage")))) or None,
                model=filled(response.get("model")),
                at=at,
            )
        )

    def _format_error(self, extra: Mapping[str, Any], origin: str, at: datetime | None) -> None:
        """Note a reply that mini refused: it never stands in the conversation, so it is no reply there."""
        if extra.get("interrupt_type") != "FormatError":
            return
        choices = sequence(mapping(extra.get("response")).get("choices"))
        message = mapping(mapping(choices[0]).get("message")) if choices else {}
        self.lines.append(
            line_from(
                f"{origin}.extra.response",
                step=self._replies + 1,
                role="assistant",
                text=self._content(message.get("content")),
                error="FormatError",
                at=at,
            )
        )

    def _content(self, content: Any) -> str | None:
        if not isinstance(content, list):
            return text(content)
        texts = []
        for part in map(mapping, content):
            found = text(part.get("text"))
            if found is None:
                self._parts_left_out += 1
            else:
                texts.append(found)
        return "".join(texts)

    def _task_text(self, agent_config: Mapping[str, Any]) -> str | None:
        """Cut the task out of the first user message, where the template shows exactly one place."""
        first = next((line for line in self.lines if line.role == "user" and line.step == 0), None)
        if first is None or first.text is None:
            self.missing.append("task text: there is no user message before the first reply")
            return None
        cut = _between(first.text, text(agent_config.get("instance_template")))
        if cut is None:
            self.missing.append(
                "task text: not recorded apart, so the first user message stands for it as a whole"
            )
        return cut if cut is not None else first.text


def _between(message: str, template: str | None) -> str | None:
    """Return what stands for ``{{task}}`` in `message`, or None where that cannot be told."""
    if template is None:
        return None
    parts = re.split(r"\{\{-?\s*task\s*-?\}\}", template)
    if len(parts) != 2:
        return None
    before = re.split(r"[}%]\}", parts[0])[-1].lstrip()
    after = re.split(r"\{[{%]", parts[1])[0][:_HINT_CHARACTERS].rstrip()
    start = message.find(before) if before else 0
    if start < 0 or not (before or re.fullmatch(r"\s*", parts[0])):
        return None
    start += len(before)
    if not after:
        return message[start:].strip("\n") if not parts[1].strip() else None
    end = message.find(after, start)
    if end < 0 or message.find(after, end + 1) >= 0:
        return None
    return message[start:end]


def _tool_calls(value: Any) -> list[ToolCall]:
    found = []
    for call in map(mapping, sequence(value)):
        function = mapping(call.get("function"))
        name = filled(function.get("name"))
        if name is not None:
            found.append(
                ToolCall(id=filled(call.get("id")), name=name, arguments=text(function.get("arguments")) or "{}")
            )
    return found
