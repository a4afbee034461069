"""What became of every task that a run was asked for, by our own records first and a scorer's reports after.

Never prints, and changes nothing. A crashed attempt stays a crash, whatever a scorer made of what it left.
"""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, get_args

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.words import Quality, Retry, RunKind, TrialStatus
from pytest_regcase.rules.trial_status import trial_status
from pytest_regcase.session.batches.reached import Reached, marks_in, reached
from pytest_regcase.session.batches.run_folder import RUN_FILE, Manifest, RunFolder
from pytest_regcase.session.batches.scores import Score, Scores, read_scores
from pytest_regcase.toml_lines import shown

STATUSES: Final[tuple[TrialStatus, ...]] = get_args(TrialStatus)


@dataclass(frozen=True)
class TaskSummary:
    """One requested task."""

    task_id: str
    status: TrialStatus
    degraded: bool
    """Evidence of it was lost."""
    quality: Quality | None
    retry: Retry | None
    cause: str | None
    """Cause and kind of the error that ended it, such as ``transient (rate_limit)``."""
    error: str | None
    clues: tuple[str, ...]
    lost: tuple[str, ...]
    """Each step that failed: its id, role and cause."""
    earlier_attempts: int


@dataclass(frozen=True)
class Summary:
    """One run."""

    folder: Path
    kind: RunKind
    tasks: tuple[TaskSummary, ...]
    notices: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[TrialStatus, int]:
        """How many tasks have which status: every status, also those that none has. They add up to `tasks`."""
        found = Counter(each.status for each in self.tasks)
        return {status: found[status] for status in STATUSES}

    @property
    def degraded(self) -> int:
        """How many lost evidence."""
        return sum(each.degraded for each in self.tasks)

    @property
    def attempts(self) -> int:
        """How many trials were begun; those that were put aside to be run again count as well."""
        return sum((each.status != "not_reached") + each.earlier_attempts for each in self.tasks)


def runs_in(path: Path) -> tuple[Path, ...]:
    """Return the folder of the run at `path`, or those of the runs right below it, by name.

    Raises:
        UsageRefused: there is no run.
    """
    if (path / RUN_FILE).is_file():
        return (path,)
    below = sorted(each.parent for each in path.glob(f"*/{RUN_FILE}")) if path.is_dir() else []
    if not below:
        raise UsageRefused(
            f"Couldn't sum up {shown(path)}: it holds no {RUN_FILE}, so nobody knows what was asked for.\n"
            "Name a folder that `regcase run --out` made, or one that holds several of them.",
            slug="no-run",
        )
    return tuple(below)


def summarise(path: Path, reports: Path | None = None) -> Summary:
    """Return what became of every task of the run in `path`.

    Raises:
        UsageRefused, FileError: it is no run's folder, or its `run.json` cannot be read.
        ImportRefused: `reports` holds no report.
    """
    folder = RunFolder(path)
    manifest = folder.manifest()
    marks = marks_in(folder.predictions)
    scores = read_scores(reports, manifest.requested) if reports is not None else None
    tasks = tuple(
        _task(folder, each, reached(folder, each, marks), scores.scores.get(each) if scores else None)
        for each in manifest.requested
    )
    return Summary(path, manifest.kind, tasks, tuple(_notices(folder, manifest, scores)))


def _task(folder: RunFolder, task_id: str, here: Reached, score: Score | None) -> TaskSummary:
    facts = here.facts
    clues = score.clues if score is not None else ()
    if score is not None:
        ours = {True: "resolved", False: "unresolved", None: None}[facts.resolved]
        if ours is not None and score.resolved is not None and facts.resolved != score.resolved:
            clues = (*clues, f"our own grader: {ours}")
        if score.resolved is not None:
            empty = facts.empty_patch or score.empty_patch
            facts = replace(facts, resolved=score.resolved, empty_patch=empty)
    quality = here.quality
    record, cause = here.record, here.cause
    error = record.error if record is not None else None
    failed = record.failed_steps if record is not None else ()
    return TaskSummary(
        task_id=task_id,
        status=trial_status(facts),
        degraded=any(each.step_role == "evidence" for each in failed),
        quality=quality.quality if quality is not None else None,
        retry=quality.retry if quality is not None else None,
        cause=f"{cause.cause} ({cause.kind})" if cause is not None else None,
        error=": ".join(each for each in (error.type, error.message) if each) if error is not None else None,
        clues=clues,
        lost=tuple(f"{each.step_id} ({each.step_role}, {each.cause})" for each in failed),
        earlier_attempts=folder.earlier_attempts(task_id),
    )


def _notices(folder: RunFolder, manifest: Manifest, scores: Scores | None) -> "list[str]":
    runner = folder.runner()
    notices = (
        [f"process {runner} is at this run: what it has under way counts as interrupted"]
        if runner is not None
        else []
    )
    notices += [
        f"resumed at {each.at:%Y-%m-%d %H:%M} UTC under other conditions: {', '.join(each.conditions_changed)}"
        for each in manifest.resumed
        if each.conditions_changed
    ]
    if scores is not None:
        notices += [
            f"a report that cannot be read is left out: {each.splitlines()[0]}" for each in scores.unreadable
        ]
        unnamed = [each for each in manifest.requested if each not in scores.scores]
        if unnamed:
            notices.append(f"no report names {len(unnamed)} of the {len(manifest.requested)} tasks")
        if scores.others:
            notices.append(f"the reports name {scores.others} tasks that this run was not asked for")
    return notices
