"""One word for what became of a requested trial, and what a run's quality and a retry follow from.

Pure: counts on facts that somebody read; knows no file and no report.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pytest_regcase.records.base import Record
from pytest_regcase.records.words import FailureCauseWord, Quality, Retry, StepRole, TrialStatus


@dataclass(frozen=True)
class TrialFacts:
    """What is recorded of one requested trial."""

    reached: bool
    """There is a record of it, be it half a line."""
    interrupted: bool = False
    """Nobody wrote its end, or it was cancelled."""
    agent_failed: bool = False
    """By our own record or by the prediction's mark, whatever a scorer says."""
    patch_capture_failed: bool = False
    resolved: bool | None = None
    """None: nobody scored it."""
    empty_patch: bool = False


def trial_status(facts: TrialFacts) -> TrialStatus:
    """Return the first status that holds, in the order of the words."""
    if not facts.reached:
        return "not_reached"
    if facts.interrupted:
        return "interrupted"
    if facts.agent_failed:
        return "agent_error"
    if facts.patch_capture_failed:
        return "patch_capture_failed"
    if facts.resolved is None:
        return "unscored"
    if facts.empty_patch:
        return "empty_patch"
    return "resolved" if facts.resolved else "unresolved"


@dataclass(frozen=True)
class Loss:
    """A step that failed: its role says what was lost, its cause whether that may come back."""

    role: StepRole
    cause: FailureCauseWord


class RunQuality(Record):
    """How whole a run is, and when running it again may help."""

    quality: Quality
    retry: Retry | None = None
    """Absent where nothing is missing."""


def run_quality(losses: Iterable[Loss], *, agent_failed: FailureCauseWord | None, interrupted: bool) -> RunQuality:
    """Return the quality of a run that was reached.

    `agent_failed` is the cause of what ended the agent; None where it ended well. A lost step of role `other` that
    a task tolerates leaves the run complete. A retry makes sense where every cause may pass; with one rejected
    key, or one cause that nobody knows, it is `never`. An interrupted run lacks nothing but time.
    """
    lost = list(losses)
    if interrupted:
        return RunQuality(quality="agent-failed", retry="now")
    if agent_failed is not None:
        return RunQuality(quality="agent-failed", retry=_retry([agent_failed]))
    ungraded = [each.cause for each in lost if each.role == "grader"]
    unseen = [each.cause for each in lost if each.role == "evidence"]
    if ungraded:
        return RunQuality(quality="unscored", retry=_retry(ungraded))
    if unseen:
        return RunQuality(quality="degraded", retry=_retry(unseen))
    return RunQuality(quality="complete")


def _retry(causes: list[FailureCauseWord]) -> Retry:
    if any(each in ("key_auth", "unknown") for each in causes):
        return "never"
    return "after-budget-reset" if "key_budget" in causes else "now"
