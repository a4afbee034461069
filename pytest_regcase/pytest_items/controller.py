"""The controller's side of a gate run: the ledger, the reports, the decision, the summary, the exit status.

One process a session has it: pytest itself, or the controller of pytest-xdist, whose workers need no SQLAlchemy.
It reads attempts and asks for the decision; it makes none.
"""

import json
import os
from collections import Counter
from collections.abc import Generator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_regcase.errors import LedgerError
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.pytest_items.gate_run import GateRun
from pytest_regcase.pytest_items.report_file import ReportFile
from pytest_regcase.pytest_items.termination import Termination
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan, AttemptRecord
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.session import SessionRow
from pytest_regcase.records.words import InconclusiveReason
from pytest_regcase.reporters.layout import wrapped
from pytest_regcase.reporters.terminal import summary_lines
from pytest_regcase.session.gate import decide_session
from pytest_regcase.session.ledger_exchange import SPOOL_FILE
from pytest_regcase.session.opening import CaseEntry
from pytest_regcase.session.unfinished import unfinished_record


class Controller:
    """The hooks that only one process of a session has."""

    def __init__(
        self,
        gate: GateRun,
        ledger: Ledger,
        row: SessionRow,
        *,
        header: Sequence[str],
        report: ReportFile | None,
        termination: Termination,
    ) -> None:
        self._gate = gate
        self._ledger = ledger
        self._row = row
        self._header = header
        self._report = report
        self._termination = termination
        self._tries: Counter[AttemptKey] = Counter()
        self._session: pytest.Session | None = None
        self._interrupted = False
        self._troubles: list[str] = []
        self._decision: GateDecision | None = None
        self._attempts: list[AttemptRecord] = []

    def pytest_report_header(self) -> list[str]:
        """Say what is about to run, where it is counted, and which options leave checks out."""
        return list(self._header)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Write the session's row with all planned keys, before anything runs."""
        self._session = session
        try:
            self._ledger.start_session(self._row)
        except LedgerError as error:
            raise pytest.UsageError(error.text) from error

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the attempt's row at its call report, before any other plugin prints the result.

        A kill of any process can then lose an attempt in flight, never one whose result was seen.
        """
        planned = self._planned(report.nodeid)
        if planned is None:
            return
        record = self._recorded(report) or self._unfinished(report, *planned)
        if record is None:
            return
        try_number = self._tries[record.key]
        self._tries[record.key] += 1
        if record.try_number != try_number:
            # A worker that crashed took its count of tries with it.
            record = record.model_copy(
                update={"try_number": try_number, "attempt_id": f"{record.attempt_id}.try-{try_number}"}
            )
        self._append(record)

    def pytest_keyboard_interrupt(self) -> None:
        """Note that the session did not come to its own end."""
        self._interrupted = True

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Decide once, keep the decision, and raise an exit status of 0 when it is not green. Never lower one.

        The innermost wrapper: after all plain hooks (xdist ends its workers in one), before the terminal's own
        wrapper prints the summary.
        """
        # Nothing runs from here on; a signal must not cost the summary.
        self._termination.ignore()
        yield
        try:
            self._decision = self._decide()
            self._keep(self._decision)
        except LedgerError as error:
            self._troubles.append(error.text)
            self._decision = self._without_ledger()
        green = self._decision is not None and self._decision.decision == "pass" and not self._troubles
        if not green and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the decision that was made, not another one."""
        lines = [line for text in self._troubles for each in text.splitlines() for line in wrapped(each, 80)]
        if self._decision is not None:
            lines += summary_lines(self._decision, self._attempts, colour=terminalreporter.hasmarkup)
            if self._troubles and self._decision.decision == "pass":
                lines.append("but this run is red: see the first lines of this section")
        if lines:
            terminalreporter.section("regcase")
        for line in lines:
            terminalreporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        """Let go of the ledger."""
        self._ledger.close()

    def _planned(self, node_id: str) -> tuple[CaseEntry, AttemptPlan] | None:
        assert self._session is not None
        return self._gate.planned(node_id, self._session.config.rootpath)

    def _recorded(self, report: pytest.TestReport) -> AttemptRecord | None:
        plain = getattr(report, "regcase", None)
        # From JSON text: strict records take date-times from JSON, not from str.
        return None if plain is None else AttemptRecord.model_validate_json(json.dumps(plain))

    def _unfinished(self, report: pytest.TestReport, entry: CaseEntry, plan: AttemptPlan) -> AttemptRecord | None:
        """An attempt that started and left no record; None where none started or it was told already."""
        why: InconclusiveReason
        if report.when not in ("setup", "call", "teardown"):
            # xdist's report of a crash has a phase of its own; rerunfailures may have it repeated.
            why, text = "worker-crashed", "the pytest worker that ran it ended without a word"
        elif report.when == "call" or (report.when == "setup" and report.outcome in ("failed", "rerun")):
            why, text = "machinery-broke", f"no record came with its {report.when} report: {report.longreprtext}"
        else:
            return None
        assert entry.loaded is not None
        return unfinished_record(
            self._gate.project,
            entry.loaded,
            self._gate.simulation_of(plan),
            plan,
            self._gate.snapshot,
            try_number=self._tries[plan.key],
            why=why,
            text=text,
        )

    def _append(self, record: AttemptRecord) -> None:
        self._attempts.append(record)
        try:
            self._ledger.append(record)
        except LedgerError as error:
            # What the attempt showed stays readable, and the session ends: it could not be counted.
            self._troubles.append(f"{error.text}\n{self._spooled(record)}")
            if self._session is not None:
                self._session.shouldstop = "the ledger cannot be written"

    def _spooled(self, record: AttemptRecord) -> str:
        """Keep a record that the ledger refused beside the attempts; say where, or why not even there."""
        spool = self._gate.session_folder / SPOOL_FILE
        try:
            spool.parent.mkdir(parents=True, exist_ok=True)
            with spool.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record.to_plain()) + "\n")
        except OSError as error:
            return f"What it would have held could not be kept either: {error}."
        # The path on a line of its own, to be copied.
        return (
            "What it would have held is kept, for `regcase ledger import FILE` when the ledger is back:\n"
            f"{os.path.relpath(spool, self._gate.project.root)}"
        )

    def _without_ledger(self) -> GateDecision | None:
        """Decide once more, now that the ledger failed: what could not be kept is not green."""
        try:
            return self._decide()
        except LedgerError:
            return None

    def _decide(self) -> GateDecision:
        gate = self._gate
        return decide_session(
            gate.project,
            [entry.loaded for entry in gate.entries if entry.loaded is not None],
            self._ledger,
            self._row,
            snapshot=gate.snapshot,
            simulations=gate.simulations,
            invalid={
                entry.loaded.id if entry.loaded is not None else self._shown(entry.path): "\n".join(entry.problems)
                for entry in gate.entries
                if entry.problems
            },
            interrupted=self._interrupted or bool(self._troubles),
        )

    def _shown(self, path: Path) -> str:
        # The same on every machine: a decision holds no folder of the one that it was made on.
        return Path(os.path.relpath(path, self._gate.project.root)).as_posix()

    @property
    def _revision(self) -> str:
        """What the decision is about: the agent's digest, or one over those of several agents."""
        digests = self._gate.snapshot.agent_digests
        return next(iter(digests.values())) if len(digests) == 1 else digest_of(digests)

    def _keep(self, decision: GateDecision) -> None:
        """Finish the session's row, unless it was interrupted: one without an end is unproven for good."""
        if self._report is not None:
            try:
                self._report.write(decision, self._attempts)
            except OSError as error:
                self._troubles.append(f"Couldn't write the report {self._report.path}: {error}.")
        now = datetime.now(UTC)
        self._ledger.save_decision(decision, at=now, revision=self._revision)
        if not (self._interrupted or self._troubles):
            self._ledger.finish_session(self._row.session_id, now)
