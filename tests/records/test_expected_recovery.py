import pytest
from pydantic import ValidationError

from pytest_regcase.records.expected_recovery import ExpectedRecovery, Tightening


def test_a_class_tightens_its_own_scenarios_alone() -> None:
    expected = ExpectedRecovery(when={"deadline": Tightening(stop_within_seconds=20)})
    assert expected.under("deadline").stop_within_seconds == 20
    assert expected.under("deadline").max_retries == 3
    assert expected.under("auth") == expected.under(None)
    assert expected.under(None).when == {}


def test_by_default_a_rejected_key_is_not_tried_again() -> None:
    assert ExpectedRecovery().under("auth").max_retries == 0
    assert ExpectedRecovery().under("overload").max_retries == 3


@pytest.mark.parametrize("tightening", [{"max_retries": 4}, {"stop_within_seconds": 61}])
def test_a_class_never_loosens(tightening: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match="is looser than"):
        ExpectedRecovery.model_validate({"when": {"deadline": tightening}})
