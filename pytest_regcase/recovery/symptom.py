"""Failure signatures, and whether a failed trial shows the symptom of a case. One rule, for live attempts as well.

Pure. Knows how a trial ended, a case's symptom and its task. Must not import the expectations.

A symptom says nothing of a cause, and neither does a signature: trials of one may have failed for many reasons.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal

from pytest_regcase.records.case import RegressionCase, SymptomMatch
from pytest_regcase.records.trial import Trial
from pytest_regcase.records.words import Termination

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,79}")
Likeness = Literal["same", "other-step", "other-task", "task-not-recorded"]
"""How a failed trial of a matching symptom relates to a case: only `same` is the failure come back."""


@dataclass(frozen=True)
class Ending:
    """How one failed attempt or trial ended, as far as a symptom asks."""

    terminations: frozenset[Termination]
    error_types: tuple[str, ...]
    """The type of what was raised, and those of its chain."""
    left_unanswered: bool
    """The last model call got no reply."""
    step: int
    """The step at which the next reply was due."""


def ending_of(trial: Trial) -> Ending:
    """Return how a recorded trial ended."""
    ends: set[Termination] = {trial.termination or "error"}
    return Ending(
        terminations=frozenset(ends),
        error_types=error_types(trial),
        left_unanswered=left_unanswered(trial),
        step=trial.failing_step if trial.no_reply and trial.failing_step is not None else len(trial.replies) + 1,
    )


def error_types(trial: Trial | None) -> tuple[str, ...]:
    """Return the type of what was raised and those of its chain, as far as recorded."""
    error = trial.error if trial is not None else None
    if error is None:
        return ()
    return tuple(name for name in (error.type, *(link.type for link in error.chain)) if name is not None)


def left_unanswered(trial: Trial) -> bool:
    """Say whether the last model call of a recorded trial got no reply."""
    last = trial.steps[-1] if trial.steps else None
    by_supplier = trial.error is not None and trial.error.raised_by == "supplier"
    pending = last is not None and (last.error is not None or last.role in ("user", "tool"))
    return trial.no_reply or by_supplier or pending


def differs(seen: Ending, symptom: SymptomMatch, failing_step: int | None) -> str | None:
    """Return the first way in which a failure differs from the symptom; None where every given key matches.

    A symptom without a reply is one at its recorded step (`failing_step`): a call that is left unanswered
    elsewhere is another failure.
    """
    if symptom.termination and not seen.terminations & set(symptom.termination):
        return f"the symptom ends with {' or '.join(symptom.termination)}"
    if symptom.error_type is not None and not _searched(symptom.error_type, seen.error_types):
        return f"the symptom's error is {symptom.error_type}"
    if symptom.no_reply is not None:
        if seen.left_unanswered is not symptom.no_reply:
            return "the failing call got a reply" if symptom.no_reply else "the failing call got no reply"
        if symptom.no_reply and failing_step is not None and seen.step != failing_step:
            return f"no reply at step {seen.step}; the symptom is at step {failing_step}"
    return None


def likeness(case: RegressionCase, task_text: str | None, trial: Trial) -> Likeness | None:
    """Return how a failed, redacted `trial` relates to `case`; None where its symptom is another one.

    The failure came back (`same`) only where the trial is of the case's task: both task ids are recorded and
    equal, or one is absent and the task texts are equal. A case digest is bound to its task, so the same symptom
    on another task is a look-alike; so is one at another step. Off the case's own task only an error of the type
    that the case recorded is alike: that a call was left unanswered, or how a trial ended, is shared by failures
    that have nothing else in common. A case without a symptom match takes any failure of its task, as live
    attempts do, and has no look-alikes; neither has a symptom that asks for nothing but how the trial ended.
    """
    symptom, step = case.symptom_match, case.observation.failing_step
    task = same_task(case, task_text, trial)
    if symptom is None:
        return "same" if task else None
    seen = ending_of(trial)
    if differs(seen, symptom, step) is None and task:
        return "same"
    if differs(seen, symptom, None) is not None:
        return None
    if task:
        return "other-step" if symptom.error_type is not None or symptom.no_reply else None
    if symptom.error_type is None:
        return None
    return "task-not-recorded" if task is None else "other-task"


def signature(trial: Trial) -> str:
    """Return how a failed trial ended, as words that trials of any task and format can share.

    The parts are those of a symptom match: termination, the error's type, `no-reply`; where the trial ended by
    itself, or nothing says how, the outcome. The step is not among them: it differs from task to task.
    """
    parts: list[str] = [trial.termination or "end-not-recorded"]
    kind = trial.error.type if trial.error is not None else None
    if kind is not None:
        parts.append(kind if _NAME.fullmatch(kind) else "unnamed-error")
    if trial.no_reply:
        parts.append("no-reply")
    if trial.termination in (None, "finished"):
        parts.append(trial.outcome)
    return ":".join(parts)


def same_task(case: RegressionCase, task_text: str | None, trial: Trial) -> bool | None:
    """Say whether the trial is of the case's task; None where nothing recorded says so."""
    known = case.observation.task_id
    if known is not None and trial.task_id is not None:
        return known == trial.task_id
    texts = [(each or "").strip() for each in (task_text, trial.task_text)]
    return texts[0] == texts[1] if all(texts) else None


def _searched(pattern: str, names: Collection[str]) -> bool:
    try:
        wanted = re.compile(pattern)
    except re.error:  # a case file with such a pattern does not load; a record built by hand may hold one
        wanted = re.compile(re.escape(pattern))
    return any(wanted.search(name) for name in names)
