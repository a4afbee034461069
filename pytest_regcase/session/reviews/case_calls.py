"""What the replies of a case make an agent do: read as the supplier reads them, redacted, with notes for a review.

Runs nothing and never prints.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from pytest_regcase.case_files import LoadedCase
from pytest_regcase.lint.calls import notes_on
from pytest_regcase.redaction import Redactor
from pytest_regcase.supplier.replies import DueReply, read_replies

_HOLDS_COMMANDS = re.compile(r"```|~~~|^\s*<[a-zA-Z_][\w.:-]*[ =>]", re.MULTILINE)
"""A fence, or a tag at the beginning of a line: agents without tools take their commands from those."""


@dataclass(frozen=True)
class DrivenCall:
    """One tool call of a reply; or a reply's text, where an agent may read commands from it."""

    step: int
    """The step at which it is given; behind a fault that heals, counted from the first reply after it."""
    after_fault: bool
    kind: Literal["call", "text"]
    name: str
    """The tool's; empty for a text."""
    arguments: str
    """JSON text as it is recorded, or the reply's text; redacted."""
    notes: tuple[str, ...]


def driven_calls(loaded: LoadedCase) -> tuple[DrivenCall, ...]:
    """Return every tool call that the case's replies would drive, in order.

    None where the replies are passed through: what a real supplier will call is not known before. A text is listed
    where it holds a fence, a tag, or anything to note.
    """
    before = read_replies([line.to_sparse() for line in loaded.reply_lines()], "replay", "call")
    after = read_replies([line.to_sparse() for line in loaded.after_fault_lines()], "script", "call_after")
    found = [*_calls(before, after_fault=False), *_calls(after, after_fault=True)]
    redactor = Redactor()
    for each in found:
        redactor.learn(each.arguments)
    return tuple(
        replace(
            each,
            name=redactor.text(each.name),
            arguments=redactor.text(each.arguments),
            notes=tuple(map(redactor.text, each.notes)),
        )
        for each in found
    )


def _calls(replies: Iterable[DueReply], *, after_fault: bool) -> Iterator[DrivenCall]:
    for step, reply in enumerate(replies, start=1):
        text = reply.text or ""
        notes = notes_on(text)
        if notes or _HOLDS_COMMANDS.search(text):
            yield DrivenCall(step, after_fault, "text", "", text, notes)
        for call in reply.calls:
            yield DrivenCall(step, after_fault, "call", call.name, call.arguments, notes_on(call.arguments))
