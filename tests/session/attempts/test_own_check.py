import pytest

from pytest_regcase.records.words import AttemptVerdict, ScenarioKind
from pytest_regcase.session.attempts.own_check import failed_by
from tests.rules.attempt_samples import an_attempt


@pytest.mark.parametrize(
    ("kind", "good", "failed"),
    [
        ("control", "finished", "did-not-finish"),
        ("simulation", "recovered", "not-recovered"),
        ("live", "clean", "failed-otherwise"),
    ],
)
def test_a_failed_check_leaves_nothing_good(kind: ScenarioKind, good: AttemptVerdict, failed: str) -> None:
    record = failed_by(an_attempt(good, says="checked 7 of 7"), kind, "mine failed")
    assert (record.verdict, record.says) == (failed, "mine failed; checked 7 of 7")
