"""How one check came out over its tries: everything that is said of it."""

from typing import Any

import pytest

from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.decision import BrokenFinding, ScenarioResult
from pytest_regcase.records.words import EXPECTATIONS, OPTIONAL_EXPECTATIONS
from pytest_regcase.rules.gate_checks import SAYS_BROKEN, SAYS_WHY, TRY_MISSING, check_scenario
from pytest_regcase.rules.gate_inputs import PlannedCheck
from pytest_regcase.rules.policies import policy_for
from tests.rules.attempt_samples import SIMULATION, a_finding, an_attempt, findings, simulation

CONFIRM = policy_for("confirm:2")


def of(*tries: AttemptRecord, control_failed: bool = False) -> ScenarioResult:
    check = PlannedCheck(scenario=SIMULATION, kind="simulation", tries=tries)
    return check_scenario(check, CONFIRM, control_failed=control_failed)


def test_not_run() -> None:
    assert of() == ScenarioResult(name=SIMULATION, planned=1, run=0, result="not-run")
    assert of(control_failed=True).result == "not-run"


def test_passed() -> None:
    assert of(an_attempt("recovered", findings=findings(unseen=["max_retries"]))) == ScenarioResult(
        name=SIMULATION,
        planned=1,
        run=1,
        counts={"recovered": 1},
        result="passed",
        checked=6,
        checked_of=7,
        cannot_see=("max_retries",),
    )


def test_fewer_expectations_are_fewer_to_check() -> None:
    two = (a_finding("log_failure"), a_finding("max_retries", "not-applicable"))
    found = of(an_attempt("recovered", findings=two))
    assert (found.checked, found.checked_of) == (2, 2)
    none = of(an_attempt("recovered"))
    assert (none.checked, none.checked_of, none.why) == (None, 7, None)


def test_the_last_try_that_decided_says_what_was_checked() -> None:
    decided = an_attempt("not-recovered", findings=findings(["mark_failure"], unseen=["log_failure"]))
    nothing = an_attempt("inconclusive", try_number=1, reason="cut-short", findings=findings())
    found = of(nothing, decided)
    assert (found.checked, found.cannot_see) == (6, ("log_failure",))
    bare = an_attempt("recovered", try_number=2)
    assert of(decided, nothing, bare).checked == 6
    assert of(nothing.model_copy(update={"try_number": 0})).checked is None


def test_the_policy_says_what_the_tries_come_to() -> None:
    check = simulation("not-recovered", "recovered", "recovered")
    flaky = check_scenario(check, CONFIRM)
    assert (flaky.result, flaky.flaky, flaky.run) == ("flaky", True, 3)
    broken = check_scenario(check, policy_for("first"))
    assert (broken.result, broken.flaky) == ("broken", False)


def test_no_later_try_turns_a_crash_green() -> None:
    crashed = an_attempt("inconclusive", reason="worker-crashed")
    found = of(crashed, an_attempt("recovered", try_number=1, findings=findings()))
    assert (found.result, found.why) == ("inconclusive", "the test worker crashed")


def test_a_failed_control_is_the_reason_whatever_was_shown() -> None:
    for check in (simulation("recovered"), simulation("not-recovered", "not-recovered")):
        found = check_scenario(check, CONFIRM, control_failed=True)
        assert (found.result, found.why) == ("inconclusive", "the control of this session did not finish")


@pytest.mark.parametrize(
    ("reasons", "why"),
    [
        (["not-delivered", "cut-short"], "it was cut short"),
        (["cut-short", "not-delivered"], "the fault did not reach the agent"),
        # A crash is told also where a later try proved nothing for another reason.
        (["worker-crashed", "not-delivered"], "the test worker crashed"),
        (["machinery-broke"], "the attempt could not be made or read"),
        (["off-the-prefix"], "the agent left the recorded replies"),
        (["no-live-supplier"], "there is no live supplier; see [tool.regcase.upstream]"),
        (["independence-unknown"], "nothing shows that it is an independent draw"),
        (["control-failed"], "the control of this session did not finish"),
    ],
)
def test_why_it_proved_nothing(reasons: list[str], why: str) -> None:
    tries = [an_attempt("inconclusive", try_number=place, reason=each) for place, each in enumerate(reasons)]
    found = of(*reversed(tries))
    assert (found.result, found.why) == ("inconclusive", why)


def test_a_control_without_a_reason_ended_before_it_got_there() -> None:
    made = an_attempt("did-not-finish", "control")
    found = check_scenario(PlannedCheck(scenario="control", kind="control", tries=(made,)), CONFIRM)
    assert found.why == "the agent ended before it asked for the failing step"


def test_what_broke_stands_in_the_order_of_expectations_and_codes_each_once() -> None:
    first = (
        a_finding("no_repeated_side_effect", "broken"),
        a_finding("mark_failure", "broken", code="unmarked"),
        a_finding("max_retries", "broken", code="B"),
        a_finding("max_retries", "broken"),
    )
    second = (a_finding("max_retries", "broken", code="A"), a_finding("max_retries", "broken", code="B"))
    found = of(
        an_attempt("not-recovered", findings=first), an_attempt("not-recovered", try_number=1, findings=second)
    )
    assert found.broken == (
        BrokenFinding(expectation="max_retries", code=None, says="it kept asking beyond its retry budget"),
        BrokenFinding(expectation="max_retries", code="A", says="it kept asking beyond its retry budget"),
        BrokenFinding(expectation="max_retries", code="B", says="it kept asking beyond its retry budget"),
        BrokenFinding(expectation="mark_failure", code="unmarked", says="the result was not marked as a failure"),
        BrokenFinding(
            expectation="no_repeated_side_effect", says="it did again what it had done before the fault"
        ),
    )


def test_every_word_has_a_sentence() -> None:
    assert len(set(SAYS_WHY.values())) == len(SAYS_WHY) == 8
    assert set(SAYS_BROKEN) == {*EXPECTATIONS, *OPTIONAL_EXPECTATIONS}
    assert len(set(SAYS_BROKEN.values())) == len(SAYS_BROKEN)


@pytest.mark.parametrize(
    ("numbers", "verdicts"),
    [((1,), ["recovered"]), ((0, 1, 3), ["not-recovered", "recovered", "recovered"])],
)
def test_what_passed_after_a_try_that_is_not_there_is_no_pass(
    numbers: tuple[int, ...], verdicts: list[Any]
) -> None:
    made = [an_attempt(each, try_number=number) for number, each in zip(numbers, verdicts, strict=True)]
    found = of(*made)
    assert (found.result, found.flaky, found.why) == ("inconclusive", False, TRY_MISSING)
