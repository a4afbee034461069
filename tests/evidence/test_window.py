"""The time of an observation: of what is recorded, and no more than a clock may be off."""

from datetime import UTC, datetime, timedelta

import pytest

from pytest_regcase.evidence.window import Window, window_between, window_of_observation
from pytest_regcase.records.case import Observation
from pytest_regcase.records.trial import TranscriptLine


def at(minute: int, second: int = 0) -> datetime:
    return datetime(2026, 4, 12, 9, minute, second, tzinfo=UTC)


def observation(observed_at: datetime | None = None) -> Observation:
    return Observation(symptom="x", source_event="y", observed_at=observed_at)


@pytest.mark.parametrize(
    ("observed", "lines", "start", "end"),
    [
        (at(30), (), at(13), at(32)),
        (at(30), (at(10), at(20)), at(8), at(32)),
        (None, (at(10), at(20)), at(8), at(22)),
        (at(15), (at(10), at(20)), at(8), at(22)),
    ],
)
def test_it_goes_from_the_first_to_the_last_recorded_time(
    observed: datetime | None, lines: tuple[datetime, ...], start: datetime, end: datetime
) -> None:
    transcript = [TranscriptLine(step=1, role="user", at=each) for each in lines]
    found = window_of_observation(observation(observed), transcript)
    assert found is not None
    assert (found.start, found.end) == (start, end)
    assert found.holds(start)
    assert found.holds(end)
    assert not found.holds(end + timedelta(seconds=1))
    assert not found.holds(start - timedelta(seconds=1))


def test_without_a_time_there_is_none() -> None:
    assert window_of_observation(observation(), [TranscriptLine(step=1, role="user")]) is None


@pytest.mark.parametrize(
    ("seconds", "says"), [(0, "its recorded time: "), (90, "and 90 seconds on"), (600, "and 10 minutes on")]
)
def test_the_skew_is_said(seconds: int, says: str) -> None:
    skew = timedelta(seconds=seconds)
    found = window_between(at(10), at(20), skew)
    assert isinstance(found, Window)
    assert says in found.says
    assert (found.start, found.end) == (at(10) - skew, at(20) + skew)
