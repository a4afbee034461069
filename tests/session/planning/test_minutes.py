"""Few minutes: changed cases first, then round and round, nothing starves, the budget holds."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.session.planning.minutes import CaseTime, left_out

NOW = datetime(2026, 5, 20, tzinfo=UTC)
SECONDS = st.integers(0, 600).map(float)
TIMES = st.lists(
    st.builds(
        CaseTime, st.text("abc", min_size=1, max_size=4), SECONDS, st.none() | st.datetimes(timezones=st.just(UTC))
    ),
    unique_by=lambda each: each.case_id,
)


def case(name: str, minutes: float, days_ago: int | None = None) -> CaseTime:
    return CaseTime(name, minutes * 60, None if days_ago is None else NOW - timedelta(days=days_ago))


def test_what_never_ran_comes_first_then_what_did_not_run_for_longest() -> None:
    cases = [case("a", 1, 1), case("b", 1, 3), case("c", 1), case("d", 1, 2)]
    assert left_out(cases, 1) == ("a", "b", "d")
    assert left_out(cases, 2) == ("a", "d")
    assert left_out(cases, 3) == ("a",)
    assert left_out(cases, 4) == ()


def test_equal_ones_go_by_name_and_a_shorter_one_takes_the_room_that_is_left() -> None:
    assert left_out([case("b", 1), case("a", 1)], 1) == ("b",)
    assert left_out([case("long", 5, 9), case("short", 1, 1)], 2) == ("long",)


@given(TIMES, st.integers(0, 30))
def test_what_is_planned_fits_and_the_order_of_the_cases_does_not_matter(
    cases: list[CaseTime], minutes: int
) -> None:
    out = left_out(cases, minutes)
    planned = [each.seconds for each in cases if each.case_id not in out]
    assert sum(planned) <= minutes * 60
    assert out == left_out(cases[::-1], minutes) == tuple(sorted(out))
    # None of those left out would have fitted into the room that the planned ones leave.
    room = minutes * 60 - sum(planned)
    assert all(each.seconds > room for each in cases if each.case_id in out)


@given(st.lists(SECONDS, min_size=1, max_size=8), st.integers(10, 20))
def test_every_case_that_fits_by_itself_runs_within_as_many_sessions_as_there_are_cases(
    seconds: list[float], minutes: int
) -> None:
    cases = [CaseTime(f"case-{number}", each, None) for number, each in enumerate(seconds)]
    for day in range(len(cases)):
        out = left_out(cases, minutes)
        cases = [each if each.case_id in out else each._replace(last=NOW + timedelta(days=day)) for each in cases]
    assert all(each.last is not None for each in cases)
