"""The items: one attempt each, and the one failing item of a case file that does not load.

An item runs one attempt, hands its record to the report and says by its outcome where the check stands. What is
red is decided elsewhere, from the ledger's rows.
"""

import json
import os
import traceback
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.pytest_items.failure_text import attempt_lines, quarantined_text
from pytest_regcase.pytest_items.gate_run import GateRun
from pytest_regcase.pytest_items.stop_marks import StopMarks
from pytest_regcase.records.attempt import AttemptPlan, AttemptRecord
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.rules import policies
from pytest_regcase.session import attempt
from pytest_regcase.session.opening import CaseEntry
from pytest_regcase.session.unfinished import unfinished_record

_GOOD: frozenset[AttemptVerdict] = frozenset({"recovered", "finished", "clean"})


class ShownFailure(Exception):
    """Makes an item fail with a few lines of text.

    `more` says that the check is not over: another try of the same item follows.
    """

    def __init__(self, lines: "list[str] | tuple[str, ...]", *, more: bool = False) -> None:
        super().__init__("\n".join(lines))
        self.more = more


class AttemptItem(pytest.Item):
    """One planned attempt; pytest-rerunfailures runs the same item again for each further try of its check."""

    def __init__(self, *, gate: GateRun, entry: CaseEntry, plan: AttemptPlan, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        assert entry.loaded is not None
        self._gate = gate
        self._loaded = entry.loaded
        self._plan = plan
        self.place = entry.plans.index(plan)
        """Where in its case's plan it stands: control, simulations, live runs by number."""
        self._tries: list[AttemptVerdict] = []
        self._tries_lost_to_crashes = 0
        self._record: AttemptRecord | None = None
        self._last_bad: AttemptRecord | None = None
        if gate.confirms:
            self.add_marker(self._repeats())

    def setup(self) -> None:
        """Skip a live run behind a recurrence: it could not change the decision any more."""
        super().setup()
        self._record = None
        if self._plan.kind == "live":
            stopped_by = self._stop_marks().stops(self._plan.key, self._plan.stopped_by_failures)
            if stopped_by is not None:
                pytest.skip(f"not run: run {stopped_by} recurred")

    def runtest(self) -> None:
        """Run one attempt; raise when the check is broken, not over, or proved nothing."""
        crashes = self._crashed_tries()
        self._tries.extend(["inconclusive"] * (crashes - self._tries_lost_to_crashes))
        self._tries_lost_to_crashes = crashes
        record = self._attempt()
        self._record = record
        self._tries.append(record.verdict)
        if record.verdict not in _GOOD:
            self._last_bad = record
        if self._plan.kind == "live":
            self._show_live(record)
        elif self._loaded.case.quarantine is not None:
            self._show_quarantined(record)
        else:
            self._show_check(record)

    def take_record(self) -> dict[str, Any] | None:
        """Return the record of the attempt just made as plain JSON types, once."""
        record, self._record = self._record, None
        # Through JSON text: xdist looks up exact types, and a subclass of str would end its session.
        return None if record is None else json.loads(json.dumps(record.to_plain()))

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return where the item is and its title: case, scenario and run."""
        return self.path, None, str(self._plan.key)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """Return the attempt's own lines instead of a traceback through pytest and us."""
        if isinstance(excinfo.value, ShownFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *args, **kwargs)

    def _repeats(self) -> pytest.MarkDecorator:
        # The empty lists and the zero keep --only-rerun, --rerun-except and --reruns-delay of the user's away.
        most = 0 if self._plan.kind == "live" else policies.most_tries(self._gate.policy) - 1
        return pytest.mark.flaky(
            reruns=most, condition=_is_not_over, only_rerun=[], rerun_except=[], reruns_delay=0
        )

    def _crashed_tries(self) -> int:
        """How many tries of this item ended with their worker: rerunfailures counts them across processes."""
        count: int = getattr(self, "execution_count", 1)
        return max(0, count - 1 - (len(self._tries) - self._tries_lost_to_crashes))

    def _attempt(self) -> AttemptRecord:
        gate, plan = self._gate, self._plan
        simulation = gate.simulation_of(plan)
        try_number = len(self._tries)
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
                text=_what_broke(error),
            )

    def _show_live(self, record: AttemptRecord) -> None:
        if record.verdict == "clean":
            return
        if record.verdict in ("recurred", "failed-otherwise"):
            allowed_by = self._what_allows(record)
            if allowed_by is not None:
                pytest.skip(f"{self._plan.key}: {record.verdict}, which {allowed_by} allows")
        standing = "the symptom came back" if record.verdict == "recurred" else "not clean"
        self._fail_or_skip(record, attempt_lines(record, standing))

    def _what_allows(self, record: AttemptRecord) -> str | None:
        """What lets the claim stand though this live run failed; None where it refutes the claim.

        An item that fails makes the session red, also where the gate is not.
        """
        passes_over = self._loaded.case.expected_recovery.other_failures == "pass-over"
        if record.verdict == "failed-otherwise" and passes_over:
            return "the case"
        marks = self._stop_marks()
        marks.set(self._plan.key)
        allows = len(marks.failed(self._plan.key.case_id)) < self._plan.stopped_by_failures
        return f"plan {self._gate.project.config.plan}" if allows else None

    def _show_quarantined(self, record: AttemptRecord) -> None:
        if record.verdict not in _GOOD:
            self._fail_or_skip(record, attempt_lines(record, "quarantined"))

    def _show_check(self, record: AttemptRecord) -> None:
        if self._gate.confirms and policies.wants_another(self._gate.policy, self._tries):
            # Presented as failed whatever this try showed: rerunfailures repeats only what failed.
            raise ShownFailure(attempt_lines(record, "another try follows"), more=True)
        result = policies.check_result(self._gate.policy, self._tries, crashed=self._tries_lost_to_crashes > 0)
        if result in ("passed", "flaky"):
            return
        if result == "inconclusive":
            crashed = self._tries_lost_to_crashes > 0
            standing = "an earlier try crashed its worker" if crashed else "the check did not happen"
        else:
            standing = "the check is broken" if len(self._tries) > 1 else "the check is broken, not confirmed"
        # The last try may have passed; what is shown is the try that makes the check fail.
        shown = record if record.verdict not in _GOOD else self._last_bad or record
        raise ShownFailure(attempt_lines(shown, standing))

    def _fail_or_skip(self, record: AttemptRecord, lines: list[str]) -> None:
        quarantine = self._loaded.case.quarantine
        if quarantine is not None:
            pytest.skip(quarantined_text(record, quarantine))
        raise ShownFailure(lines)

    def _stop_marks(self) -> StopMarks:
        return StopMarks(self._gate.session_folder)


class InvalidCaseItem(pytest.Item):
    """The one failing item of a case file that does not load; the other cases run."""

    def __init__(self, *, gate: GateRun, problems: tuple[str, ...], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._problems = problems
        if gate.confirms:
            self.add_marker(pytest.mark.flaky(reruns=0))

    def runtest(self) -> None:
        """Fail with what is wrong in the file."""
        raise ShownFailure(self._problems)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return where the item is and a title that names the case's folder."""
        return self.path, None, f"{self.path.parent.name}::invalid"

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """Return the problems, one a line."""
        if isinstance(excinfo.value, ShownFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *args, **kwargs)


def _is_not_over(error: BaseException | None) -> bool:
    """Tell pytest-rerunfailures whether another try follows; it asks after each attempt that failed."""
    return isinstance(error, ShownFailure) and error.more


def _what_broke(error: BaseException) -> str:
    """Return an exception that should not have come, with the places it went through last."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    places = [f"  at {Path(each.filename).name}:{each.lineno} in {each.name}" for each in reversed(frames)]
    return "\n".join([f"{type(error).__name__}: {error}", *places])
