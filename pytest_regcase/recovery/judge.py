"""The judge: what was observed against what was expected.

Knows the order of the questions: does the attempt prove anything, which findings broke, what follows. Pure: no
clock, files or network; it never raises for what an attempt shows.
"""

from collections.abc import Sequence

from pytest_regcase.records.attempt import Finding
from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.case import SymptomMatch
from pytest_regcase.records.expected_recovery import ExpectedRecovery
from pytest_regcase.records.observed import Observed
from pytest_regcase.records.words import AttemptVerdict, InconclusiveReason
from pytest_regcase.recovery.expectations import findings_of
from pytest_regcase.recovery.live import judge_live
from pytest_regcase.recovery.marks import exit_words
from pytest_regcase.recovery.stopping import stop_of


class Judgement(Record):
    """What one attempt shows."""

    findings: Many[Finding] = ()
    """One an expectation, in the order of `EXPECTATIONS`, for a simulation; none for control and live."""
    verdict: AttemptVerdict
    says: str | None = None
    """In words, what makes the verdict."""
    reason: InconclusiveReason | None = None


def judge(expected: ExpectedRecovery, observed: Observed, symptom: SymptomMatch | None) -> Judgement:
    """Judge one attempt; `expected` is what is asked under its hypothesis (`ExpectedRecovery.under`).

    `symptom` is read for live attempts only. An attempt without an upstream is for the session to mark.
    """
    if observed.exit.ended_by == "cut-short":
        findings = findings_of(expected, observed) if observed.kind == "simulation" else ()
        return _inconclusive("cut-short", "the session ended before the attempt did", findings)
    if observed.kind == "live":
        live = judge_live(observed, symptom)
        return Judgement(verdict=live.verdict, says=live.says, reason=live.reason)
    if observed.kind == "control":
        return _judge_control(observed)
    return _judge_simulation(expected, observed)


def checked_words(findings: Sequence[Finding]) -> str:
    """Say how many expectations could be checked, and which could not be seen."""
    unseen = [each.expectation for each in findings if each.status == "not-observable"]
    checked = f"checked {len(findings) - len(unseen)} of {len(findings)}"
    return f"{checked}, cannot see: {', '.join(unseen)}" if unseen else checked


def _judge_control(observed: Observed) -> Judgement:
    """Judge a run without a fault: it must ask for the recorded failing step, or get the last recorded reply.

    How it ends after that is judged by who ended it: ``control-done`` is ours by plan, a deadline or cap is not.
    """
    wire = observed.wire
    if wire.off_prefix:
        return _inconclusive("off-the-prefix", wire.off_prefix[0])
    there = wire.asked_for_failing_step or (observed.recorded_failing_step is None and wire.got_last_reply)
    if there and observed.exit.ended_by in (None, "control-done"):
        return Judgement(verdict="finished", says=f"followed the recorded replies to step {wire.steps_reached}")
    reached = f"reached step {wire.steps_reached}"
    if observed.recorded_failing_step is not None:
        reached += f" of {observed.recorded_failing_step}"
    by = observed.exit.ended_by
    ended = f"ended by us ({by})" if by is not None else f"ended by itself ({exit_words(observed)})"
    return Judgement(verdict="did-not-finish", says=f"{reached}, then {ended}")


def _judge_simulation(expected: ExpectedRecovery, observed: Observed) -> Judgement:
    findings = findings_of(expected, observed)
    wire = observed.wire
    if wire.off_prefix:
        return _inconclusive("off-the-prefix", wire.off_prefix[0], findings)
    if wire.delivered is not True:
        return _inconclusive("not-delivered", wire.why_not or "the wire shows no fault", findings)
    broken = [each.expectation for each in findings if each.status == "broken"]
    if broken:
        return Judgement(findings=findings, verdict="not-recovered", says=f"broken: {', '.join(broken)}")
    stop = stop_of(observed)
    watched = stop.watched_seconds
    # Below its time to stop a hanging agent and a patient one look alike, and most findings cannot be seen.
    if (
        expected.stop_within_seconds is not None
        and stop.how in ("still-waiting", "ended-by-us")
        and watched is not None
        and watched <= expected.stop_within_seconds
    ):
        budget = f"{observed.exit.ended_by}_seconds"
        says = (
            f"we ended the agent ({observed.exit.ended_by}) {watched:.1f} s after the first faulted request,"
            f" and it has {expected.stop_within_seconds:g} s to stop; raise the agent's {budget}"
        )
        return _inconclusive("cut-short", says, findings)
    unseen = [
        each.expectation
        for each in findings
        if each.status == "not-observable" and each.expectation in expected.required
    ]
    if unseen:
        # Machinery in the wide sense: what should have made it visible (an importer, a declared place) did not.
        says = f"required, but not observable: {', '.join(unseen)}"
        return _inconclusive("machinery-broke", says, findings)
    return Judgement(findings=findings, verdict="recovered", says=checked_words(findings))


def _inconclusive(why: InconclusiveReason, says: str, findings: tuple[Finding, ...] = ()) -> Judgement:
    return Judgement(findings=findings, verdict="inconclusive", says=says, reason=why)
