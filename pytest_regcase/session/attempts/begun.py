"""An attempt from its plan on: what is known of it before anything ran, and the record that it ends in.

Knows no process, no supplier and no way of running an agent. Never prints.
"""

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pytest_regcase.case_files import LoadedCase, LoadedSimulation
from pytest_regcase.config import Project
from pytest_regcase.records.attempt import AttemptPlan, AttemptRecord
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.records.words import InconclusiveReason
from pytest_regcase.session.attempts.unfinished import identity


@dataclass(frozen=True)
class Begun:
    """One attempt that has begun."""

    project: Project
    loaded: LoadedCase
    simulation: LoadedSimulation | None
    plan: AttemptPlan
    snapshot: SessionSnapshot
    try_number: int
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    t0: float = field(default_factory=time.monotonic)
    """Where the clock of its wire log starts."""

    @property
    def passes_through(self) -> bool:
        """Whether the real supplier answers."""
        return self.plan.kind == "live" or self.loaded.case.passes_through

    @property
    def why_no_supplier(self) -> str | None:
        """Say why there can be no supplier for it; None where there can."""
        if self.passes_through and self.project.config.upstream is None:
            return "[tool.regcase.upstream] is not configured, so there is no live supplier to run against"
        return None

    def new_folder(self) -> Path:
        """Make the folder that everything of this attempt is put in; no other attempt has it."""
        key = self.plan.key
        # A function's name is a path; its last part is enough to be recognised by.
        by = "" if "::" not in key.agent else f".{key.agent.rpartition('::')[2]}"
        name = f"{key.case_id}.{key.scenario}.{key.run}.{self.try_number}{by}"
        parent = Path(self.snapshot.folder) / "attempts"
        for suffix in range(1, 1000):
            folder = parent / (name if suffix == 1 else f"{name}.again-{suffix}")
            with suppress(FileExistsError):
                folder.mkdir(parents=True)
                return folder
        raise FileExistsError(f"{parent / name} and its 999 successors are taken")

    def relative(self, folder: Path) -> str:
        """Return the attempt's folder as its record names it."""
        return os.path.relpath(folder, self.project.root)

    def inconclusive(self, why: InconclusiveReason, text: str, *, folder: str | None = None) -> AttemptRecord:
        """Return a record of an attempt that proves nothing."""
        return self.record(verdict="inconclusive", reason=why, says=text, folder=folder)

    def record(self, **facts: object) -> AttemptRecord:
        """Return the record: which attempt it is, when, and what is told of it here."""
        about = identity(
            self.project, self.loaded, self.simulation, self.plan, self.snapshot, try_number=self.try_number
        )
        return AttemptRecord.model_validate(
            {
                **about,
                "started_at": self.started_at,
                "duration_seconds": round(time.monotonic() - self.t0, 3),
                **facts,
            }
        )
