"""Turns planned cases into pytest nodes: a file, its scenarios, their attempts; and selects what a gate run keeps.

Node ids hold letters, digits and hyphens only after the file: pytest's ``--lf`` loses names with brackets or "::".
"""

from collections.abc import Generator, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.pytest_items.attempt_item import AttemptItem, InvalidCaseItem
from pytest_regcase.pytest_items.collected import leave_list
from pytest_regcase.pytest_items.gate_run import GateRun
from pytest_regcase.pytest_items.plan_order import put_in_plan_order
from pytest_regcase.records.attempt import AttemptPlan
from pytest_regcase.session.planning.opening import CaseEntry


class ScenarioCollector(pytest.Collector):
    """One way a case is run: its control, one of its simulations, or its live runs."""

    def __init__(self, *, gate: GateRun, entry: CaseEntry, plans: dict[int, AttemptPlan], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._gate = gate
        self._entry = entry
        self._plans = plans

    def collect(self) -> Iterator[pytest.Item]:
        """Yield one item an attempt."""
        for place, plan in self._plans.items():
            yield AttemptItem.from_parent(
                self, name=plan.key.item_name, gate=self._gate, entry=self._entry, plan=plan, place=place
            )


class CaseFile(pytest.File):
    """A case file of this session."""

    def __init__(self, *, gate: GateRun, entry: CaseEntry, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._gate = gate
        self._entry = entry

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Yield the scenarios, or one failing item.

        Never raises for a bad file: a collection error would stop all other cases in a serial run, and none under
        xdist.
        """
        if self._entry.problems:
            yield InvalidCaseItem.from_parent(self, name="invalid", gate=self._gate, entry=self._entry)
            return
        for scenario, plans in groupby(enumerate(self._entry.plans), key=lambda plan: plan[1].key.scenario):
            yield ScenarioCollector.from_parent(
                self, name=scenario, gate=self._gate, entry=self._entry, plans=dict(plans)
            )


class Items:
    """The hooks of every process of a gate run that collects or runs items."""

    def __init__(self, gate: GateRun, *, with_tests: bool, leaves_lists: bool) -> None:
        self._gate = gate
        self._with_tests = with_tests
        self._leaves_lists = leaves_lists

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect the case files of this session, and no other file of that name."""
        if file_path.name != "case.toml":
            return None
        entry = self._gate.entry_of(file_path)
        if entry is None:
            return None
        return CaseFile.from_parent(parent, path=file_path, gate=self._gate, entry=entry)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Keep pytest out of what belongs to a case or an attempt: recorded files, work trees, session folders."""
        return True if self._gate.is_data(collection_path) else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        """Note what this process collected, keep case items and functions marked `regcase`, put ours in order.

        First, so that the list holds what ``-k`` and others are about to leave out; and last, so that a plugin
        that shuffles tests does not run a live attempt before a lower number, or the control at the end.
        """
        if self._leaves_lists:
            process: str = getattr(config, "workerinput", {}).get("workerid", "main")
            leave_list(self._gate.session_folder, process, [each.nodeid for each in items if _is_ours(each)])
        if not self._with_tests:
            kept = [each for each in items if _is_ours(each) or each.get_closest_marker("regcase") is not None]
            if len(kept) < len(items):
                wanted = set(kept)
                config.hook.pytest_deselected(items=[each for each in items if each not in wanted])
                items[:] = kept
        yield
        put_in_plan_order(items, _place_in_plan)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Hang the attempt's record on the call report, as plain JSON types and nothing else of ours."""
        report = yield
        if isinstance(item, AttemptItem) and call.when == "call":
            record = item.take_record()
            if record is not None:
                report.regcase = self._gate.on_report(record)  # type: ignore[attr-defined]
        if isinstance(item, AttemptItem) and report.skipped and isinstance(report.longrepr, tuple):
            # The place of a skip is the case, not our line that raised it.
            report.longrepr = (str(item.path), 1, report.longrepr[2])
        return report


def _is_ours(item: pytest.Item) -> bool:
    return isinstance(item, AttemptItem | InvalidCaseItem)


def _place_in_plan(item: pytest.Item) -> tuple[Path, int] | None:
    return (item.path, item.place) if isinstance(item, AttemptItem) else None
