"""What a benchmark's scorer says of a run's tasks: SWE-bench's reports, read with its importers.

Knows outcomes and labels. A label of a broken environment is a clue: it decides no status.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_regcase.errors import ImportRefused, UsageRefused
from pytest_regcase.importers.protocol import Importer
from pytest_regcase.importers.reading import printable
from pytest_regcase.importers.recognise import (
    Source,
    kind_of,
    not_recognised,
    only_refusals,
    recognise_file,
    recognise_folder,
)
from pytest_regcase.importers.swe_bench_instance import SweBenchInstance
from pytest_regcase.importers.swe_bench_run_report import SweBenchRunReport
from pytest_regcase.records.trial import Trial

_EMPTY = "swe-bench:empty_patch"


@dataclass(frozen=True)
class Score:
    """What the reports come to for one task."""

    resolved: bool | None
    """None: they know the task, and did not score it."""
    empty_patch: bool
    clues: tuple[str, ...]
    """The scorer's own labels and reason codes."""
    by: str
    """The file that says so."""


@dataclass(frozen=True)
class Scores:
    """What a folder of reports says."""

    scores: dict[str, Score]
    """Of the tasks that were asked about and that a report names."""
    others: int
    """Tasks that only the reports know."""
    unreadable: tuple[str, ...]


def read_scores(path: Path, task_ids: Collection[str]) -> Scores:
    """Return what the SWE-bench reports at or below `path` say of the tasks.

    Raises:
        ImportRefused: there is no such path, or no report in it that can be read.
        UsageRefused: two reports score one task differently: they are of several runs.
    """
    known: list[Importer] = [SweBenchRunReport(), SweBenchInstance()]
    if kind_of(path) == "folder":
        found = recognise_folder(path, known)
        sources, lost = found.sources, [each.refusal for each in found.unreadable]
    else:
        source = recognise_file(path, known)
        sources, lost = [source] if source is not None else [], []
    if not sources and not lost:
        raise not_recognised(path, known, "it holds no report of SWE-bench")
    scores: dict[str, Score] = {}
    others: set[str] = set()
    for source in sources:
        try:
            for task_id, score in _scores_of(source, task_ids, others):
                scores[task_id] = _joined(task_id, scores.get(task_id), score)
        except ImportRefused as refusal:
            lost.append(refusal)
    if lost and not scores and not others:
        raise lost[0]
    return Scores(scores, len(others), tuple(each.text for each in lost))


def _scores_of(source: Source, task_ids: Collection[str], others: set[str]) -> Iterator[tuple[str, Score]]:
    """Yield what one report says of the tasks; what else it names goes into `others`."""
    with only_refusals(source.path):
        for ref in source.reader.list_trials(source.path):
            if ref.key in task_ids:
                yield ref.key, _score(source.reader.read(source.path, ref), source)
            else:
                others.add(ref.key)


def _score(trial: Trial, source: Source) -> Score:
    empty = _EMPTY in trial.labels
    resolved = {"passed": True, "failed": False}.get(trial.outcome)
    return Score(
        resolved=False if empty and resolved is None else resolved,
        empty_patch=empty,
        clues=tuple(printable(each) for each in trial.labels),
        by=source.path.name,
    )


def _joined(task_id: str, old: Score | None, new: Score) -> Score:
    if old is None:
        return new
    if None not in (old.resolved, new.resolved) and old.resolved != new.resolved:
        raise UsageRefused(
            f"Couldn't sum up: {old.by} and {new.by} score {task_id} differently, so they are of several runs.\n"
            "Name the reports of one run: --reports DIR.",
            slug="reports-differ",
        )
    scored = old if old.resolved is not None else new
    return Score(
        scored.resolved,
        old.empty_patch or new.empty_patch,
        tuple(dict.fromkeys((*old.clues, *new.clues))),
        scored.by,
    )
