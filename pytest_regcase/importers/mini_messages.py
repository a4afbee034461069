"""The messages of a mini-swe-agent trajectory as transcript lines.

Knows what v0, v1 and v2 put beside a message (`extra`), and the exit message. Must import no importer.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pytest_regcase.importers.chat_messages import ChatLines
from pytest_regcase.importers.reading import filled, mapping, moment, present, sequence, text
from pytest_regcase.records.plurals import how_many

_HINT_CHARACTERS = 40


class Conversation:
    """The lines, the exit message's facts, the task's text, and what could not be read."""

    def __init__(self, messages: Sequence[Any], agent_config: Mapping[str, Any]) -> None:
        self._chat = ChatLines()
        self.lines = self._chat.lines
        self.exit_extra: Mapping[str, Any] = {}
        self.interrupted = False
        """The last message is a person's interruption."""
        self._hidden_actions = 0
        for index, message in enumerate(messages):
            self._take(mapping(message), f"messages[{index}]")
        self.missing = self._chat.missing
        if self._hidden_actions:
            self.missing.append(
                how_many(self._hidden_actions, "reply", "replies")
                + " ran commands that neither text nor tool calls hold: replaying that does nothing"
            )
        self.task_text = self._task_text(agent_config)

    def _take(self, message: Mapping[str, Any], origin: str) -> None:
        extra = mapping(message.get("extra"))
        at = moment(extra.get("timestamp", message.get("timestamp")))
        self.interrupted = extra.get("interrupt_type") == "UserInterruption"
        if message.get("role") == "exit":
            self.exit_extra = extra
        elif message.get("role") == "assistant" or message.get("object") == "response":
            self._reply(message, extra, origin, at)
        else:
            self._format_error(extra, origin, at)
            self._chat.take(message, origin, at=at, raw_output=text(extra.get("raw_output")))

    def _reply(
        self, message: Mapping[str, Any], extra: Mapping[str, Any], origin: str, at: datetime | None
    ) -> None:
        response = mapping(extra.get("response"))
        choices = sequence(response.get("choices"))
        self._chat.take(
            message,
            origin,
            finish=filled(mapping(choices[0]).get("finish_reason")) if choices else None,
            usage=present(dict(mapping(response.get("usage")))) or None,
            model=filled(response.get("model")),
            response_id=filled(response.get("id")),
            at=at,
        )
        if not self.lines:
            return
        reply = self.lines[-1]
        commands = [filled(mapping(action).get("command")) for action in sequence(extra.get("actions"))]
        if not reply.tool_calls and any(command and command not in (reply.text or "") for command in commands):
            self._hidden_actions += 1

    def _format_error(self, extra: Mapping[str, Any], origin: str, at: datetime | None) -> None:
        """Note a reply that mini refused: it never stands in the conversation, so it is no reply there."""
        if extra.get("interrupt_type") != "FormatError":
            return
        choices = sequence(mapping(extra.get("response")).get("choices"))
        message = mapping(mapping(choices[0]).get("message")) if choices else {}
        refused = self._chat.content(message.get("content")).text
        self._chat.failed_call(f"{origin}.extra.response", "FormatError", refused, at=at)

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
