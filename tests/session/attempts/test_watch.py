"""The loop beside an attempt, over a supplier and an agent that only say what the test makes them say."""

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_regcase.records.observed import FaultNotes
from pytest_regcase.session.attempts import watch as module
from pytest_regcase.session.attempts.watch import Budgets, Watched, watch


class Side:
    """One end of a pipe that is readable when there is something to read."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.done = self.has_exited = self.closed = False
        self.ended_by: str | None = None
        self.when_told = self.exits
        self._messages: list[dict[str, Any]] = []

    def fileno(self) -> int:
        return self.reader

    def says(self, **message: Any) -> None:
        self._messages.append(message)
        os.write(self.writer, b".")

    def exits(self) -> None:
        self.says(say="done")

    def read_messages(self) -> list[dict[str, Any]]:
        os.read(self.reader, 1)
        message = self._messages.pop(0)
        if "meanwhile" in message:
            message.pop("meanwhile")()
        self.done = self.has_exited = message["say"] == "done"
        return [message]

    def end(self, _grace_seconds: float, *, ended_by: str) -> None:
        self.ended_by = ended_by
        self.done = True

    def proceed(self) -> None:
        self.when_told()


class Sides(SimpleNamespace):
    """A supplier, an agent that exits once the fault is let go, and a clock that stands still."""

    supplier: Side
    agent: Side
    now: float

    def watch(self, notes_take_seconds: float, **budget: float) -> Watched:
        """Watch them; the look at the work tree moves the clock on."""

        def take_notes(t: float) -> FaultNotes:
            self.now += notes_take_seconds
            return FaultNotes(t=t)

        seconds = {"cap_seconds": 600, "deadline_seconds": 5, **budget}
        budgets = Budgets(**seconds, ends_by_itself=False)
        return watch(cast(Any, self.supplier), cast(Any, self.agent), budgets, take_notes, t0=0)


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sides]:
    both = Sides(supplier=Side(), agent=Side(), now=1.0)
    both.supplier.when_told = both.agent.exits
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: both.now))
    yield both
    for side in (both.supplier, both.agent):
        os.close(side.reader)
        os.close(side.writer)


def test_the_deadline_begins_when_the_fault_is_let_go(sides: Sides) -> None:
    sides.supplier.says(say="first-fault")
    seen = sides.watch(notes_take_seconds=100)
    assert seen.notes is not None
    assert seen.notes.t == 1.0
    assert (seen.ended_by_us_at, sides.agent.ended_by) == (None, None)


def test_an_agent_that_outlives_its_deadline_is_ended(sides: Sides) -> None:
    def goes_on() -> None:
        sides.now += 6
        sides.supplier.says(say="nothing of interest")

    sides.supplier.when_told = goes_on
    sides.supplier.says(say="first-fault")
    seen = sides.watch(notes_take_seconds=0)
    assert (seen.ended_by_us_at, sides.agent.ended_by) == (7.0, "deadline")


@pytest.mark.parametrize(
    ("budget", "passed_seconds", "ended_by"),
    [
        ({"deadline_seconds": 1000, "cap_seconds": 10000, "time_scale": 200}, 4.9, None),
        ({"deadline_seconds": 1000, "cap_seconds": 10000, "time_scale": 200}, 5.1, "deadline"),
        # One second of the cap was used up before the fault, in real time.
        ({"deadline_seconds": 1000, "cap_seconds": 801, "time_scale": 200}, 3.9, None),
        ({"deadline_seconds": 1000, "cap_seconds": 801, "time_scale": 200}, 4.1, "cap"),
    ],
)
def test_behind_the_fault_the_budgets_are_the_agents_time(
    sides: Sides, budget: dict[str, float], passed_seconds: float, ended_by: str | None
) -> None:
    def goes_on() -> None:
        sides.now += passed_seconds
        if ended_by is None:
            sides.agent.exits()
        else:
            sides.supplier.says(say="nothing of interest")

    sides.supplier.when_told = goes_on
    sides.supplier.says(say="first-fault")
    sides.watch(notes_take_seconds=0, **budget)
    assert sides.agent.ended_by == ended_by


@pytest.mark.parametrize(
    ("cap_seconds", "passed_seconds", "ended_by"),
    [(10000, 4.9, None), (10000, 5.1, "deadline"), (803, 3.9, None), (803, 4.1, "cap")],
)
def test_the_budgets_run_by_the_agents_clock_from_its_switch_on(
    sides: Sides, cap_seconds: float, passed_seconds: float, ended_by: str | None
) -> None:
    def switches() -> None:
        # Real time between the fault that was let go and the switch: it would be 400 s of the agent's.
        sides.now += 2
        sides.supplier.says(say="clock-switched")
        sides.supplier.says(say="nothing of interest", meanwhile=goes_on)

    def goes_on() -> None:
        sides.now += passed_seconds
        if ended_by is None:
            sides.agent.exits()

    sides.supplier.when_told = switches
    sides.supplier.says(say="first-fault")
    sides.watch(notes_take_seconds=0, deadline_seconds=1000, cap_seconds=cap_seconds, time_scale=200)
    assert sides.agent.ended_by == ended_by


def test_an_agent_that_its_clock_does_not_reach_is_ended_at_once(sides: Sides) -> None:
    sides.supplier.says(say="clock-missed", text="time_scale = 200 does not reach the agent: a static program")
    seen = sides.watch(notes_take_seconds=0, time_scale=200)
    assert (seen.ended_by_us_at, sides.agent.ended_by) == (1.0, "cut-short")
    assert seen.trouble == "time_scale = 200 does not reach the agent: a static program"
