"""Hooks that make the file of ``--junitxml`` hold one testcase a check, with its tries as properties.

pytest writes the file; here is noted what its own plugin saw of our items, and afterwards the file is corrected.
"""

import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.pytest_items.controller import Controller
from pytest_regcase.pytest_items.function_lists import is_part
from pytest_regcase.pytest_items.gate_run import GateRun
from pytest_regcase.records.attempt import AttemptKey
from pytest_regcase.reporters.junit_file import ITEM, CheckElement, SuiteFacts, one_testcase_a_check
from pytest_regcase.reporters.junit_properties import check_properties, suite_properties, why_red


@dataclass
class _Seen:
    """What the reports of one item of ours said so far."""

    key: AttemptKey | None
    """None: the item of a case file that does not load."""
    finished: bool = False


class JUnit:
    """Follows our items' reports beside pytest's own JUnit plugin; registered before the `Controller`."""

    def __init__(self, gate: GateRun, controller: Controller, config: pytest.Config) -> None:
        self._gate = gate
        self._controller = controller
        self._root = config.rootpath
        self._prefix: str | None = config.getoption("junitprefix")
        # As pytest reads it.
        given = os.path.expanduser(os.path.expandvars(config.getoption("xmlpath")))
        self._path = Path(os.path.abspath(given))
        self._items: dict[str, _Seen | None] = {}
        self._named: dict[tuple[str, Any], bool] = {}
        self._trouble: str | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the report of an item of ours, and hang the tries so far on it before pytest's plugin reads it."""
        seen = self._seen(report)
        if seen is None:
            return
        if report.when != "teardown" and not is_part(report):
            # A passed set-up is the start of a try; "rerun" says that another one follows.
            seen.finished = report.outcome in ("failed", "skipped") or (report.passed and report.when == "call")
        self._note_name(report)
        # On the report: what hangs on the item comes again with its next try.
        report.user_properties = [
            *(each for each in report.user_properties if not str(each[0]).startswith("regcase.")),
            (ITEM, report.nodeid),
            *self._properties(seen),
        ]

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Generator[None]:
        """Correct the file once it is written and the decision is made."""
        yield
        try:
            self._rewrite()
        except (OSError, ValueError) as error:
            self._trouble = f"Couldn't correct {self._path}: {error}. It stays as pytest wrote it."

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say that the file is not what it should be; the decision does not hang on it."""
        if self._trouble is not None:
            terminalreporter.write_line(f"regcase: {self._trouble}")

    def _rewrite(self) -> None:
        if not self._path.is_file():
            raise ValueError("it is no regular file")
        decision, troubles = self._controller.decision, self._controller.troubles
        checks = [
            CheckElement(node_id, seen.finished, self._properties(seen, decided=True))
            for node_id, seen in self._items.items()
            if seen is not None
        ]
        suite = SuiteFacts(
            properties=suite_properties(decision, troubles),
            red=why_red(decision, troubles),
            prefix=self._prefix,
            nameless=sum(not named for named in self._named.values()),
        )
        text = one_testcase_a_check(self._path.read_bytes(), checks, suite)
        target = self._path.resolve()
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        unfinished.write_bytes(text)
        os.replace(unfinished, target)

    def _seen(self, report: pytest.TestReport) -> _Seen | None:
        """What is noted of the report's item; None for an item that is not ours."""
        node_id = report.nodeid
        if node_id not in self._items:
            planned = self._controller.planned(node_id)
            if planned is not None:
                self._items[node_id] = _Seen(planned.plan.key)
            else:
                file, _, name = node_id.partition("::")
                invalid = name == "invalid" and self._gate.entry_of(self._root / file) is not None
                self._items[node_id] = _Seen(None) if invalid else None
        return self._items[node_id]

    def _note_name(self, report: pytest.TestReport) -> None:
        """Note for which tries pytest's plugin began a testcase and never named it.

        It names one at a result and at the tear-down; a worker that crashes where the try is repeated, and an
        interruption, leave it without.
        """
        key = report.nodeid, getattr(report, "node", None)
        if report.when == "teardown":
            self._named.pop(key, None)
        elif report.outcome in ("failed", "skipped") or (report.passed and report.when == "call"):
            self._named[key] = True
        else:
            self._named.setdefault(key, False)

    def _properties(self, seen: _Seen, *, decided: bool = False) -> tuple[tuple[str, str], ...]:
        if seen.key is None:
            return ()
        tries = self._controller.tries_of(seen.key)
        return check_properties(tries, self._controller.decision if decided else None)
