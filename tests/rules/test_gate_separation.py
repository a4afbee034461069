"""What the gate says of a case that asks that its logs tell causes apart."""

import pytest

from pytest_regcase.records.case import RegressionCase
from pytest_regcase.records.decision import Reason
from pytest_regcase.records.expected_recovery import ExpectedRecovery
from pytest_regcase.records.separation import Separation
from pytest_regcase.records.words import FindingStatus
from pytest_regcase.rules.gate import decide
from tests.rules.attempt_samples import a_case, a_finding, case_inputs, gate_inputs

TEXT = "separates_causes: a sentence of ours"


def reasons(status: FindingStatus, case: RegressionCase | None = None) -> tuple[Reason, ...]:
    found = Separation(finding=a_finding("separates_causes", status, says="a sentence of ours"))
    decision = decide(gate_inputs(case_inputs(case, separation=found)))
    assert decision.cases[0].separation == found
    return decision.reasons


@pytest.mark.parametrize("status", ["kept", "not-applicable"])
def test_what_is_kept_is_no_reason(status: FindingStatus) -> None:
    assert reasons(status) == ()


def test_a_case_that_does_not_ask_has_no_reason() -> None:
    decision = decide(gate_inputs(case_inputs(separation=Separation())))
    assert (decision.decision, decision.reasons) == ("pass", ())


def test_causes_that_are_not_separated_are_red() -> None:
    assert reasons("broken") == (Reason(code="causes-not-separated", case_id="trial-37", text=TEXT, red=True),)


@pytest.mark.parametrize("required", [(), ("separates_causes",)])
def test_what_was_not_seen_is_red_only_where_it_is_required(required: tuple[str, ...]) -> None:
    case = a_case(expected_recovery=ExpectedRecovery.model_validate({"required": required}))
    expected = Reason(code="separation-not-seen", case_id="trial-37", text=TEXT, red=bool(required))
    assert reasons("not-observable", case) == (expected,)
