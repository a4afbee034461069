"""Cases that did not fit into a session's minutes, and what a session found that no attempt shows."""

from typing import Any

import pytest

from pytest_regcase.records.decision import GateDecision, Reason
from pytest_regcase.rules.gate import decide
from tests.rules.attempt_samples import a_case, a_quarantine, case_inputs, gate_inputs

RAN = case_inputs(a_case("ran"))


def out_of_time(case_id: str = "trial-37", **changes: Any) -> Any:
    given: dict[str, Any] = {"checks": (), "out_of_time": True, "attempted_before": True, **changes}
    return case_inputs(a_case(case_id, **given.pop("case", {})), **given)


def reasons(decision: GateDecision) -> list[tuple[str, str | None, str, bool]]:
    return [(each.code, each.case_id, each.text, each.red) for each in decision.reasons]


def test_a_case_that_ran_as_it_is_is_a_note() -> None:
    decision = decide(gate_inputs(RAN, out_of_time()))
    assert decision.decision == "pass"
    text = "not run: it did not fit into the minutes of this session; it ran as it is now in an earlier one"
    assert reasons(decision) == [("out-of-time", "trial-37", text, False)]


def test_a_case_that_never_ran_as_it_is_is_red() -> None:
    decision = decide(gate_inputs(RAN, out_of_time(attempted_before=False)))
    assert decision.decision == "unproven"
    text = "not run: it did not fit into the minutes of this session, and it never ran as it is now"
    assert reasons(decision) == [("not-run", "trial-37", text, True)]


def test_checks_that_were_planned_are_judged_whatever_is_said_of_the_time() -> None:
    decision = decide(gate_inputs(RAN, case_inputs(a_case("planned"), out_of_time=True)))
    assert (decision.decision, reasons(decision)) == ("pass", [])


def test_nothing_but_cases_without_room_is_never_green() -> None:
    decision = decide(gate_inputs(out_of_time()))
    assert decision.decision == "unproven"
    assert [code for code, _, _, red in reasons(decision) if red] == ["nothing-selected"]


@pytest.mark.parametrize(
    ("others", "named"),
    [
        ([out_of_time()], "left out for its time"),
        ([case_inputs(a_case("costly"), checks=(), costs_model_calls=True)], "left out for its model calls"),
        (
            [out_of_time(), case_inputs(a_case("costly"), checks=(), costs_model_calls=True)],
            "left out for its model calls or left out for its time",
        ),
    ],
)
def test_only_quarantined_cases_beside_those_left_out_gate_nothing(others: list[Any], named: str) -> None:
    aside = case_inputs(a_case("aside", quarantine=a_quarantine()))
    decision = decide(gate_inputs(aside, *others))
    assert decision.decision == "unproven"
    assert f"every case is quarantined or {named}, so nothing gates" in [
        text for _, _, text, _ in reasons(decision)
    ]


@pytest.mark.parametrize(("red", "expected"), [(True, "unproven"), (False, "pass")])
def test_what_the_session_found_is_a_reason_as_it_is(red: bool, expected: str) -> None:
    found = Reason(code="no-session", text="shard 2/3 left no session", red=red)
    decision = decide(gate_inputs(RAN, found=(found,)))
    assert decision.decision == expected
    assert decision.reasons == (found,)
