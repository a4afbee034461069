"""The lists of marked functions that each process leaves in the session's folder, and what the controller makes of
them.

Functions are known only where tests were collected: under pytest-xdist that is in the workers. A list holds what
was found before ``-k`` and others left some out.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_regcase.case_files import LoadedCase
from pytest_regcase.config import Project
from pytest_regcase.pytest_items.gate_run import GateRun
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.session.functions import for_function
from pytest_regcase.session.planning.opening import CaseEntry

if TYPE_CHECKING:
    from pytest_regcase.pytest_items.marked_functions import MarkedFunctions

IS_PART = "regcase_part"
"""Set on the report of a part of a function's call, such as a subtest: it has the node id of the item."""
_FOLDER = "functions"
_MARK = "mark.regcase"


def is_part(report: pytest.TestReport) -> bool:
    """Say whether a report is about a part of an attempt, and not about the attempt."""
    return getattr(report, IS_PART, False)


@dataclass(frozen=True)
class PlannedAttempt:
    """What one item attempts, as the controller knows it."""

    project: Project
    loaded: LoadedCase
    plan: AttemptPlan
    snapshot: SessionSnapshot


@dataclass
class FunctionsOfSession:
    """All marked functions that any process has collected."""

    digests: dict[str, str] = field(default_factory=dict)
    """Function -> its revision."""
    planned: dict[AttemptKey, PlannedAttempt] = field(default_factory=dict)
    wrong: list[AttemptKey] = field(default_factory=list)
    """Of functions that cannot run: planned, and never made."""
    _nodes: dict[str, AttemptKey] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[AttemptKey, ...]:
        """Everything that is planned of functions."""
        return (*self.planned, *self.wrong)

    def cases_beside(self, entries: Iterable[CaseEntry]) -> tuple[LoadedCase, ...]:
        """Return the cases that functions run and that are none of `entries`, each once."""
        known = {each.loaded.id for each in entries if each.loaded is not None}
        cases = {each.loaded.id: each.loaded for each in self.planned.values()}
        return tuple(loaded for name, loaded in cases.items() if name not in known)

    def of_node(self, node_id: str) -> PlannedAttempt | None:
        """Return what the item with this node id attempts; None for one that is no marked function's."""
        # loadgroup appends "@group" to node ids.
        key = self._nodes.get(node_id) or self._nodes.get(node_id.rpartition("@")[0])
        return None if key is None else self.planned.get(key)

    def read(self, gate: GateRun, process: str) -> bool:
        """Take in the list of one process; return whether it holds anything new."""
        try:
            told = json.loads((gate.session_folder / _FOLDER / f"{process}.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return False
        before = len(self.planned) + len(self.wrong)
        for each in told["functions"]:
            self._take(each, gate)
        for name in told["wrong"]:
            key = AttemptKey(case_id=name, agent=name, scenario="control")
            if key not in self.wrong:
                self.wrong.append(key)
        for node_id, key in told["nodes"].items():
            self._nodes[node_id] = AttemptKey.model_validate(key)
        return len(self.planned) + len(self.wrong) > before

    def skipped(self, file: Path, gate: GateRun) -> bool:
        """Note that a file skips itself, so that nobody knows what is in it; return whether it marks functions."""
        try:
            marks = _MARK in file.read_text(encoding="utf-8", errors="replace")
        except OSError:  # a folder, a package
            return False
        name = Path(os.path.relpath(file, gate.project.root)).as_posix()
        key = AttemptKey(case_id=name, agent=name, scenario="control")
        if not marks or key in self.wrong:
            return False
        self.wrong.append(key)
        return True

    def _take(self, told: dict[str, Any], gate: GateRun) -> None:
        agent, digest = told["agent"], told["digest"]
        if agent in self.digests:
            return
        path = Path(told["case"])
        entry = gate.entry_of(path) or gate.load([path])[0]
        loaded = entry.loaded
        if loaded is None:  # edited since
            self.wrong.append(AttemptKey(case_id=agent, agent=agent, scenario="control"))
            return
        own_project, own_snapshot = for_function(gate.project, loaded, gate.snapshot, agent, digest)
        self.digests[agent] = digest
        for each in told["plans"]:
            plan = AttemptPlan.model_validate_json(json.dumps(each))
            self.planned[plan.key] = PlannedAttempt(own_project, loaded, plan, own_snapshot)


def leave_list(
    config: pytest.Config, session_folder: Path, functions: "MarkedFunctions", nodes: dict[str, AttemptKey]
) -> None:
    """Write the list of this process, where it has any functions."""
    if not functions.planned and not functions.wrong:
        return
    told = {
        "functions": [
            {
                "agent": each.agent,
                "digest": each.digest,
                "case": str(each.entry.path),
                "plans": [plan.to_plain() for plan in each.plans],
            }
            for each in functions.planned
            if each.plans
        ],
        "wrong": [each.agent for each in functions.wrong],
        "nodes": {node_id: key.to_plain() for node_id, key in nodes.items()},
    }
    worker: str = getattr(config, "workerinput", {}).get("workerid", "main")
    folder = session_folder / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{worker}.json"
    unfinished.write_text(json.dumps(told) + "\n", encoding="utf-8")
    os.replace(unfinished, folder / f"{worker}.json")
