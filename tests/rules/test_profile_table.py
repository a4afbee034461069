"""The profile table of the design, section 10, cell by cell, crossed with case states and quarantine.

What is expected is written down here from the table; nothing of it is taken from the code. `fail`: something was
seen to be wrong. `unproven`: a check did not happen, or a claim is not borne out.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from pytest_regcase.records.case import RegressionCase, Retired
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.words import AttemptVerdict, InconclusiveReason, Profile
from pytest_regcase.rules.gate import decide
from pytest_regcase.rules.gate_inputs import CaseInputs, PlannedCheck
from tests.rules.attempt_samples import (
    FIXED_AT,
    SIMULATION,
    TODAY,
    a_case,
    a_fix,
    a_quarantine,
    an_attempt,
    case_inputs,
    control,
    findings,
    first_tries,
    gate_inputs,
    good_checks,
    live,
    live_run,
    simulation,
)

PROFILES: tuple[Profile, ...] = ("pull-request", "nightly", "release")
EVENT: dict[str, Any] = {"at": FIXED_AT, "by": "x"}
CLOSED = {"closed": [{**EVENT, "revision": "r", "numbers": {}}]}
FLAKY = (control("finished"), simulation("not-recovered", "recovered", "recovered"))
CLEAN: list[AttemptVerdict] = ["clean"] * 29


class Cell(NamedTuple):
    """What a row of the table makes red."""

    given: dict[str, Any]
    red: Mapping[Profile, set[str]] = {}
    """Profile -> reason codes; a profile that is missing is green."""
    decision: str = "fail"
    """Of a red profile."""
    state: str = "open"


def everywhere(*codes: str) -> dict[Profile, set[str]]:
    return {profile: set(codes) for profile in PROFILES}


def outside_of_pull_requests(code: str) -> dict[Profile, set[str]]:
    return {"nightly": {code}, "release": {code}}


def unknown(*reasons: InconclusiveReason) -> tuple[PlannedCheck, ...]:
    made = tuple(
        an_attempt("inconclusive", SIMULATION, try_number=number, reason=reason)
        for number, reason in enumerate(reasons)
    )
    return control("finished"), PlannedCheck(scenario=SIMULATION, kind="simulation", tries=made)


def crashed_then_good() -> tuple[PlannedCheck, ...]:
    good = an_attempt("recovered", SIMULATION, try_number=1, findings=findings())
    ended = an_attempt("inconclusive", SIMULATION, reason="worker-crashed")
    return control("finished"), PlannedCheck(scenario=SIMULATION, kind="simulation", tries=(ended, good))


def history(outcomes: str) -> dict[str, Any]:
    return {SIMULATION: first_tries(outcomes)}


CHECKS: Mapping[str, Cell] = {
    "passed": Cell({}),
    "broken, confirmed": Cell(
        {"checks": (control("finished"), simulation("not-recovered", "recovered", "not-recovered"))},
        everywhere("check-broken"),
    ),
    "broken, confirm runs missing": Cell(
        {"checks": (control("finished"), simulation("not-recovered"))}, everywhere("check-broken")
    ),
    "fault not delivered, twice": Cell(
        {"checks": unknown("not-delivered", "not-delivered")}, everywhere("check-inconclusive"), "unproven"
    ),
    "fault not delivered, then recovered": Cell(
        {"checks": (control("finished"), simulation("inconclusive", "recovered"))}
    ),
    "control did not finish": Cell(
        {"checks": (control("did-not-finish", "did-not-finish"), simulation("recovered"))},
        everywhere("control-failed", "check-inconclusive"),
        "unproven",
    ),
    "machinery broke": Cell(
        {"checks": unknown("machinery-broke", "machinery-broke")}, everywhere("check-inconclusive"), "unproven"
    ),
    "cut short": Cell({"checks": unknown("cut-short")}, everywhere("check-inconclusive"), "unproven"),
    "off the prefix": Cell(
        {"checks": unknown("off-the-prefix", "off-the-prefix")}, everywhere("check-inconclusive"), "unproven"
    ),
    "worker crashed, then recovered": Cell(
        {"checks": crashed_then_good()}, everywhere("check-inconclusive"), "unproven"
    ),
    "missing": Cell({"checks": (control("finished"), simulation())}, everywhere("not-run"), "unproven"),
    "FLAKY": Cell({"checks": FLAKY}),
    "FLAKY, within budget": Cell({"checks": FLAKY, "first_attempts": history(60 * "p" + "f")}),
    "FLAKY, over budget": Cell(
        {"checks": FLAKY, "first_attempts": history("pf" + 9 * "p" + "f" + 8 * "p")},
        outside_of_pull_requests("flaky-over-budget"),
    ),
    "FLAKY, drift alarm": Cell(
        {"checks": FLAKY, "first_attempts": history("pppfff")}, outside_of_pull_requests("drift-alarm")
    ),
    "passed, drift alarm stands": Cell({"first_attempts": history("pppfffp")}),
}
"""The rows about checks. One more try was made by the runner; here is what its tries come to."""


def claimed(**changes: Any) -> RegressionCase:
    return a_case("b", fix=(a_fix(),), **changes)


OPEN_CLAIM = Cell(
    {"case": claimed(), "live": live(*CLEAN[:11])}, {"release": {"verifying"}}, "unproven", "verifying"
)
STATES: Mapping[str, Cell] = {
    "open": Cell({"case": a_case("b")}),
    "open, live symptom": Cell({"case": a_case("b"), "live runs": (live_run(1, "recurred"),)}),
    "verifying, k of n": OPEN_CLAIM,
    "verifying, past claim_days": OPEN_CLAIM._replace(
        given={**OPEN_CLAIM.given, "today": (FIXED_AT + timedelta(days=15)).date()},
        red={"nightly": {"claim-overdue"}, "release": {"verifying"}},
    ),
    "verifying, on the last of claim_days": OPEN_CLAIM._replace(
        given={**OPEN_CLAIM.given, "today": (FIXED_AT + timedelta(days=14)).date()}
    ),
    "verifying, its ledger not at hand": OPEN_CLAIM._replace(
        given={"case": claimed(), "live": live(*CLEAN), "fix_is_of_another_ledger": True}
    ),
    "verifying, bounded": Cell({"case": claimed(), "live": live(*CLEAN)}, state="verifying"),
    "verifying, failed otherwise": Cell(
        {"case": claimed(), "live": live("clean", "failed-otherwise")},
        outside_of_pull_requests("failed-otherwise"),
        state="verifying",
    ),
    "claimed, recurred": Cell(
        {"case": claimed(), "live": live("clean", "recurred")},
        outside_of_pull_requests("recurred"),
        state="regressed",
    ),
    "claimed, recurred on other digests": Cell(
        {"case": claimed(), "live_set_aside": 3, "recurred_set_aside": 1},
        outside_of_pull_requests("recurred"),
        state="regressed",
    ),
    "closed": Cell({"case": claimed(**CLOSED)}, state="closed"),
    "closed, recurred": Cell(
        {"case": claimed(**CLOSED), "live": live(*CLEAN, "recurred")},
        outside_of_pull_requests("recurred"),
        state="regressed",
    ),
    "closed, recurred on other digests": Cell(
        {"case": claimed(**CLOSED), "live_set_aside": 1, "recurred_set_aside": 1},
        outside_of_pull_requests("recurred"),
        state="regressed",
    ),
    "reopened": Cell(
        {"case": claimed(**CLOSED, reopened=[{**EVENT, "why": "w"}])},
        outside_of_pull_requests("case-regressed"),
        state="regressed",
    ),
}
"""The rows about live runs and claims."""

EVERY_ROW = [(checks, profile) for checks in CHECKS for profile in PROFILES]
"""Each is crossed with every state."""
SOME_ROWS = [
    (checks, profile)
    for checks in ("passed", "broken, confirmed", "missing", "FLAKY, over budget")
    for profile in PROFILES
]


def decided(row: Cell, standing: Cell, profile: Profile, **file: Any) -> GateDecision:
    """Decide over that case and a good one, which keeps the whole from being red for gating nothing."""
    given = {"checks": good_checks(), **row.given, **standing.given}
    today = given.pop("today", TODAY)
    given["checks"] = (*given["checks"], *given.pop("live runs", ()))
    case = given.pop("case").model_copy(update=file)
    return decide(gate_inputs(case_inputs(a_case("a")), case_inputs(case, **given), profile=profile, today=today))


def red_codes(decision: GateDecision) -> set[str]:
    return {each.code for each in decision.reasons if each.red}


def all_codes(decision: GateDecision) -> set[str]:
    return {each.code for each in decision.reasons}


@pytest.mark.parametrize(("checks", "profile"), EVERY_ROW)
def test_a_gating_case(checks: str, profile: Profile) -> None:
    row = CHECKS[checks]
    for name, standing in STATES.items():
        decision = decided(row, standing, profile)
        red = [each for each in (row, standing) if each.red.get(profile)]
        assert red_codes(decision) == set().union(*(each.red[profile] for each in red)), name
        decisions = {each.decision for each in red}
        expected = "fail" if "fail" in decisions else "unproven" if decisions else "pass"
        assert decision.decision == expected, name
        assert [(each.case_id, each.state) for each in decision.cases] == [("a", "open"), ("b", standing.state)]
        if "FLAKY" in checks:
            assert "flaky" in all_codes(decision), name
        if standing.state == "verifying":
            assert all_codes(decision) & {"verifying", "claim-overdue", "failed-otherwise"}, name


@pytest.mark.parametrize(("checks", "profile"), EVERY_ROW)
def test_a_quarantined_case_is_run_and_shown_and_never_red_by_itself(checks: str, profile: Profile) -> None:
    row = CHECKS[checks]
    for name, standing in STATES.items():
        today = standing.given.get("today", TODAY)
        decision = decided(row, standing, profile, quarantine=a_quarantine(expires=today))
        assert (decision.decision, red_codes(decision)) == ("pass", set()), name
        shown = {"quarantined", *row.red.get(profile, ()), *standing.red.get(profile, ())}
        assert all_codes(decision) >= shown, name
        assert (decision.cases[1].quarantined, decision.cases[1].state) == (True, standing.state)


@pytest.mark.parametrize(("checks", "profile"), SOME_ROWS)
def test_an_expired_quarantine_warns_and_is_red_at_night(checks: str, profile: Profile) -> None:
    for name, standing in STATES.items():
        yesterday = standing.given.get("today", TODAY) - timedelta(days=1)
        decision = decided(CHECKS[checks], standing, profile, quarantine=a_quarantine(expires=yesterday))
        nightly = profile == "nightly"
        assert decision.decision == ("fail" if nightly else "pass"), name
        assert red_codes(decision) == ({"quarantine-expired"} if nightly else set()), name
        assert "quarantine-expired" in all_codes(decision), name


@pytest.mark.parametrize(("checks", "profile"), SOME_ROWS)
def test_a_retired_case_is_listed_and_nothing_of_it_gates(checks: str, profile: Profile) -> None:
    at = FIXED_AT + timedelta(days=1)
    retired = (Retired(at=at, by="team-a", why="the task is gone"),)
    for name, standing in STATES.items():
        decision = decided(CHECKS[checks], standing, profile, retired=retired)
        assert (decision.decision, decision.cases[1].state) == ("pass", "retired"), name
        assert [(each.code, each.text) for each in decision.reasons] == [
            ("retired", "retired on 2026-05-11 by team-a: the task is gone")
        ]


@pytest.mark.parametrize("profile", PROFILES)
def test_more_quarantined_than_the_cap(profile: Profile) -> None:
    quarantined = [case_inputs(a_case(f"q-{number}", quarantine=a_quarantine())) for number in range(4)]
    good = case_inputs(a_case("a"))
    at_cap = decide(gate_inputs(good, *quarantined[:3], profile=profile))
    assert (at_cap.decision, red_codes(at_cap)) == ("pass", set())
    over = decide(gate_inputs(good, *quarantined, profile=profile))
    assert red_codes(over) == (set() if profile == "pull-request" else {"too-many-quarantined"})
    assert over.decision == ("pass" if profile == "pull-request" else "fail")
    assert [each.text for each in over.reasons if each.code == "too-many-quarantined"] == [
        "4 of 5 cases are quarantined; at most 3 may be"
    ]


def test_the_cap_is_the_configured_number_or_the_share_and_retired_cases_make_it_no_larger() -> None:
    quarantined = [case_inputs(a_case(f"q-{number}", quarantine=a_quarantine())) for number in range(2)]
    good = case_inputs(a_case("a"))
    over = decide(gate_inputs(good, *quarantined, profile="nightly", max_quarantined=1))
    assert red_codes(over) == {"too-many-quarantined"}
    many = [case_inputs(a_case(f"c-{number}")) for number in range(38)]
    assert decide(gate_inputs(*many, *quarantined, profile="nightly", max_quarantined=1)).decision == "pass"
    gone = [case_inputs(a_case(f"r-{number}", retired=RETIRED), checks=()) for number in range(38)]
    assert red_codes(decide(gate_inputs(good, *gone, *quarantined, profile="nightly", max_quarantined=1))) == {
        "too-many-quarantined"
    }


RETIRED = [{**EVENT, "why": "w"}]
NEVER_GREEN: Mapping[str, tuple[CaseInputs, ...]] = {
    "nothing selected": (),
    "nothing planned": (case_inputs(checks=()),),
    "nothing run": (case_inputs(checks=(control(), simulation())),),
    "all quarantined": (case_inputs(a_case(quarantine=a_quarantine())),),
    "all retired": (case_inputs(a_case(retired=RETIRED), checks=()),),
    "all retired, though run": (case_inputs(a_case(retired=RETIRED)),),
    "quarantined or retired": (
        case_inputs(a_case(quarantine=a_quarantine())),
        case_inputs(a_case("b", retired=RETIRED), checks=()),
    ),
    "an agent that never gets there": (
        case_inputs(checks=(control("did-not-finish", "did-not-finish"), simulation("not-recovered"))),
    ),
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("what", NEVER_GREEN)
def test_what_is_never_green(what: str, profile: Profile) -> None:
    assert decide(gate_inputs(*NEVER_GREEN[what], profile=profile)).decision == "unproven"


def test_what_gates_nothing_is_said() -> None:
    def texts(what: str) -> list[str]:
        reasons = decide(gate_inputs(*NEVER_GREEN[what])).reasons
        return [each.text for each in reasons if each.code == "all-quarantined"]

    assert texts("all quarantined") == ["every case is quarantined, so nothing gates"]
    assert texts("quarantined or retired") == ["every case is quarantined or retired, so nothing gates"]
    assert texts("all retired") == ["every case is quarantined or retired, so nothing gates"]
    assert texts("nothing planned") == []
