"""The time of an observation, in which a line of a lower-level log may bear on it. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from pytest_regcase.records.case import Observation
from pytest_regcase.records.trial import TranscriptLine

SKEW: Final = timedelta(minutes=2)
"""Taken on either side: clocks of two machines differ."""
LEAD: Final = timedelta(minutes=15)
"""How long before its one recorded time a trial is taken to have begun."""


@dataclass(frozen=True)
class Window:
    """The time that lines of a log are taken from, ends included."""

    start: datetime
    end: datetime
    says: str
    """How it was found, for the user."""

    def holds(self, at: datetime) -> bool:
        """Say whether `at` lies in it."""
        return self.start <= at <= self.end


def window_between(start: datetime | None, end: datetime | None, skew: timedelta = SKEW) -> Window | None:
    """Return the time from `start` to `end` and `skew` on either side; None where neither is recorded.

    Where a single time is recorded, fifteen minutes before it are taken as well.
    """
    start, end = start or end, end or start
    if start is None or end is None:
        return None
    how = "its recorded time"
    if start == end:
        start, how = end - LEAD, "the one recorded time and the 15 minutes before it"
    around = f", and {_length(skew)} on either side" if skew else ""
    return Window(
        start - skew,
        end + skew,
        f"{how}{around}: {shown_time(start - skew)} to {shown_time(end + skew)}",
    )


def window_of_observation(
    observation: Observation, transcript: Iterable[TranscriptLine], skew: timedelta = SKEW
) -> Window | None:
    """Return the time of a case's observation: from the first recorded line to when it was observed.

    None where neither the observation nor a line of the transcript holds a time.
    """
    times = [line.at for line in transcript if line.at is not None]
    if observation.observed_at is not None:
        times.append(observation.observed_at)
    return window_between(min(times, default=None), max(times, default=None), skew)


def shown_time(at: datetime) -> str:
    """Return `at` in UTC, to the second."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _length(skew: timedelta) -> str:
    seconds = skew.total_seconds()
    return f"{seconds / 60:g} minutes" if seconds >= 120 and seconds % 60 == 0 else f"{seconds:g} seconds"
