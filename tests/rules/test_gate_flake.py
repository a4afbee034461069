"""What first attempts of earlier sessions make of a check that failed once."""

from typing import Any

import pytest

from pytest_regcase.records.decision import GateDecision, Reason
from pytest_regcase.records.words import Profile
from pytest_regcase.rules.drift import drift_alarm
from pytest_regcase.rules.flake import FirstAttempt
from pytest_regcase.rules.gate import decide
from pytest_regcase.rules.quarantine import Proposal, propose
from tests.rules.attempt_samples import (
    SIMULATION,
    a_case,
    a_quarantine,
    case_inputs,
    control,
    first_tries,
    gate_inputs,
    simulation,
)

FLAKY = (control("finished"), simulation("not-recovered", "recovered", "recovered"))
OVER_BUDGET = first_tries("pf" + 9 * "p" + "f" + 8 * "p")
"""20 first attempts, 2 failed: the exact lower bound is 1.8 %; far apart, so that no alarm stands."""
DRIFTING = first_tries(30 * "p" + "fpff")
"""Three of the last four failed; too few sessions to be over a budget of 10 %."""


def of(history: tuple[FirstAttempt, ...], **changes: Any) -> GateDecision:
    given = {"checks": FLAKY, **changes.pop("case", {})}
    noisy = case_inputs(a_case(**changes.pop("file", {})), first_attempts={SIMULATION: history}, **given)
    decision = decide(gate_inputs(case_inputs(a_case("other")), noisy, **changes))
    assert {each.case_id for each in decision.reasons} <= {noisy.case_id}
    return decision


def proposal() -> Proposal:
    found = propose(OVER_BUDGET, budget="0.01", risk="0.05")
    assert isinstance(found, Proposal)
    return found


def codes(decision: GateDecision, red: bool) -> list[str]:
    return [each.code for each in decision.reasons if each.red is red]


def reason(decision: GateDecision, code: str) -> Reason:
    return next(each for each in decision.reasons if each.code == code)


@pytest.mark.parametrize(
    ("profile", "decided"), [("pull-request", "pass"), ("nightly", "fail"), ("release", "fail")]
)
def test_flaky_over_budget_is_red_outside_of_pull_requests(profile: Profile, decided: str) -> None:
    decision = of(OVER_BUDGET, profile=profile)
    assert decision.decision == decided
    found = reason(decision, "flaky-over-budget")
    assert found.red is (decided == "fail")
    assert found.text == f"{SIMULATION}: FLAKY, and over its budget; {proposal().says}"
    assert {"flaky", "quarantine-proposed"} <= set(codes(decision, red=False))


@pytest.mark.parametrize(
    ("profile", "decided"), [("pull-request", "pass"), ("nightly", "fail"), ("release", "fail")]
)
def test_flaky_while_the_drift_alarm_stands_is_red_outside_of_pull_requests(
    profile: Profile, decided: str
) -> None:
    decision = of(DRIFTING, profile=profile, flake_budget="0.10")
    assert decision.decision == decided
    assert "flaky-over-budget" not in [each.code for each in decision.reasons]
    found = reason(decision, "drift-alarm")
    assert found.red is (decided == "fail")
    alarm = drift_alarm(DRIFTING)
    assert alarm is not None
    assert found.text == f"{SIMULATION}: it fails more often than it did; {alarm.says}"


@pytest.mark.parametrize("profile", ["pull-request", "nightly", "release"])
@pytest.mark.parametrize("history", [OVER_BUDGET, DRIFTING])
def test_a_check_that_is_not_flaky_now_is_not_red_for_its_past(
    profile: Profile, history: tuple[FirstAttempt, ...]
) -> None:
    good = {"checks": (control("finished"), simulation("recovered"))}
    decision = of(history, profile=profile, case=good)
    assert decision.decision == "pass"
    assert codes(decision, red=False)
    assert "flaky-over-budget" not in codes(decision, red=False)


@pytest.mark.parametrize(
    "history",
    [
        (),
        first_tries("f"),
        first_tries("pppppppppf"),
        # One failure never is a rate; neither are two of 19, nor two where the budget is 10 %.
        first_tries(19 * "p" + "f"),
        first_tries("f" + 17 * "p" + "f"),
        first_tries("f" + 18 * "p" + "f", digests="same"),
    ],
)
def test_too_little_is_a_note_only(history: tuple[FirstAttempt, ...]) -> None:
    decision = of(history, profile="nightly", flake_budget="0.05")
    assert (decision.decision, [each.code for each in decision.reasons]) == ("pass", ["flaky"])


def test_what_proved_nothing_is_neither_failed_nor_passed() -> None:
    nearly = of(first_tries("pf" + 9 * "p" + "f" + 7 * "p" + "u"), profile="nightly")
    assert (nearly.decision, codes(nearly, red=True)) == ("pass", [])
    drifting = of(first_tries(30 * "p" + "fuff" + 20 * "u"), profile="nightly", flake_budget="0.10")
    assert codes(drifting, red=True) == ["drift-alarm"]


def test_a_scenario_that_only_fails_is_no_flake() -> None:
    decision = of(first_tries(30 * "f", confirmed=False), profile="nightly", flake_budget="0.10")
    assert "quarantine-proposed" not in [each.code for each in decision.reasons]


def test_scenarios_are_not_pooled() -> None:
    noisy = case_inputs(a_case(), checks=FLAKY, first_attempts={"another-v1": OVER_BUDGET, "live": DRIFTING})
    decision = decide(gate_inputs(noisy, profile="nightly"))
    assert (decision.decision, [each.code for each in decision.reasons]) == ("pass", ["flaky"])


def test_the_proposal_names_what_to_write_and_writes_nothing() -> None:
    by_hand = reason(of(OVER_BUDGET), "quarantine-proposed")
    assert by_hand.text == f"{SIMULATION}: {proposal().says}. Its owner may quarantine it"
    proposed = reason(of(OVER_BUDGET, quarantine="auto"), "quarantine-proposed")
    assert proposed.text == (
        f"{SIMULATION}: {proposal().says}. Proposed, and written nowhere: "
        '[quarantine] kind = "flaky", reason = "2 of 20 first attempts failed"'
    )
    assert not by_hand.red
    assert not proposed.red
    assert of(OVER_BUDGET).decision == of(OVER_BUDGET, quarantine="auto").decision


@pytest.mark.parametrize("profile", ["pull-request", "nightly", "release"])
def test_a_quarantined_case_is_not_red_for_it_and_is_proposed_no_more(profile: Profile) -> None:
    for history in (OVER_BUDGET, DRIFTING):
        decision = of(history, profile=profile, file={"quarantine": a_quarantine()})
        assert decision.decision == "pass"
        assert "quarantine-proposed" not in [each.code for each in decision.reasons]


def test_the_risk_of_the_bound_is_that_of_the_case() -> None:
    rule = {"max_failure_rate": "0.10", "risk": "0.001"}
    strict = case_inputs(a_case(), checks=FLAKY, first_attempts={SIMULATION: OVER_BUDGET}, rule=rule)
    decision = decide(gate_inputs(strict, profile="nightly"))
    assert "flaky-over-budget" not in [each.code for each in decision.reasons]
