"""A conversation and nothing else: a JSON list, or JSON lines, of role and content, in any spelling of the APIs.

Also LangChain's dumps of messages, which say `type` where others say `role`. Lists of mini-swe-agent and of
Responses items are others' formats. Must import no other importer.

What surprises: it says neither how the trial ended nor whether it passed, so it stays undetermined; only where it
stops in the middle does that much show that it was cut off.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.chat_messages import ROLES, ChatLines
from pytest_regcase.importers.json_records import JsonRecords
from pytest_regcase.importers.mini_marks import is_minis
from pytest_regcase.importers.protocol import Peek, only_trial
from pytest_regcase.importers.reading import digests_of, filled, mapping
from pytest_regcase.importers.steps import ends_open, failing_step, reply_was_due
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import Trial, TrialRef
from pytest_regcase.records.words import Expectation

_CAN_SHOW: Final[tuple[Expectation, ...]] = ("no_fabricated_output",)
_MESSAGE: Final = frozenset({"role", "content"})
_LANGCHAIN: Final = frozenset({"type", "content", "response_metadata"})
_LANGCHAIN_ROLES: Final[Mapping[str, str]] = {
    "ai": "assistant",
    "human": "user",
    "system": "system",
    "tool": "tool",
    "function": "function",
}
_ITEM: Final = re.compile(rb'"type"\s*:\s*"output_text"')
_ROLE: Final = re.compile(rb'"(?:role|type)"\s*:\s*"([a-z]+)"')


class MessageList:
    """Importer of plain message lists: one trial a file."""

    name = "message-list"

    def handles(self, peek: Peek) -> bool:
        """Say whether it is a list, or lines, of role and content, with no sign of another format."""
        keys = peek.shape.keys
        if peek.kind != "file" or peek.shape.kind == "other" or not (keys >= _MESSAGE or keys >= _LANGCHAIN):
            return False
        roles = {found.decode() for found in _ROLE.findall(peek.head)}
        known = roles & (ROLES.keys() if keys >= _MESSAGE else _LANGCHAIN_ROLES.keys())
        return bool(known) and not ("call_id" in keys or _ITEM.search(peek.head) or is_minis(peek.head))

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield the one trial of the file."""
        trial = _read(source)
        whole = "its last reply is whole, and messages hold no ending and no pass or fail"
        yield only_trial(trial, why_not=None if trial.termination is not None else whole)

    def read(self, source: Path, ref: TrialRef) -> Trial:  # noqa: ARG002 - one trial a file
        """Read the trial. Outcome is always undetermined: the format has none."""
        return _read(source)


def _read(source: Path) -> Trial:
    records = JsonRecords(source)
    chat = ChatLines()
    messages = []
    for origin, message in records:
        messages.append(message)
        chat.take(_spelt(message), origin)
    lines = chat.lines
    models = {line.model for line in lines if line.model}
    return Trial(
        format=MessageList.name,
        event_id=digest_of(messages),
        event_id_from="digest",
        model=models.pop() if len(models) == 1 else None,
        task_text=next((line.text for line in lines if line.role == "user" and line.text), None),
        steps=tuple(lines),
        failing_step=failing_step(lines, next_reply_failed=reply_was_due(lines)),
        termination="cut-off" if ends_open(lines) else None,
        can_show=_CAN_SHOW,
        source_digests=digests_of(source),
        missing=(
            *records.missing,
            *chat.missing,
            "how it ended, error and outcome: a message list holds none",
        ),
    )


def _spelt(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message as the APIs spell it: a dump of LangChain's becomes one with a role."""
    role = _LANGCHAIN_ROLES.get(filled(message.get("type")) or "")
    if "role" in message or role is None:
        return message
    metadata = mapping(message.get("response_metadata"))
    return {key: value for key, value in message.items() if key != "type"} | {
        "role": role,
        "model": metadata.get("model_name"),
        "finish_reason": metadata.get("finish_reason"),
        "usage": metadata.get("token_usage"),
    }
