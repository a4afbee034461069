"""Lines of a conversation, and which step of it failed: one rule for every format.

Pure. Knows transcript lines; must import no importer.
"""

from collections.abc import Sequence
from typing import Any

from pytest_regcase.records.trial import TranscriptLine


def line_from(origin: str, **fields: Any) -> TranscriptLine:
    """Return a transcript line that stood at `origin` in the foreign log (``from`` in files)."""
    return TranscriptLine.model_validate({**fields, "from": origin})


def replies_in(lines: Sequence[TranscriptLine]) -> int:
    """Return the number of complete model replies."""
    return sum(1 for line in lines if line.is_reply)


def reply_was_due(lines: Sequence[TranscriptLine]) -> bool:
    """Say whether the conversation stops where the model had to answer: behind a result or a failed call."""
    return bool(lines) and not lines[-1].is_reply


def ends_open(lines: Sequence[TranscriptLine]) -> bool:
    """Say whether the conversation stops in the middle: where the model had to answer, or behind unanswered calls.

    Where nothing says how a trial ended, that much shows that its record was cut off. A record that stops behind a
    reply without calls shows nothing.
    """
    return bool(lines) and (not lines[-1].is_reply or bool(lines[-1].tool_calls))


def failing_step(lines: Sequence[TranscriptLine], *, next_reply_failed: bool) -> int | None:
    """Return the step whose reply failed or never came, else the last step; None without a conversation."""
    if not lines:
        return None
    replies = replies_in(lines)
    return replies + 1 if next_reply_failed or replies == 0 else replies
