"""From a path to written cases: find, read, redact, draft, write. The order of these stages, and nothing else.

Must not print and must not import pytest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pytest_regcase.config import Project
from pytest_regcase.errors import ImportRefused, UsageRefused
from pytest_regcase.importers.collection import Collection, collect
from pytest_regcase.importers.reading import refused
from pytest_regcase.importers.recognise import Unreadable
from pytest_regcase.importers.source import Choice, nothing_failed, pick
from pytest_regcase.records.plurals import how_many
from pytest_regcase.recovery.symptom import signature
from pytest_regcase.redaction import redact
from pytest_regcase.session.new_cases.given_work_tree import read_work_tree
from pytest_regcase.session.new_cases.making import (
    Adopted,
    Making,
    Plan,
    Settings,
    redacted,
    said_of,
    write,
    write_all,
)
from pytest_regcase.session.new_cases.persons_word import PersonsWord, said
from pytest_regcase.session.sweeps.sweep import (
    Failure,
    Sweep,
    by_signature,
    counted,
    read_sweep,
    representative,
    why_no_count,
)

_OF_ONE_SIGNATURE: Final = frozenset({"looks-like", "transcript-too-large", "id-taken"})
"""Refusals that concern one signature; any other one ends `--all` before anything is written."""


@dataclass(frozen=True)
class PassedOver:
    """A failure signature that no case was made of, and why."""

    signature: str
    trials: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class AdoptedAll:
    """What `--all` made of a sweep."""

    adopted: tuple[Adopted, ...]
    passed_over: tuple[PassedOver, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Listed:
    """The failed trials of a sweep, and what could not be read."""

    failures: tuple[Failure, ...]
    unreadable: tuple[Unreadable, ...]
    trials: int


def adopt(
    project: Project,
    source: Path,
    settings: Settings | None = None,
    *,
    choice: Choice | None = None,
    case_id: str | None = None,
    work_tree: Path | None = None,
    word: PersonsWord | None = None,
    attachments: Sequence[Path] = (),
    title: str | None = None,
) -> Adopted:
    """Make a case of one failed trial in `source`. Nothing is written unless everything could be.

    Where the source holds further trials of the same task, how often they failed alike becomes the baseline.

    Raises:
        ImportRefused: there is no failed trial to take; the slug and the words say why.
        UsageRefused: the id is taken or no id, it looks like a case that is there, the work tree or a log cannot
            be taken, a person's word contradicts the log, or nobody owns the case.
        WriteError: the file system refuses.
    """
    settings = settings or Settings()
    word = word or PersonsWord()
    picked = replace(choice or Choice(), failed_only=word.outcome is None)
    with collect(source, importer=settings.importer, progress=settings.progress) as found:
        entry = pick(found, picked)
        trial, warnings = said(found.read(entry), word)
        clean = redacted(trial, settings.keep, attachments)
        sweep = _sweep_of_task(found, entry.ref.task_id, settings)
        group = [each for each in sweep.failures if each.signature == signature(clean.trial)]
        counts = counted(clean.trial, entry, group, sweep)
        warnings += [*clean.says, *filter(None, [why_no_count(sweep)]), *_about_unreadable(found.unreadable)]
    tree = read_work_tree(work_tree) if work_tree is not None else None
    making = Making(project, settings)
    plan = making.plan(
        clean,
        counts,
        tree=tree,
        case_id=case_id,
        title=redact(title.strip())[0] or None if title is not None else None,
    )
    return write(plan, warnings=[*warnings, *making.warnings])


def adopt_all(project: Project, source: Path, settings: Settings | None = None) -> AdoptedAll:
    """Make one case a failure signature of a sweep; the other trials of a signature become its occurrences.

    Trials that look like a case that is there, and a signature whose trial no case can hold, are passed over and
    said.
    All cases are written or none, also where it is interrupted.

    Raises:
        ImportRefused: nothing failed, or nothing can be read.
        UsageRefused: every signature is passed over, or nobody owns the cases.
        WriteError: the file system refuses.
    """
    settings = settings or Settings()
    making = Making(project, settings)
    plans: list[Plan] = []
    over: list[PassedOver] = []
    with collect(source, importer=settings.importer, progress=settings.progress) as found:
        sweep = read_sweep(found, settings.progress, known=making.known)
        groups = by_signature(sweep.failures)
        lost = [each for each in sweep.failures if not each.has_record]
        if not groups and lost:
            raise refused(
                "no-record",
                source,
                "its only failed trial left no record but that it was to be made"
                if len(lost) == 1
                else f"each of its {len(lost)} failed trials left no record but that it was to be made",
                "Make a case of one of them with --trial KEY; `regcase new --failed` lists them.",
            )
        if not groups:
            raise nothing_failed(found, found.entries)
        for name, group in groups.items():
            over.extend(_like_known(name, group))
            unknown = [each for each in group if each.likely is None]
            if not unknown:
                continue
            chosen = representative(unknown)
            try:
                clean = redacted(found.read(chosen.entry), settings.keep)
                plans.append(making.plan(clean, counted(clean.trial, chosen.entry, group, sweep)))
            except ImportRefused as refusal:
                over.append(PassedOver(name, _keys(unknown), refusal.text))
            except UsageRefused as refusal:
                if refusal.slug not in _OF_ONE_SIGNATURE:
                    raise
                over.append(PassedOver(name, _keys(unknown), refusal.text))
    if not plans:
        told = "\n".join(each.why for each in over)
        raise UsageRefused(f"Couldn't make a case of any failure in {source}.\n{told}", slug="all-passed-over")
    warnings = [*making.warnings, *_about_unreadable(sweep.unreadable)]
    if why := why_no_count(sweep):
        warnings.append(why)
    if lost:
        warnings.append(how_many(len(lost), "trial") + " left no record: in no case and no baseline")
    return AdoptedAll(write_all(plans), tuple(over), tuple(warnings))


def failed_trials(source: Path, settings: Settings | None = None) -> Listed:
    """Return the failed trials of a sweep. Writes nothing.

    Raises:
        ImportRefused: nothing recognised, or nothing readable.
    """
    settings = settings or Settings()
    with collect(source, importer=settings.importer, progress=settings.progress) as found:
        sweep = read_sweep(found, settings.progress)
        return Listed(sweep.failures, sweep.unreadable, len(found.entries))


def _sweep_of_task(found: Collection, task_id: str | None, settings: Settings) -> Sweep:
    """Read the failed trials of one task; the others are not looked at."""
    entries = tuple(each for each in found.entries if task_id is not None and each.ref.task_id == task_id)
    return read_sweep(found, settings.progress, entries=entries if len(entries) > 1 else ())


def _like_known(name: str, group: Sequence[Failure]) -> Iterator[PassedOver]:
    by_case: dict[str, list[Failure]] = {}
    for each in group:
        if each.likely is not None:
            by_case.setdefault(said_of(each.likely), []).append(each)
    for says, alike in by_case.items():
        yield PassedOver(name, _keys(alike), says)


def _keys(failures: Sequence[Failure]) -> tuple[str, ...]:
    return tuple(each.entry.key for each in failures)


def _about_unreadable(unreadable: Sequence[Unreadable]) -> Iterator[str]:
    if unreadable:
        first = unreadable[0].refusal.text.splitlines()[0]
        more = (
            f" (and {len(unreadable) - 1} more; `regcase new --failed` lists them)" if len(unreadable) > 1 else ""
        )
        yield f"a log could not be read, so its trials are not counted: {first}{more}"
