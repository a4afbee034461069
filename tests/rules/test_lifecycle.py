from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from pytest_regcase.records.case import Closed, RegressionCase, Reopened, Retired
from pytest_regcase.rules.lifecycle import case_state, in_utc, is_closed, is_retired, last_fix
from tests.rules.attempt_samples import FIXED_AT, a_case, a_fix


def closed(days: int) -> Closed:
    return Closed(at=FIXED_AT + timedelta(days=days), by="somebody", revision="agent@1", numbers={"clean": 29})


def reopened(days: int) -> Reopened:
    return Reopened(at=FIXED_AT + timedelta(days=days), by="somebody", why="it came back")


def retired(days: int) -> Retired:
    return Retired(at=FIXED_AT + timedelta(days=days), by="somebody", why="the task is gone")


def later_fix(days: int) -> Any:
    return a_fix(2, FIXED_AT + timedelta(days=days))


@pytest.mark.parametrize(
    ("case", "state", "when_it_recurred"),
    [
        (a_case(), "open", "open"),
        (a_case(fix=(a_fix(),)), "verifying", "regressed"),
        (a_case(fix=(a_fix(),), closed=(closed(1),)), "closed", "regressed"),
        (a_case(fix=(a_fix(),), closed=(closed(0),)), "closed", "regressed"),
        (a_case(fix=(a_fix(),), closed=(closed(1),), reopened=(reopened(2),)), "regressed", "regressed"),
        (a_case(fix=(a_fix(),), closed=(closed(1),), reopened=(reopened(1),)), "regressed", "regressed"),
        (
            a_case(fix=(a_fix(), later_fix(3)), closed=(closed(1),), reopened=(reopened(2),)),
            "verifying",
            "regressed",
        ),
        (a_case(fix=(a_fix(), later_fix(3)), closed=(closed(4),)), "closed", "regressed"),
    ],
)
def test_the_latest_record_gives_the_state(case: RegressionCase, state: str, when_it_recurred: str) -> None:
    assert case_state(case, recurred=False) == state
    assert case_state(case, recurred=True) == when_it_recurred
    assert is_closed(case) is (state == "closed")
    assert not is_retired(case)


@pytest.mark.parametrize(
    ("case", "state"),
    [
        (a_case(retired=(retired(0),)), "retired"),
        (a_case(fix=(a_fix(),), retired=(retired(0),)), "retired"),
        (a_case(fix=(a_fix(),), closed=(closed(0),), reopened=(reopened(0),), retired=(retired(0),)), "retired"),
        (a_case(fix=(a_fix(),), retired=(retired(2),), reopened=(reopened(3),)), "regressed"),
        (a_case(fix=(a_fix(), later_fix(3)), retired=(retired(2),)), "verifying"),
    ],
)
def test_a_retired_case_stays_so_until_it_is_reopened_or_a_fix_is_claimed(
    case: RegressionCase, state: str
) -> None:
    assert case_state(case, recurred=False) == state
    assert is_retired(case) is (state == "retired")
    if state == "retired":
        assert case_state(case, recurred=True) == "retired"


def test_the_last_fix_is_the_one_with_the_highest_number() -> None:
    assert last_fix(a_case()) is None
    found = last_fix(a_case(fix=(later_fix(0), a_fix())))
    assert found is not None
    assert found.number == 2


def test_times_compare_whatever_their_offset() -> None:
    assert in_utc(datetime(2026, 1, 1, 12)) == datetime(2026, 1, 1, 12, tzinfo=UTC)
    east = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert in_utc(east) == datetime(2026, 1, 1, 10, tzinfo=UTC)
    assert in_utc(east).tzinfo is UTC
