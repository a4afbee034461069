import pytest
from pydantic import ValidationError

from pytest_regcase.records.expected_recovery import ExpectedRecovery, Tightening


def test_another_class_in_when_keeps_the_default_for_auth() -> None:
    asked = ExpectedRecovery.model_validate({"when": {"deadline": {"max_retries": 1}}})
    assert asked.under("auth").max_retries == 0
    assert asked.under("deadline").max_retries == 1
    assert asked.under("network").max_retries == 3


def test_a_file_may_say_something_else_for_auth() -> None:
    assert ExpectedRecovery.model_validate({"when": {"auth": {"max_retries": 2}}}).under("auth").max_retries == 2


def test_what_is_resolved_is_resolved_for_good() -> None:
    asked = ExpectedRecovery().under(None)
    assert asked.when == {}
    assert asked.under("auth").max_retries == 3


def test_when_may_not_loosen() -> None:
    with pytest.raises(ValidationError, match=r"when\.network\.max_retries = 9 is looser than 3"):
        ExpectedRecovery(when={"network": Tightening(max_retries=9)})
