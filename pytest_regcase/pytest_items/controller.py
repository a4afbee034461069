"""The controller's side of a gate run: the ledger, the reports, the decision, the summary, the exit status.

One process a session has it: pytest itself, or the controller of pytest-xdist, whose workers need no SQLAlchemy.
It reads attempts and asks for the decision; it makes none.
"""

import json
import os
from collections import Counter
from collections.abc import Generator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from pytest_regcase.case_files import LoadedCase
from pytest_regcase.errors import LedgerError
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.pytest_items.check_standing import GOOD
from pytest_regcase.pytest_items.collected import never_collected_lines
from pytest_regcase.pytest_items.function_lists import FunctionsOfSession, PlannedAttempt, is_part
from pytest_regcase.pytest_items.gate_run import GateRun
from pytest_regcase.pytest_items.hooks import ProjectHooks
from pytest_regcase.pytest_items.termination import Termination
from pytest_regcase.records.attempt import AttemptKey, AttemptRecord
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.session import SessionRow
from pytest_regcase.records.words import InconclusiveReason
from pytest_regcase.reporters.layout import wrapped
from pytest_regcase.reporters.report_file import ReportFile
from pytest_regcase.reporters.terminal import summary_lines
from pytest_regcase.session.attempts.own_check import failed_by
from pytest_regcase.session.attempts.unfinished import unfinished_record
from pytest_regcase.session.gate import decide_session
from pytest_regcase.session.gating.gate_over import release_over
from pytest_regcase.session.ledgers.exchange import SPOOL_FILE
from pytest_regcase.session.planning.opening import invalid_cases
from pytest_regcase.session.revisions.revision import revision_over

_SAYS_LENGTH = 500


class Controller:
    """The hooks that only one process of a session has."""

    def __init__(
        self,
        gate: GateRun,
        ledger: Ledger,
        row: SessionRow,
        *,
        header: Sequence[str],
        reports: Sequence[ReportFile],
        hooks: ProjectHooks,
        termination: Termination,
    ) -> None:
        self._gate = gate
        self._ledger = ledger
        self._row = row
        self._header = header
        self._reports = reports
        self._termination = termination
        self._hooks = hooks
        self._hook_troubles: Counter[str] = Counter()
        self._functions = FunctionsOfSession()
        self._tries: Counter[AttemptKey] = Counter()
        self._session: pytest.Session | None = None
        self._interrupted = False
        self._troubles: list[str] = []
        self._decision: GateDecision | None = None
        self._attempts: list[AttemptRecord] = []
        self._by_key: dict[AttemptKey, list[AttemptRecord]] = {}

    @property
    def decision(self) -> GateDecision | None:
        """The decision, once the session is over; None before, and where the ledger did not let it be made."""
        return self._decision

    @property
    def troubles(self) -> Sequence[str]:
        """What makes this run red whatever the decision says: attempts not counted, reports not written."""
        return self._troubles

    @property
    def attempts(self) -> Sequence[AttemptRecord]:
        """The attempts of this session, as they came."""
        return self._attempts

    @property
    def cases(self) -> Sequence[LoadedCase]:
        """The cases that were asked for, and those that only functions run."""
        entries = self._gate.entries
        asked_for = [entry.loaded for entry in entries if entry.loaded is not None]
        return [*asked_for, *self._functions.cases_beside(entries)]

    def tries_of(self, key: AttemptKey) -> Sequence[AttemptRecord]:
        """The attempts of this session at one planned attempt, as they came."""
        return self._by_key.get(key, ())

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

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note that something could not be collected: nobody knows which marked functions are in it."""
        if report.failed:
            self._interrupted = True
        assert self._session is not None
        root = self._session.config.rootpath
        if report.skipped and self._functions.skipped(root / report.nodeid, self._gate):
            self._write_planned()

    def pytest_collection_finish(self) -> None:
        """Plan the marked functions that this process has collected."""
        self._plan_functions("main")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any) -> None:
        """Plan the marked functions that a worker has collected; no test has run yet."""
        self._plan_functions(node.gateway.id)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the attempt's row at its call report, before any other plugin prints the result.

        A kill of any process can then lose an attempt in flight, never one whose result was seen.
        """
        if is_part(report) or (report.passed and report.when in ("setup", "teardown")):
            return
        planned = self.planned(report.nodeid)
        if planned is None:
            return
        record = self._recorded(report) or self._unfinished(report, planned)
        if record is None:
            return
        key = record.key
        try_number = self._tries[key]
        self._tries[key] += 1
        if record.try_number != try_number:
            # A worker that crashed took its count of tries with it.
            record = record.model_copy(
                update={"try_number": try_number, "attempt_id": f"{record.attempt_id}.try-{try_number}"}
            )
        if report.failed and all(each.verdict in GOOD for each in (*self.tries_of(key), record)):
            # Ours fails only what was not good: a plugin with checks of its own did that.
            last = report.longreprtext.strip().rpartition("\n")[2][:_SAYS_LENGTH]
            record = failed_by(record, planned.plan.kind, f"pytest shows it as failed: {last}")
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
        if self._is_release and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            # A release collects nothing, and means to: the decision alone says how it ended.
            session.exitstatus = pytest.ExitCode.OK
        green = self._decision is not None and self._decision.decision == "pass" and not self._troubles
        if not green and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the decision that was made, not another one."""
        lines = [line for text in self._troubles for each in text.splitlines() for line in wrapped(each, 80)]
        for raised, times in self._hook_troubles.items():
            text = f"{raised} ({times} times); its attempts are stored all the same" if times > 1 else raised
            lines += wrapped(text, 80)
        if self._session is not None:
            lines += never_collected_lines(self._gate, self._session.config.rootpath)
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

    @property
    def planned_keys(self) -> tuple[AttemptKey, ...]:
        """What this session plans, with the marked functions that were collected so far."""
        return self._row.planned

    def planned(self, node_id: str) -> PlannedAttempt | None:
        """Return what the item with this node id attempts; None for an item that is not ours."""
        assert self._session is not None
        found = self._gate.planned(node_id, self._session.config.rootpath)
        if found is None:
            return self._functions.of_node(node_id)
        entry, plan = found
        assert entry.loaded is not None
        return PlannedAttempt(self._gate.project, entry.loaded, plan, self._gate.snapshot)

    def _plan_functions(self, process: str) -> None:
        """Add what a process has found to the session's row, so that what is not run of it is not green."""
        if self._functions.read(self._gate, process):
            self._write_planned()

    def _write_planned(self) -> None:
        known = set(self._row.planned)
        self._row = self._row.model_copy(
            update={
                "planned": (*self._row.planned, *(key for key in self._functions.keys if key not in known)),
                "revisions": {**(self._row.revisions or {}), **self._functions.digests},
            }
        )
        try:
            self._ledger.start_session(self._row)
        except LedgerError as error:
            raise pytest.UsageError(error.text) from error

    def _recorded(self, report: pytest.TestReport) -> AttemptRecord | None:
        plain = getattr(report, "regcase", None)
        if plain is None:
            return None
        kept = (self._gate.kept or {}).pop(plain["attempt_id"], None)
        # From JSON text: strict records take date-times from JSON, not from str.
        return kept or AttemptRecord.model_validate_json(json.dumps(plain))

    def _unfinished(self, report: pytest.TestReport, planned: PlannedAttempt) -> AttemptRecord | None:
        """An attempt that started and left no record; None where none started or it was told already."""
        why: InconclusiveReason
        if report.when not in ("setup", "call", "teardown"):
            # xdist's report of a crash has a phase of its own; rerunfailures may have it repeated.
            why, text = "worker-crashed", "the pytest worker that ran it ended without a word"
        elif report.skipped and report.when == "call" and isinstance(report.longrepr, tuple):
            why, text = "machinery-broke", f"it was skipped while it ran: {report.longrepr[2]}"
        elif report.when == "call" or (report.when == "setup" and report.outcome in ("failed", "rerun")):
            why, text = "machinery-broke", f"no record came with its {report.when} report: {report.longreprtext}"
        else:
            return None
        return unfinished_record(
            planned.project,
            planned.loaded,
            self._gate.simulation_of(planned.plan),
            planned.plan,
            planned.snapshot,
            try_number=self._tries[planned.plan.key],
            why=why,
            text=text,
        )

    def _append(self, record: AttemptRecord) -> None:
        self._attempts.append(record)
        self._by_key.setdefault(record.key, []).append(record)
        try:
            self._ledger.append(record)
            raised = self._hooks.finished(record)
            if raised is not None:
                self._hook_troubles[raised] += 1
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

    @property
    def _is_release(self) -> bool:
        """Say whether this run runs nothing and decides over the ledger."""
        assert self._session is not None
        with_tests = self._session.config.getoption("regcase_with_tests")
        return self._gate.snapshot.profile == "release" and not with_tests

    def _decide(self) -> GateDecision:
        gate = self._gate
        if gate.snapshot.profile == "release":
            agent = gate.snapshot.agent
            answer = release_over(gate.project, gate.entries, gate.simulations, self._ledger, agent=agent)
            self._attempts = list(answer.attempts)
            return answer.decision
        return decide_session(
            gate.project,
            [entry.loaded for entry in gate.entries if entry.loaded is not None],
            self._ledger,
            self._row,
            snapshot=gate.snapshot,
            simulations=gate.simulations,
            invalid=invalid_cases(gate.project, gate.entries),
            beside=self._functions.cases_beside(gate.entries),
            interrupted=self._interrupted or bool(self._troubles),
        )

    def _keep(self, decision: GateDecision) -> None:
        """Finish the session's row, unless it was interrupted: one without an end is unproven for good."""
        for report in self._reports:
            try:
                report.write(decision, self._attempts)
            except OSError as error:
                self._troubles.append(f"Couldn't write the report {report.path}: {error}.")
        now = datetime.now(UTC)
        self._ledger.save_decision(decision, at=now, revision=revision_over(self._gate.snapshot.agent_digests))
        if not (self._interrupted or self._troubles):
            self._ledger.finish_session(self._row.session_id, now)
