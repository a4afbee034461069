"""Live attempts: whether one is clean, brought the symptom back, or failed in another way.

Knows the symptom of a case. Clean needs positive proof; what is not proven clean is never called so. Must not
import the expectations: they are about simulated faults.
"""

from pytest_regcase.records.base import Record
from pytest_regcase.records.case import SymptomMatch
from pytest_regcase.records.observed import Observed
from pytest_regcase.records.words import AttemptVerdict, InconclusiveReason, Termination
from pytest_regcase.recovery.failure_lines import quote_of
from pytest_regcase.recovery.given_texts import complete_replies, transcript_answers
from pytest_regcase.recovery.marks import ended_badly, ended_by_us, exit_words, mark_of
from pytest_regcase.recovery.symptom import Ending, differs, error_types, left_unanswered

UNREACHED = ("the upstream refused the connection", "the upstream could not be reached")
"""How the supplier's words begin when a request got to nobody."""


class LiveResult(Record):
    """The verdict on one live attempt."""

    verdict: AttemptVerdict
    says: str
    reason: InconclusiveReason | None = None


def judge_live(observed: Observed, symptom: SymptomMatch | None) -> LiveResult:
    """Judge one live attempt; whether the task was solved does not matter.

    A failed attempt is `recurred` where every given key of `symptom` matches, and where the case names no symptom
    (then nothing tells it from another failure, and a failure is never hidden). One that ended well before it got
    as far as the recorded failing step proves nothing about that step.
    """
    mark = mark_of(observed)
    if mark.says == "unclear" and not ended_by_us(observed):
        says = f"{mark.place} = {quote_of(mark.quote)} is no word we can read"
        return LiveResult(verdict="inconclusive", reason="machinery-broke", says=says)
    unreachable = _unreachable(observed)
    if unreachable is not None:
        return LiveResult(verdict="inconclusive", reason="no-live-supplier", says=unreachable)
    trouble = _trouble(observed)
    if trouble is not None:
        step = observed.recorded_failing_step
        other = differs(_ending(observed), symptom, step) if symptom is not None else None
        if other is None:
            return LiveResult(verdict="recurred", says=trouble)
        return LiveResult(verdict="failed-otherwise", says=f"{trouble}; {other}")
    seen = _supplier_failure(observed)
    if seen is not None:
        return LiveResult(verdict="failed-otherwise", says=f"ended by itself, but on the way {seen}")
    answered = _answered(observed)
    needed = observed.recorded_failing_step or 1
    if answered < needed:
        says = f"ended well after {answered} of the {needed} replies up to the recorded failing step"
        return LiveResult(verdict="inconclusive", reason="cut-short", says=says)
    return LiveResult(verdict="clean", says=f"ended by itself after {answered} replies; no failure was seen")


def _unreachable(observed: Observed) -> str | None:
    """Return why no draw was made: nobody at the supplier's address took one single request of this attempt.

    A supplier that answered first and was gone later is another matter: that may be the symptom.
    """
    failures = observed.wire.upstream_failures
    if not failures or complete_replies(observed) or not all(map(_never_got_there, failures)):
        return None
    return f"no draw was made: {quote_of(failures[0])}; see base_url in [tool.regcase.upstream]"


def _never_got_there(failure: str) -> bool:
    return failure.startswith(UNREACHED)


def _trouble(observed: Observed) -> str | None:
    """Return why the attempt did not end well by its own decision; None where it did."""
    if ended_by_us(observed):
        waiting = " while it waited for an answer" if observed.wire.open_at_end else ""
        return f"ended by us ({observed.exit.ended_by}){waiting}"
    if observed.exit.signal is not None:
        return f"ended by {exit_words(observed)}"
    trial = observed.artefact
    if trial is not None and trial.error is not None and trial.error.raised_by != "grader":
        return quote_of(": ".join(part for part in (trial.error.type, trial.error.message) if part) or "an error")
    mark = mark_of(observed)
    if mark.says == "finished":
        return None
    if mark.says == "failed":
        return f"{mark.place} = {quote_of(mark.quote)}"
    if trial is not None and trial.termination is not None:
        return f"termination = {trial.termination}"
    if ended_badly(observed) or observed.exit.code is None:
        return f"no status, {exit_words(observed)}"
    return None


def _supplier_failure(observed: Observed) -> str | None:
    if observed.wire.upstream_failures:
        return f"the supplier failed: {quote_of(observed.wire.upstream_failures[0])}"
    for line in observed.artefact.steps if observed.artefact is not None else ():
        if line.error is not None:
            return f"a call failed at step {line.step}: {quote_of(line.error)}"
    return None


def _answered(observed: Observed) -> int:
    """Count the model's replies: on the wire where it was ours, else in the transcript of a sweep."""
    if not _of_sweep(observed):
        return len(complete_replies(observed))
    return sum(not answer.empty for answer in transcript_answers(observed))


def _of_sweep(observed: Observed) -> bool:
    """Say whether it is a trial of someone's sweep: no process of ours ran, and no request came to us."""
    return not observed.wire.requests and observed.exit.code is None and observed.exit.signal is None


def _ending(observed: Observed) -> Ending:
    """Return how a failed attempt ended: what the wire shows of it where the wire was ours."""
    trial = observed.artefact
    if _of_sweep(observed):
        unanswered = trial is not None and left_unanswered(trial)
    else:
        wire = observed.wire
        unanswered = wire.open_at_end > 0 or wire.steps_reached > len(complete_replies(observed))
    return Ending(_terminations(observed), error_types(trial), unanswered, _answered(observed) + 1)


def _terminations(observed: Observed) -> frozenset[Termination]:
    recorded = observed.artefact.termination if observed.artefact is not None else None
    ends: set[Termination] = {recorded} if recorded is not None else set()
    if ended_by_us(observed):
        ends.add("cut-off")
    elif not ends:
        ends.add("error")
    return frozenset(ends)
