"""One planned attempt over its tries: what each says of the check, and what pytest is shown of it.

The same for an item of a case file and for a test function marked `regcase`. What is red is decided elsewhere,
from the ledger's rows.
"""

import inspect
from functools import cache

import pytest

from pytest_regcase.case_files import LoadedCase
from pytest_regcase.pytest_items.failure_text import attempt_lines, quarantined_text
from pytest_regcase.pytest_items.gate_run import GateRun
from pytest_regcase.pytest_items.stop_marks import StopMarks
from pytest_regcase.records.attempt import AttemptPlan, AttemptRecord
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.rules import policies

GOOD: frozenset[AttemptVerdict] = frozenset({"recovered", "finished", "clean"})
"""Verdicts of which a single one fails no item."""


class ShownFailure(Exception):
    """Makes an item fail with a few lines of text.

    `more` says that the check is not over: another try of the same item follows.
    """

    def __init__(self, lines: "list[str] | tuple[str, ...]", *, more: bool = False) -> None:
        super().__init__("\n".join(lines))
        self.more = more


class CheckStanding:
    """The tries of one planned attempt so far; pytest-rerunfailures asks for each further one."""

    def __init__(self, gate: GateRun, loaded: LoadedCase, plan: AttemptPlan) -> None:
        self._gate = gate
        self._loaded = loaded
        self._plan = plan
        self._tries: list[AttemptVerdict] = []
        self._tries_lost_to_crashes = 0
        self._last_bad: AttemptRecord | None = None

    def repeats(self) -> pytest.MarkDecorator:
        """Return the mark by which pytest-rerunfailures repeats the item as often as the check asks for."""
        return _repeats(0 if self._plan.kind == "live" else policies.most_tries(self._gate.policy) - 1)

    def skip_when_stopped(self) -> None:
        """Skip a live run behind a recurrence: it could not change the decision any more."""
        if self._plan.kind == "live":
            stopped_by = self._stop_marks().stops(self._plan.key, self._plan.stopped_by_failures)
            if stopped_by is not None:
                pytest.skip(f"not run: run {stopped_by} recurred")

    def next_try(self, item: pytest.Item) -> int:
        """Return the number of the try that starts now; those that ended with their worker count too."""
        # rerunfailures counts them across processes.
        count: int = getattr(item, "execution_count", 1)
        crashes = max(0, count - 1 - (len(self._tries) - self._tries_lost_to_crashes))
        self._tries.extend(["inconclusive"] * (crashes - self._tries_lost_to_crashes))
        self._tries_lost_to_crashes = crashes
        return len(self._tries)

    def show_interrupted(self, record: AttemptRecord) -> None:
        """Take in a try that somebody else cut short, such as a timer; raise, and let no further one follow.

        A timer of pytest-timeout runs once an item: the next try would hang for ever, or seem to be good.
        """
        self._tries.append(record.verdict)
        raise ShownFailure(attempt_lines(record, "the check did not happen"))

    def show(self, record: AttemptRecord) -> None:
        """Take in what a try showed; raise when the check is broken, not over, or proved nothing."""
        self._tries.append(record.verdict)
        if record.verdict not in GOOD:
            self._last_bad = record
        if self._plan.kind == "live":
            self._show_live(record)
        elif self._loaded.case.quarantine is not None:
            self._show_quarantined(record)
        else:
            self._show_check(record)

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
        allows = len(marks.failed(self._plan.key)) < self._plan.stopped_by_failures
        return f"plan {self._gate.project.config.plan}" if allows else None

    def _show_quarantined(self, record: AttemptRecord) -> None:
        if record.verdict not in GOOD:
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
        shown = record if record.verdict not in GOOD else self._last_bad or record
        raise ShownFailure(attempt_lines(shown, standing))

    def _fail_or_skip(self, record: AttemptRecord, lines: list[str]) -> None:
        quarantine = self._loaded.case.quarantine
        if quarantine is not None:
            pytest.skip(quarantined_text(record, quarantine))
        raise ShownFailure(lines)

    def _stop_marks(self) -> StopMarks:
        return StopMarks(self._gate.session_folder)


@cache
def _repeats(at_most: int) -> pytest.MarkDecorator:
    # The empty lists and the zero keep --only-rerun, --rerun-except and --reruns-delay of the user's away.
    return pytest.mark.flaky(
        reruns=at_most, condition=_is_not_over, only_rerun=[], rerun_except=[], reruns_delay=0
    )


def _is_not_over(error: BaseException | None) -> bool:
    """Tell pytest-rerunfailures whether another try follows; it asks after each attempt that failed."""
    return isinstance(error, ShownFailure) and error.more


# It looks at the signature every time; having to work it out takes about a tenth of a test that returns at once.
_is_not_over.__signature__ = inspect.signature(_is_not_over)  # type: ignore[attr-defined]
