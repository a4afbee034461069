"""A run: one trial a task, each recorded whatever happens to it, until all are done or nothing more makes sense.

Never prints: whoever calls is handed each event. A single task is a batch of one.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Literal

from pytest_regcase.capture import Task, TrialConfig, TrialRecord, run_trial
from pytest_regcase.config import Project
from pytest_regcase.errors import RegcaseError, WriteError
from pytest_regcase.records.words import TrialStatus
from pytest_regcase.session.batches.batch_plan import Batch, Wanted, plan_batch
from pytest_regcase.session.batches.command_agent import CommandAgent
from pytest_regcase.session.batches.reached import marks_in, reached
from pytest_regcase.session.batches.recorded_failure import AgentDidNotStart
from pytest_regcase.session.batches.run_folder import RunFolder
from pytest_regcase.session.ended_by_signal import ended_by_a_signal
from pytest_regcase.session.plan import agent_config

ALIKE = 3
"""Start-ups that fail in the same way, one after the other, before a run stops."""
_WAIT_SECONDS = 0.5
What = Literal["begun", "started", "finished", "stopped"]


@dataclass(frozen=True)
class Progress:
    """One thing that happened in a run, and where the run stands then."""

    what: What
    done: int
    """Trials of this call that are over."""
    total: int
    """Trials that this call is to run."""
    task_id: str | None = None
    status: TrialStatus | None = None
    says: str | None = None
    """Why it ended as it did, in one line."""
    left_seconds: float | None = None
    """Guessed from those that are over; None before the first is."""
    counts: dict[TrialStatus, int] = field(default_factory=dict)


@dataclass(frozen=True)
class BatchResult:
    """Where the whole run stands, what was done before this call included."""

    batch: Batch
    counts: dict[TrialStatus, int]
    """Over every requested task."""
    stopped_because: str | None = None


@contextmanager
def opened(project: Project, wanted: Wanted) -> Iterator[Batch]:
    """Lock the run's folder, check what is asked for, and give what there is to do.

    Raises:
        UsageRefused: another process runs there; else as `plan_batch`.
    """
    folder = RunFolder(wanted.out)
    if wanted.resume:
        folder.manifest()  # a lock file must not make a folder look like a run's
    existed, marked = folder.path.exists(), folder.is_marked
    with folder.locked():
        try:
            batch = plan_batch(project, wanted)
        except RegcaseError:
            if not marked:
                folder.unmark()
            if not existed:
                folder.path.rmdir()
            raise
        yield batch


def run_batch(
    project: Project,
    batch: Batch,
    *,
    jobs: int = 1,
    keep_going: bool = False,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> BatchResult:
    """Run every task of `batch` that is due; a trial that crashes does not stop the next.

    After `ALIKE` start-ups that failed in the same way no further task is started, unless `keep_going`.

    Raises:
        KeyboardInterrupt: Ctrl-C or SIGTERM: the trials in flight were ended, recorded and put away before.
        WriteError: the disk is full; trials in flight were ended before.
    """
    run = _Run(project, batch, on_progress, keep_going=keep_going)
    run.say("begun")
    with ended_by_a_signal():
        if jobs == 1:
            run.one_after_the_other()
        else:
            run.in_threads(jobs)
    marks = marks_in(batch.folder.predictions)
    counts = Counter(reached(batch.folder, each, marks).status for each in batch.manifest.requested)
    return BatchResult(batch, dict(counts), run.stopped_because)


def run_and_save(project: Project, batch: Batch, task: Task, stop: Event) -> TrialRecord:
    """Run one task of a run and save its trial and its prediction in the run's folder.

    Raises:
        KeyboardInterrupt: it was interrupted; its trial is saved all the same.
        WriteError: the disk is full.
        UsageRefused, FileError: the task cannot be run as it is; nothing of it is saved.
    """
    folder = batch.folder
    name = batch.agent_of(task)
    attempt = folder.earlier_attempts(task.id) + 1
    conditions = batch.manifest.conditions
    return run_trial(
        folder.trial(task.id),
        task=task,
        agent=CommandAgent(project, name, batch.seed, attempt=attempt, replies=batch.replies, stop=stop),
        config=TrialConfig(
            run_id=folder.path.absolute().name,
            attempt=attempt,
            model=agent_config(project, name).model,
            revision=conditions["agents"][name]["revision"],
            labels=("controlled",) if batch.manifest.kind == "controlled" else (),
            conditions={
                "agent": name,
                "seed": batch.seed,
                "kind": batch.manifest.kind,
                "limits": conditions["agents"][name]["limits"],
                "versions": conditions["versions"],
            },
        ),
        predictions=folder.predictions,
        stop=stop,
    )


class _Run:
    """One run in progress. Made once."""

    def __init__(
        self, project: Project, batch: Batch, on_progress: Callable[[Progress], None], *, keep_going: bool
    ) -> None:
        self.project, self.batch, self.on_progress, self.keep_going = project, batch, on_progress, keep_going
        self.stop = Event()
        self.stopped_because: str | None = None
        self.jobs = 1
        self._counts: Counter[TrialStatus] = Counter()
        self._began = time.monotonic()
        self._alike: list[str] = []

    def one_after_the_other(self) -> None:
        """Run in this thread, which Ctrl-C reaches at once."""
        for task in self.batch.to_run:
            if self.stopped_because is not None:
                return
            self.say("started", task)
            self._over(task, partial(self._run, task))

    def in_threads(self, jobs: int) -> None:
        """Run several at a time; an interrupt ends those in flight, and waits until they are put away."""
        self.jobs = jobs
        waiting = iter(self.batch.to_run)
        flying: dict[Future[TrialRecord], Task] = {}
        with ThreadPoolExecutor(jobs, thread_name_prefix="regcase-run") as pool:
            try:
                while True:
                    while len(flying) < jobs and self.stopped_because is None:
                        task = next(waiting, None)
                        if task is None:
                            break
                        self.say("started", task)
                        flying[pool.submit(self._run, task)] = task
                    if not flying:
                        return
                    for future in wait(flying, _WAIT_SECONDS, FIRST_COMPLETED).done:
                        self._over(flying.pop(future), future.result)
            except BaseException:
                self.stop.set()
                wait(flying)
                raise

    def say(
        self, what: What, task: Task | None = None, status: TrialStatus | None = None, says: str | None = None
    ) -> None:
        """Hand an event on."""
        done, total = self._counts.total(), len(self.batch.to_run)
        spent = time.monotonic() - self._began
        self.on_progress(
            Progress(
                what,
                done,
                total,
                task_id=task.id if task is not None else None,
                left_seconds=spent / done * (total - done) if done else None,
                counts=dict(self._counts),
                status=status,
                says=says,
            )
        )

    def _run(self, task: Task) -> TrialRecord:
        return run_and_save(self.project, self.batch, task, self.stop)

    def _over(self, task: Task, result: Callable[[], TrialRecord]) -> None:
        says = None
        try:
            record: TrialRecord | None = result()
        except WriteError:
            raise
        except RegcaseError as error:
            record, says = None, error.text
        here = reached(self.batch.folder, task.id)
        self._counts[here.status] += 1
        if record is not None and record.error is not None:
            says = ": ".join(each for each in (record.error.type, record.error.message) if each)
        self._note_start_up(task, record, says)
        line = says.splitlines()[0][:200] if says else None
        self.say("finished", task, here.status, line)
        if self.stopped_because is not None:
            self.say("stopped", says=self.stopped_because)

    def _note_start_up(self, task: Task, record: TrialRecord | None, says: str | None) -> None:
        failed = record is None or _failed_to_start(record)
        self._alike = [*self._alike, _alike(says or "", task, self.batch.folder.trial(task.id))] if failed else []
        last = self._alike[-ALIKE:]
        if not self.keep_going and len(last) == ALIKE and len(set(last)) == 1 and self.stopped_because is None:
            self.stopped_because = f"{ALIKE} start-ups failed in the same way: {(says or '').splitlines()[0]}"


def _failed_to_start(record: TrialRecord) -> bool:
    """Say whether a trial ended before its agent had asked a model: set-up, not work, is what failed."""
    if any(each.type == "start_environment" and each.fatal for each in record.failed_steps):
        return True
    kind = (record.error.type or "").rpartition(".")[2] if record.error is not None else ""
    return record.replies == 0 and kind in (AgentDidNotStart.__name__, "MachineryError", "UsageRefused")


def _alike(says: str, task: Task, folder: Path) -> str:
    """Return what a failure says without what differs from task to task: ids, paths, numbers."""
    for own in (str(folder.absolute()), str(folder), task.id):
        says = says.replace(own, "...")
    return re.sub(r"0x[0-9a-f]+|\d+", "0", says)
