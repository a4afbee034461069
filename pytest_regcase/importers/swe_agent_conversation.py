"""The conversation of a SWE-agent trajectory: replies told apart from requeries and from the harness's own words.

Knows the two lists of the format and how they miss each other. Must import no importer.

What surprises: `history` is what the model was sent and has tool calls; `trajectory` has raw observations, and
also the replies that the harness could not use and asked again for (requeries), which the history never gets; the
last step may miss in the history as well, and its call with it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pytest_regcase.importers.chat_messages import ROLES, ChatLines, tool_calls_of
from pytest_regcase.importers.reading import NotJson, filled, mapping, parse_json, sequence, text
from pytest_regcase.records.plurals import how_many
from pytest_regcase.records.trial import TranscriptLine

_LAST_WORDS: Final = re.compile(r"Exit(?:ing)? due to ")
_REQUERIED: Final = "requeried"


class SweAgentConversation:
    """The lines, what the harness said last, and the last recorded diff of the work."""

    def __init__(self, trajectory: Sequence[Mapping[str, Any]], history: Sequence[Mapping[str, Any]]) -> None:
        self._chat = ChatLines()
        self._demonstrations = self._requeried = 0
        self.last_words: str | None = None
        """Why the harness stopped, in its own words, where it did."""
        self.last_diff = next((found for step in reversed(trajectory) if (found := _diff(step))), None)
        self._history = history
        self._at = 0
        self._others_until_reply()
        self._has_replies = self._at < len(history)
        for index, step in enumerate(trajectory):
            if index == len(trajectory) - 1 and _is_harness(step):
                self.last_words = text(step.get("response"))
            else:
                self._step(step, index, trajectory[index + 1 : index + 2])

    @property
    def lines(self) -> list[TranscriptLine]:
        """The lines, in order."""
        return self._chat.lines

    @property
    def task_text(self) -> str | None:
        """What the user said first, demonstrations aside."""
        return next(
            (
                said
                for each in self._history
                if each.get("role") == "user"
                and each.get("is_demo") is not True
                and (said := self._chat.content(each.get("content")).text)
            ),
            None,
        )

    @property
    def missing(self) -> list[str]:
        """Sentences: what is there and not in the lines, or not a reply."""
        counted = (
            (
                self._demonstrations,
                "message",
                "messages",
                "of a demonstration given to the model, not made by it",
            ),
            (
                self._requeried,
                "reply",
                "replies",
                "of no use to the harness, which asked again: no step",
            ),
        )
        return [
            *self._chat.missing,
            *(f"{how_many(count, one, many)} {what}" for count, one, many, what in counted if count),
        ]

    def _step(self, step: Mapping[str, Any], index: int, following: Sequence[Mapping[str, Any]]) -> None:
        origin = f"trajectory[{index}]"
        response = text(step.get("response"))
        is_next = self._is_next_reply(step)
        if self._has_replies and following and not is_next:
            self._requeried += 1
            error = _question(following[0]) or filled(step.get("observation")) or _REQUERIED
            self._chat.failed_call(origin, error, response)
            return
        observation = text(step.get("observation"))
        if not is_next:
            self._chat.reply(origin, response)
            if observation and following:
                self._chat.said(origin, "user", observation)
            return
        message = self._history[self._at]
        self._at += 1
        said = self._chat.content(message.get("content")).text
        self._chat.reply(origin, response if said is None else said, tool_calls_of(message.get("tool_calls")))
        self._others_until_reply(observation)

    def _is_next_reply(self, step: Mapping[str, Any]) -> bool:
        if self._at >= len(self._history):
            return False
        message = self._history[self._at]
        said = self._chat.content(message.get("content")).text
        return said == step.get("response") and message.get("action", step.get("action")) == step.get("action")

    def _others_until_reply(self, observation: str | None = None) -> None:
        """Take what was said until the next reply; a demonstration's replies are none."""
        while self._at < len(self._history):
            message = self._history[self._at]
            role = ROLES.get(filled(message.get("role")) or "")
            is_demo = message.get("is_demo") is True
            if role == "assistant" and not is_demo:
                return
            if role in ("assistant", "tool") and is_demo:
                self._demonstrations += 1
            elif role is not None:
                said = self._chat.content(message.get("content")).text
                raw = observation if observation and observation != said else None
                call_id = next(map(filled, sequence(message.get("tool_call_ids"))), None)
                origin = f"history[{self._at}]"
                self._chat.said(origin, role, said, call_id=call_id, raw_output=raw)
                observation = None
            self._at += 1


def _is_harness(step: Mapping[str, Any]) -> bool:
    """Say whether this last step is no reply but the harness's own: it says why it stops, and acts on nothing."""
    action = (text(step.get("action")) or "").strip()
    said = text(step.get("response")) or ""
    return (not action or action.startswith("exit_")) and _LAST_WORDS.match(said) is not None


def _question(step: Mapping[str, Any]) -> str | None:
    """Return what the harness told the model before this step, where the query is kept (`messages` in 1.0)."""
    asked = sequence(step.get("query")) or sequence(step.get("messages"))
    last = mapping(asked[-1]) if asked else {}
    return filled(last.get("content")) if last.get("role") == "user" else None


def _diff(step: Mapping[str, Any]) -> str | None:
    state = step.get("state")
    if isinstance(state, str):
        try:
            state = parse_json(state.encode("utf-8")).value
        except NotJson:
            return None
    return filled(mapping(state).get("diff"))
