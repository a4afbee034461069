"""Marks: what the agent itself wrote about how it ended, and how its process ended.

Knows words of statuses. Must not import the expectations: several of them ask here.
"""

import re
from typing import Literal, NamedTuple

from pytest_regcase.records.observed import Observed

_FINISHED = re.compile(
    r"finish(?:ed)?|succe(?:ss(?:ful)?|eded)|submitted|ok(?:ay)?|done|completed?|passed|resolved", re.IGNORECASE
)
_UNFINISHED = re.compile(r"running|start(?:ed|ing)|pending|in[ _-]progress|unknown", re.IGNORECASE)
_FAILED = re.compile(
    r"error|fail|exception|timed?[ _-]?out|limit|exceed|abort|(?<![a-z])cut|interrupt|cancel|reject|refus|unavail"
    r"|incomplete|crash|(?<![a-z])kill|gave[ _-]?up|(?<![a-z])no[ _-]?(?:answer|reply)",
    re.IGNORECASE,
)
_NOTHING_FAILED = re.compile(r"(?:no|without|0)[ _-](?:any[ _-])?(?:errors?|failures?)", re.IGNORECASE)
_OUR_SIGNAL = frozenset(("KeyboardInterrupt", "SystemExit", "CancelledError", "UserInterruption"))
"""What a signal of ours makes a harness write: no status of its own."""


class Mark(NamedTuple):
    """What the agent wrote about its own end."""

    says: Literal["failed", "finished", "unclear", "nothing"]
    place: str = ""
    """Where it stands, such as ``status`` or ``submission.mark``."""
    quote: str = ""


def ended_by_us(observed: Observed) -> bool:
    """Say whether the agent's process ended because we ended it."""
    return observed.exit.ended_by is not None


def ended_badly(observed: Observed) -> bool:
    """Say whether the process ended by itself with a code other than 0, or by a signal that is not ours."""
    return not ended_by_us(observed) and (observed.exit.signal is not None or observed.exit.code not in (0, None))


def exit_words(observed: Observed) -> str:
    """Say in words how the process, or the function, ended."""
    if observed.in_process and observed.exit.code is not None:
        return f"it raised {observed.raised}" if observed.exit.code else "it returned"
    if observed.exit.signal is not None:
        return f"signal {observed.exit.signal}"
    return "an unknown exit code" if observed.exit.code is None else f"exit code {observed.exit.code}"


def mark_of(observed: Observed) -> Mark:
    """Return the agent's own mark: any mark of failure wins, then one of success, then one we cannot read.

    The exit code is no mark: it counts only where nothing is written (`ended_badly`). What a harness writes in
    answer to our signal is none either.
    """
    marks = [*_declared(observed), *_submission(observed), *_artefact(observed)]
    for wanted in ("failed", "finished", "unclear"):
        for mark in marks:
            if mark.says == wanted:
                return mark
    return Mark("nothing")


def handed_in_as_finished(observed: Observed) -> bool:
    """Say whether what the agent left counts as its finished work: nothing marks it as a failure."""
    says = mark_of(observed).says
    if says == "nothing":
        return not ended_by_us(observed) and not ended_badly(observed)
    return says == "finished"


def _declared(observed: Observed) -> list[Mark]:
    status = (observed.declared.status or "").strip()
    if not status or _UNFINISHED.fullmatch(status):
        return []
    if _FAILED.search(_NOTHING_FAILED.sub("", status)):
        return [Mark("failed", "status", status)]
    if _FINISHED.fullmatch(status):
        return [Mark("finished", "status", status)]
    return [Mark("unclear", "status", status)]


def _submission(observed: Observed) -> list[Mark]:
    submission = observed.artefact.submission if observed.artefact is not None else None
    return (
        [] if submission is None or not submission.mark else [Mark("failed", "submission.mark", submission.mark)]
    )


def _artefact(observed: Observed) -> list[Mark]:
    trial = observed.artefact
    if trial is None:
        return []
    error = trial.error if trial.error is not None and trial.error.raised_by != "grader" else None
    named = (error.type or error.message or "error") if error is not None else None
    if ended_by_us(observed) and (trial.termination == "cancelled" or named in _OUR_SIGNAL):
        return []
    if trial.termination in ("error", "limit", "cancelled"):
        return [Mark("failed", "termination", f"{trial.termination} ({named})" if named else trial.termination)]
    if trial.termination == "finished":
        return [Mark("finished", "termination", "finished")]
    return [Mark("failed", "error", named)] if trial.termination is None and named else []
