"""The items: one attempt each, and the one failing item of a case file that does not load.

An item runs one attempt, hands its record to the report and says by its outcome where the check stands. What is
red is decided elsewhere, from the ledger's rows.
"""

import os
import traceback
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.pytest_items.check_standing import CheckStanding, ShownFailure
from pytest_regcase.pytest_items.gate_run import GateRun
from pytest_regcase.records.attempt import AttemptPlan, AttemptRecord
from pytest_regcase.session import attempt
from pytest_regcase.session.attempts.unfinished import unfinished_record
from pytest_regcase.session.planning.opening import CaseEntry


class AttemptItem(pytest.Item):
    """One planned attempt; pytest-rerunfailures runs the same item again for each further try of its check."""

    obj = None
    """What a doctest has too: plugins read it of every item and take None for "no function"."""

    def __init__(self, *, gate: GateRun, entry: CaseEntry, plan: AttemptPlan, place: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        assert entry.loaded is not None
        self._gate = gate
        self._loaded = entry.loaded
        self._plan = plan
        self.place = place
        """Where in its case's plan it stands: control, simulations, live runs by number."""
        self._standing = CheckStanding(gate, entry.loaded, plan)
        self._record: AttemptRecord | None = None
        if gate.confirms:
            self.add_marker(self._standing.repeats())

    def setup(self) -> None:
        """Skip a live run behind a recurrence: it could not change the decision any more."""
        super().setup()
        self._record = None
        self._standing.skip_when_stopped()

    def runtest(self) -> None:
        """Run one attempt; raise when the check is broken, not over, or proved nothing."""
        record = self._attempt(self._standing.next_try(self))
        self._record = record
        self._standing.show(record)

    def take_record(self) -> AttemptRecord | None:
        """Return the record of the attempt just made, once."""
        record, self._record = self._record, None
        return record

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return where the item is and its title: case, scenario and run.

        With a line, which pytest asserts of an item that somebody else's mark or hook skips.
        """
        return self.path, 0, str(self._plan.key)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """Return the attempt's own lines instead of a traceback through pytest and us."""
        if isinstance(excinfo.value, ShownFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *args, **kwargs)

    def _attempt(self, try_number: int) -> AttemptRecord:
        gate, plan = self._gate, self._plan
        simulation = gate.simulation_of(plan)
        try:
            return attempt.run_attempt(
                gate.project, self._loaded, simulation, plan, gate.snapshot, try_number=try_number
            )
        except (KeyboardInterrupt, pytest.exit.Exception):
            raise
        # Not only Exception: pytest-timeout raises what pytest.fail raises, which is none.
        except BaseException as error:
            return unfinished_record(
                gate.project,
                self._loaded,
                simulation,
                plan,
                gate.snapshot,
                try_number=try_number,
                why="machinery-broke",
                text=what_broke(error),
            )


class InvalidCaseItem(pytest.Item):
    """The one failing item of a case file that does not load; the other cases run."""

    def __init__(self, *, gate: GateRun, entry: CaseEntry, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._problems = entry.problems
        self.agent_is_missing = entry.agent_is_missing
        """A test function may run the case instead."""
        if gate.confirms:
            self.add_marker(pytest.mark.flaky(reruns=0))

    def runtest(self) -> None:
        """Fail with what is wrong in the file."""
        raise ShownFailure(self._problems)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return where the item is and a title that names the case's folder."""
        return self.path, 0, f"{self.path.parent.name}::invalid"

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """Return the problems, one a line."""
        if isinstance(excinfo.value, ShownFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *args, **kwargs)


def what_broke(error: BaseException) -> str:
    """Return an exception that should not have come, with the places it went through last."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    places = [f"  at {Path(each.filename).name}:{each.lineno} in {each.name}" for each in reversed(frames)]
    return "\n".join([f"{type(error).__name__}: {error}", *places])
