"""Trials of somebody's sweep as live attempts: whether one is clean, shows the symptom, or failed in another way.

Pure. The rule is that of live attempts (`recovery.live`); here is what a trial has beside it: an outcome that a
grader gave, and earlier attempts of it that the harness made again.
"""

from typing import Final

from pytest_regcase.records.attempt import Exit
from pytest_regcase.records.case import SymptomMatch
from pytest_regcase.records.observed import Observed
from pytest_regcase.records.trial import Trial, TrialError
from pytest_regcase.records.wire import WireFacts
from pytest_regcase.recovery.failure_lines import quote_of
from pytest_regcase.recovery.live import LiveResult, judge_live
from pytest_regcase.recovery.symptom import differs, ending_of

_NOT_THE_AGENTS: Final = frozenset({"environment", "harness"})
"""Whose errors are no draw of the agent's or the supplier's, unless the case's symptom is just that error."""


def judge_trial(trial: Trial, symptom: SymptomMatch | None, failing_step: int | None) -> LiveResult:
    """Judge one trial of a sweep by the case's symptom; `failing_step` is the case's, None for another task.

    `inconclusive` is a trial that was not run to an end of its own: cancelled, never started, ended by its
    environment or harness, or one of which nothing says how it ended. A grader's word decides nothing but where
    the symptom is a failed outcome: then only one that passed can be clean. Else it does not matter whether the
    task was solved, as in attempts of ours.
    """
    if trial.termination in ("cancelled", "never-started"):
        return _not_run(f"termination = {trial.termination}")
    by_outcome = trial.error is None or trial.error.raised_by == "grader"
    if by_outcome and trial.termination in (None, "finished"):
        settled = _by_outcome(trial, symptom, failing_step)
        if settled is not None:
            return settled
    result = judge_live(_observed(trial, failing_step), symptom)
    raised_by = trial.error.raised_by if trial.error is not None else None
    if result.verdict == "failed-otherwise" and raised_by in _NOT_THE_AGENTS:
        return _not_run(f"ended by an error of the {raised_by}: {result.says}")
    return result


def judge_retried(error: TrialError, symptom: SymptomMatch | None) -> LiveResult:
    """Judge an attempt that its harness made again: a draw that failed, of which only the error is kept.

    Whether a reply was missing, and at which step, is in no record: it shows the symptom where nothing that is
    recorded says otherwise.
    """
    says = "made again by the harness after " + quote_of(
        ": ".join(part for part in (error.type, error.message) if part) or "an error"
    )
    if error.raised_by in _NOT_THE_AGENTS:
        return _not_run(says)
    asked = symptom.model_copy(update={"no_reply": None}) if symptom is not None else None
    attempt = Trial(format="retried", event_id="retried", event_id_from="digest", termination="error", error=error)
    other = differs(ending_of(attempt), asked, None) if asked is not None else None
    if other is None:
        return LiveResult(verdict="recurred", says=says)
    return LiveResult(verdict="failed-otherwise", says=f"{says}; {other}")


def _by_outcome(trial: Trial, symptom: SymptomMatch | None, failing_step: int | None) -> LiveResult | None:
    """Return what the outcome settles of a trial that raised nothing; None where it settles nothing."""
    other = differs(ending_of(trial), symptom, failing_step) if symptom is not None else None
    asks_outcome = symptom is None or "finished" in symptom.termination
    if trial.outcome == "failed":
        if other is None:
            return LiveResult(verdict="recurred", says="it ended, and is scored as failed")
        if trial.termination is None:
            return LiveResult(verdict="failed-otherwise", says=f"scored as failed; {other}")
    elif trial.outcome == "undetermined" and asks_outcome:
        return _not_run("it ended, and nothing says whether it passed, which is what the case's symptom asks")
    if trial.termination is None:
        return _not_run("nothing says how it ended")
    return None


def _not_run(says: str) -> LiveResult:
    return LiveResult(verdict="inconclusive", reason="cut-short", says=says)


def _observed(trial: Trial, failing_step: int | None) -> Observed:
    """No process of ours ran and no request came to us: all there is, is the record."""
    return Observed(
        kind="live",
        wire=WireFacts(),
        exit=Exit(),
        ended_seconds=0.0,
        artefact=trial,
        can_show=trial.can_show,
        recorded_failing_step=failing_step,
    )
