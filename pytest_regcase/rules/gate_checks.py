"""How one control or simulation came out over its tries. Pure."""

from collections import Counter
from collections.abc import Mapping

from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.decision import BrokenFinding, ScenarioResult
from pytest_regcase.records.words import EXPECTATIONS, OPTIONAL_EXPECTATIONS, Expectation, InconclusiveReason
from pytest_regcase.rules.gate_inputs import PlannedCheck
from pytest_regcase.rules.policies import Policy, check_result

SAYS_WHY: Mapping[InconclusiveReason, str] = {
    "not-delivered": "the fault did not reach the agent",
    "off-the-prefix": "the agent left the recorded replies",
    "control-failed": "the control of this session did not finish",
    "no-live-supplier": "there is no live supplier; see [tool.regcase.upstream]",
    "machinery-broke": "the attempt could not be made or read",
    "worker-crashed": "the test worker crashed",
    "cut-short": "it was cut short",
    "independence-unknown": "nothing shows that it is an independent draw",
}
"""Why an attempt proves nothing, without anything that differs from one run to the next."""

TRY_MISSING = "an earlier try of it is not there, or was of another revision"
"""A confirm run is no first attempt: what passed after something unknown is no pass."""

DID_NOT_FINISH = "the agent ended before it asked for the failing step"

SAYS_BROKEN: Mapping[Expectation, str] = {
    "log_failure": "the failure was not logged",
    "max_retries": "it kept asking beyond its retry budget",
    "stop_within_seconds": "it did not stop within its time budget",
    "no_fabricated_output": "it handed in output that no reply accounts for",
    "no_partial_submission": "it submitted partial work",
    "keep_partial_patch": "partial work was not kept for diagnosis",
    "mark_failure": "the result was not marked as a failure",
    "no_repeated_side_effect": "it did again what it had done before the fault",
}
"""What broke, in words that are the same in every run; the measured facts stand on the attempts."""


def check_scenario(check: PlannedCheck, policy: Policy, *, control_failed: bool = False) -> ScenarioResult:
    """Return how the check came out; `control_failed` makes a simulation inconclusive whatever it showed."""
    tries = sorted(check.tries, key=lambda each: each.try_number)
    if not tries:
        return ScenarioResult(name=check.scenario, planned=1, run=0)
    crashed = any(each.reason == "worker-crashed" for each in tries)
    result = check_result(policy, [each.verdict for each in tries], crashed=crashed)
    why = _why(tries, crashed) if result == "inconclusive" else None
    if result in ("passed", "flaky") and tries[-1].try_number >= len(tries):
        result, why = "inconclusive", TRY_MISSING
    if control_failed:
        result, why = "inconclusive", SAYS_WHY["control-failed"]
    decided = next((each for each in reversed(tries) if each.findings and each.verdict != "inconclusive"), None)
    findings = decided.findings if decided else ()
    cannot_see = [each.expectation for each in findings if each.status == "not-observable"]
    return ScenarioResult(
        name=check.scenario,
        planned=1,
        run=len(tries),
        counts=dict(sorted(Counter(each.verdict for each in tries).items())),
        result=result,
        checked=len(findings) - len(cannot_see) if findings else None,
        checked_of=len(findings) or len(EXPECTATIONS),
        cannot_see=tuple(cannot_see),
        broken=_broken(tries),
        flaky=result == "flaky",
        why=why,
    )


def _why(tries: list[AttemptRecord], crashed: bool) -> str:
    if crashed:
        return SAYS_WHY["worker-crashed"]
    reasons = [each.reason for each in tries if each.reason is not None]
    return SAYS_WHY[reasons[-1]] if reasons else DID_NOT_FINISH


def _broken(tries: list[AttemptRecord]) -> tuple[BrokenFinding, ...]:
    """Every finding that broke in any try, each once, in the order in which expectations are listed."""
    order = (*EXPECTATIONS, *OPTIONAL_EXPECTATIONS)
    found = {
        (order.index(finding.expectation), finding.code or ""): BrokenFinding(
            expectation=finding.expectation, code=finding.code, says=SAYS_BROKEN[finding.expectation]
        )
        for each in tries
        for finding in each.broken
    }
    return tuple(found[key] for key in sorted(found))
