"""The folder of a run: what was asked for (`run.json`), one folder a task, and the lock of whoever runs it.

    run.json  predictions.jsonl  <task id>/trial.jsonl ...  earlier-attempts/<task id>-1/trial.jsonl ...

Knows the places and never prints. What a trial's folder holds, `capture` knows.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, ValidationError

from pytest_regcase.capture import PREDICTIONS_FILE, TRIAL_FILE
from pytest_regcase.case_files import replace_file, writing
from pytest_regcase.errors import FileError, UsageRefused
from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.words import RunKind
from pytest_regcase.toml_lines import read_bounded, shown

RUN_FILE: Final = "run.json"
EARLIER: Final = "earlier-attempts"
_LOCK: Final = ".regcase-run.lock"
RESERVED: Final = (RUN_FILE, PREDICTIONS_FILE, EARLIER)
"""Names in the folder that no task may have."""
_LIMIT_BYTES: Final = 64 * 1024 * 1024


class TaskOfRun(Record):
    """What one requested task is run with."""

    agent: str
    repo: str | None = None
    base_commit: str | None = None
    """Whole: a name such as a branch was looked up before the run, so that a resumed run starts from the same."""


class Resumption(Record):
    """A later start of the same run."""

    at: datetime
    crashed: bool = False
    """What had crashed was run again too."""
    conditions_changed: dict[str, Any] = Field(default_factory=dict)
    """Those that differ from the run's own: it is then no longer one experiment."""


class Manifest(Record):
    """`run.json`: what was asked for and under which conditions. Written before the first task starts."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    kind: RunKind
    """`controlled` where a stand-in was the agent or the supplier: no result of anybody's agent."""
    requested: Many[str]
    """Task ids in the order in which they were asked for."""
    started_at: datetime
    tasks_file: str
    conditions: dict[str, Any] = Field(default_factory=dict)
    tasks: dict[str, TaskOfRun]
    resumed: Many[Resumption] = ()


@dataclass(frozen=True)
class RunFolder:
    """The places below one run's folder."""

    path: Path

    @property
    def predictions(self) -> Path:
        """The run's predictions, one line a task."""
        return self.path / PREDICTIONS_FILE

    def trial(self, task_id: str) -> Path:
        """Return the folder of one task's trial."""
        return self.path / task_id

    def was_reached(self, task_id: str) -> bool:
        """Say whether a trial of this task was begun."""
        return (self.trial(task_id) / TRIAL_FILE).exists()

    def earlier_attempts(self, task_id: str) -> int:
        """Return how many attempts of this task were put aside to run it again."""
        number = 0
        while (self.path / EARLIER / f"{task_id}-{number + 1}").exists():
            number += 1
        return number

    def put_aside(self, task_id: str) -> None:
        """Make room for another attempt; what is there stays to be seen.

        Raises:
            WriteError: the file system refuses.
        """
        folder = self.trial(task_id)
        if not folder.exists():
            return
        target = self.path / EARLIER / f"{task_id}-{self.earlier_attempts(task_id) + 1}"
        with writing(target):
            target.parent.mkdir(exist_ok=True)
            folder.rename(target)

    def write(self, manifest: Manifest) -> None:
        """Write `run.json`.

        Raises:
            WriteError: the file system refuses.
        """
        text = json.dumps(manifest.to_sparse(), indent=2, ensure_ascii=False) + "\n"
        replace_file(self.path / RUN_FILE, text.encode())

    def manifest(self) -> Manifest:
        """Return what `run.json` says.

        Raises:
            UsageRefused: there is none, so nobody knows what was asked for (slug ``no-run``).
            FileError: it holds something that is not allowed.
        """
        path = self.path / RUN_FILE
        if not path.is_file():
            raise UsageRefused(
                f"Couldn't read the run in {shown(self.path)}: it holds no {RUN_FILE}.\n"
                "Name a folder that `regcase run --out` made.",
                slug="no-run",
            )
        try:
            return Manifest.model_validate_json(read_bounded(path, _LIMIT_BYTES))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(each) for each in first["loc"]) or "the document"
            raise FileError(
                [f"{shown(path)}: {place}: {first['msg']}; allowed: what regcase run wrote"]
            ) from error

    def make(self) -> None:
        """Make the folder of a new run.

        Raises:
            UsageRefused: something is in it already (slug ``run-exists``).
            WriteError: the file system refuses.
        """
        if (self.path / RUN_FILE).exists():
            raise UsageRefused(
                f"Couldn't start a run in {shown(self.path)}: it holds one already.\n"
                "Go on with that one by --resume, or name another folder.",
                slug="run-exists",
            )
        if self.path.is_dir() and any(each.name != _LOCK for each in self.path.iterdir()):
            raise UsageRefused(
                f"Couldn't start a run in {shown(self.path)}: it holds other files.\nName a new folder.",
                slug="run-exists",
            )
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)

    @property
    def is_marked(self) -> bool:
        """Whether a lock file of ours lies in the folder, held or not."""
        return (self.path / _LOCK).exists()

    def unmark(self) -> None:
        """Take our lock file out of a folder that has turned out to be none of a run's."""
        (self.path / _LOCK).unlink(missing_ok=True)

    def runner(self) -> str | None:
        """Return the process that runs in this folder at this moment, None where none does.

        Raises:
            OSError: the lock file cannot be looked at.
        """
        if not self.is_marked:
            return None
        with (self.path / _LOCK).open(encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return lock.read(20).strip() or "of unknown number"
        return None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other runner out meanwhile. The system lets go of the lock when this process dies.

        Raises:
            UsageRefused: another process runs in this folder (slug ``run-locked``).
            WriteError: the file system refuses.
        """
        path = self.path / _LOCK
        with writing(path):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = path.open("a+", encoding="utf-8")
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                holder = lock.read(20).strip()
                raise UsageRefused(
                    f"Couldn't run in {shown(self.path)}: another regcase run"
                    f"{f' (process {holder})' if holder else ''} is at it.\nWait for it, or name another folder.",
                    slug="run-locked",
                ) from None
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield
