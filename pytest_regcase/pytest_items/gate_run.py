"""What every process of one gate run shares: the project, the frozen state, the planned cases."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_regcase.case_files import LoadedSimulation, RealPlaces
from pytest_regcase.config import Project
from pytest_regcase.records.attempt import AttemptPlan, AttemptRecord
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.rules.policies import Policy
from pytest_regcase.session.planning import opening
from pytest_regcase.session.planning.opening import CaseEntry, Load
from pytest_regcase.session.project.rules_in_force import gate_policy


@dataclass(frozen=True)
class GateRun:
    """One run of ``pytest --regcase``, as this process sees it."""

    project: Project
    snapshot: SessionSnapshot
    simulations: Mapping[str, LoadedSimulation]
    entries: tuple[CaseEntry, ...]
    confirms: bool
    """Whether a failed check can be repeated (pytest-rerunfailures is loaded)."""
    files: tuple[Path, ...] = ()
    """Every case file that was asked for, those of other shards too."""
    load: Load = opening.load_entries
    """How further case files are loaded."""
    kept: dict[str, AttemptRecord] | None = None
    """Records on their way to the controller, by attempt id; None where that is another process."""

    @cached_property
    def policy(self) -> Policy:
        """How many tries a check gets."""
        return gate_policy(self.project)

    @property
    def session_folder(self) -> Path:
        """Where everything that this session leaves behind is put."""
        return Path(self.snapshot.folder)

    @cached_property
    def _places(self) -> RealPlaces:
        return RealPlaces()

    @cached_property
    def _by_path(self) -> dict[Path, CaseEntry]:
        return {self._places.of(entry.path): entry for entry in self.entries}

    def entry_of(self, path: Path) -> CaseEntry | None:
        """Return the planned case of a file; None for a file that is not one of this session's."""
        return self._by_path.get(self._places.of(path))

    def is_data(self, path: Path) -> bool:
        """Say whether a path is data of a case or of an attempt, where no tests of this project can be.

        That is a folder inside a case's folder in which no further case lies, and the folder of all sessions.
        """
        resolved = self._places.of(path)
        if resolved == self._own_folder:
            return True
        return resolved.parent in self._case_folders and resolved not in self._folders_with_cases and path.is_dir()

    @cached_property
    def _own_folder(self) -> Path:
        return opening.sessions_folder(self.project).parent.resolve()

    @cached_property
    def _case_folders(self) -> frozenset[Path]:
        return frozenset(each.parent for each in (*self._by_path, *map(self._places.of, self.files)))

    @cached_property
    def _folders_with_cases(self) -> set[Path]:
        """The folders of cases and all above them."""
        found: set[Path] = set()
        for folder in self._case_folders:
            while folder not in found:
                found.add(folder)
                folder = folder.parent
        return found

    def planned(self, node_id: str, root: Path) -> tuple[CaseEntry, AttemptPlan] | None:
        """Return what the item with this node id attempts; None for an item that is not ours.

        Needed where only a node id is left: xdist reports a crashed worker with nothing else.
        """
        file, *names = node_id.split("::")
        if len(names) != 2:
            return None
        entry = self.entry_of(root / file)
        # loadgroup appends "@group" to node ids; our names hold no "@".
        scenario, name = names[0], names[1].partition("@")[0]
        for plan in entry.plans if entry is not None else ():
            if entry is not None and plan.key.scenario == scenario and plan.key.item_name == name:
                return entry, plan
        return None

    def on_report(self, record: AttemptRecord) -> dict[str, Any]:
        """Return a record as plain JSON types for its report, and keep it for a controller in this process."""
        # Through JSON text: xdist looks up exact types, and a subclass of str would end its session.
        plain: dict[str, Any] = json.loads(record.model_dump_json(by_alias=True))
        self.keep(record, plain)
        return plain

    def keep(self, record: AttemptRecord, plain: Mapping[str, Any]) -> None:
        """Spare the controller of this process reading the record from its report, where `plain` stands.

        One that holds what JSON has no type for, such as a tuple among the facts, is read: it has to be the same
        as from a worker.
        """
        if self.kept is None:
            return
        facts = [each.facts for each in record.findings]
        if record.conditions == plain["conditions"] and facts == [each["facts"] for each in plain["findings"]]:
            self.kept[record.attempt_id] = record

    def simulation_of(self, plan: AttemptPlan) -> LoadedSimulation | None:
        """Return the simulation of a plan; None for control and live."""
        return self.simulations[plan.key.scenario] if plan.kind == "simulation" else None


def to_worker(snapshot: SessionSnapshot, root: Path, files: list[Path]) -> str:
    """Return what a worker needs to plan the same items, as one JSON string.

    xdist can send exact built-in types only; a string is one.
    """
    return json.dumps({"root": str(root), "snapshot": snapshot.to_plain(), "files": [str(each) for each in files]})


def from_controller(text: str) -> tuple[SessionSnapshot, Path, list[Path]]:
    """Read what `to_worker` wrote."""
    data: dict[str, Any] = json.loads(text)
    # Strict records take date-times and tuples from JSON, but not from the values that JSON was parsed to.
    snapshot = SessionSnapshot.model_validate_json(json.dumps(data["snapshot"]))
    return snapshot, Path(data["root"]), [Path(each) for each in data["files"]]
