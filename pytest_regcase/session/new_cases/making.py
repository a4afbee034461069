"""Plans and writes new cases: the id, the likeness to cases that are there, the owner, the draft, the files.

Knows one trial at a time; finds and reads none. Must not print and must not import pytest.
"""

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_regcase.case_builder import WORK_TREE, Counted, Draft, draft_case, propose_id
from pytest_regcase.case_files import CASE_FILE, write_new_case, writing
from pytest_regcase.config import Project
from pytest_regcase.errors import UsageRefused
from pytest_regcase.importers.reading import printable
from pytest_regcase.importers.recognise import Progress
from pytest_regcase.records.case import Kept, RegressionCase
from pytest_regcase.records.plurals import how_many
from pytest_regcase.records.trial import Trial
from pytest_regcase.recovery.symptom import signature
from pytest_regcase.redaction import PLACEHOLDER_PREFIX, Keep, Redactor, redact_trial
from pytest_regcase.session.new_cases.attach import attach
from pytest_regcase.session.new_cases.given_work_tree import WorkTree
from pytest_regcase.session.project.owners import Owner, owner_of
from pytest_regcase.session.sweeps.known_cases import HOLDS, KnownCase, Likely, known_cases, looks_like

_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")


@dataclass(frozen=True)
class Adopted:
    """A case that was written, and everything that its maker should be told."""

    folder: Path
    case: RegressionCase
    written: tuple[Path, ...]
    """The case file first."""
    trial: Trial
    """As redacted."""
    owner: Owner
    missing: tuple[str, ...]
    """What was looked for in the source and not found, or found broken."""
    redactions: dict[str, int]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Settings:
    """What holds for every case that is made."""

    cases: Path | None = None
    owner: str | None = None
    importer: str | None = None
    new: bool = False
    """Make a case also of what looks like one that is there."""
    full: bool = False
    """Never cut a recorded transcript."""
    keep: Keep = field(default_factory=Keep)
    """What looks like a secret and stays, because a person said so."""
    progress: Progress | None = None


def said_of(likely: Likely) -> str:
    """Return what a person is told of a failure that looks like a case."""
    name = likely.case.id
    if likely.why == HOLDS:
        return f"Looks like {name}: {HOLDS}.\nSee `regcase show {name}`; for one more case of it, say --new."
    return f"Looks like {name}: {likely.why}.\nSee `regcase show {name}`; if it is another failure, say --new."


@dataclass(frozen=True)
class Clean:
    """A trial as it is written, and what goes beside it."""

    trial: Trial
    attached: dict[str, bytes]
    kept: tuple[Kept, ...]
    says: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """A case that could be written."""

    folder: Path
    owner: Owner
    draft: Draft
    trial: Trial
    tree: WorkTree | None


class Making:
    """Plans cases that do not get into one another's way, nor into that of cases that are there."""

    def __init__(self, project: Project, settings: Settings) -> None:
        self._project = project
        self._settings = settings
        self._parent = settings.cases if settings.cases is not None else project.case_folders[0]
        self.known: tuple[KnownCase, ...] = ()
        """The cases that new ones are compared with."""
        self.warnings: tuple[str, ...] = ()
        if not settings.new:
            self.known, self.warnings = known_cases((*project.case_folders, self._parent))
        self._taken: set[str] = set()

    def plan(
        self,
        clean: Clean,
        counts: Counted,
        *,
        tree: WorkTree | None = None,
        case_id: str | None = None,
        title: str | None = None,
    ) -> Plan:
        """Return what would be written.

        Raises:
            UsageRefused: the id is none or taken, it looks like a case that is there, nobody owns it, or its
                replies are too large.
        """
        trial = clean.trial
        name = case_id if case_id is not None else propose_id(trial)
        if _ID.fullmatch(name) is None:
            raise UsageRefused(
                f"Couldn't use the id {name!r}: it is not made of lower-case letters, digits and hyphens.\n"
                "Say another one with --id."
            )
        folder = self._parent / name
        with writing(folder):
            taken = folder.exists() or folder.is_symlink()
        if taken or name in self._taken:
            raise UsageRefused(_taken(folder, given=case_id is not None), slug="id-taken")
        likely = looks_like(self.known, trial)
        if likely is not None:
            what = f"Couldn't make a case of {trial.task_id or 'this trial'} ({signature(trial)})."
            raise UsageRefused(printable(f"{what} {said_of(likely)}"), slug="looks-like")
        owner = owner_of(folder / CASE_FILE, self._project.root, self._settings.owner)
        draft = draft_case(
            trial,
            owner=owner.name,
            case_id=name,
            title=title,
            with_work_tree=tree is not None,
            full=self._settings.full,
            counted=counts,
            attached=clean.attached,
            kept=clean.kept,
        )
        self._taken.add(name)
        return Plan(folder, owner, draft, trial, tree)


def write(plan: Plan, *, warnings: Sequence[str] = ()) -> Adopted:
    """Write the case.

    Raises:
        WriteError: the file system refuses.
        FileError: a recorded file holds what no case may.
    """
    files, tree = dict(plan.draft.files), plan.tree
    if tree is not None:
        files.update({f"{WORK_TREE}/{name}": content for name, content in tree.files.items()})
    written = write_new_case(
        plan.folder,
        plan.draft.case,
        files,
        executable=[f"{WORK_TREE}/{name}" for name in tree.executable] if tree else [],
    )
    return Adopted(
        folder=plan.folder,
        case=plan.draft.case,
        written=tuple(written),
        trial=plan.trial,
        owner=plan.owner,
        missing=plan.trial.missing,
        redactions=plan.trial.redactions,
        warnings=(
            *warnings,
            *(tree.warnings if tree is not None else ()),
            *plan.draft.warnings,
            *_about_replies(plan.trial, has_work_tree=tree is not None),
        ),
    )


def write_all(plans: Sequence[Plan]) -> tuple[Adopted, ...]:
    """Write the cases, or none of them: what was written is removed where a later one cannot be, or on Ctrl-C.

    Raises:
        WriteError: the file system refuses.
        FileError: a recorded file holds what no case may.
    """
    written: list[Adopted] = []
    try:
        for plan in plans:
            written.append(write(plan))
    except BaseException:
        for each in written:
            shutil.rmtree(each.folder, ignore_errors=True)
        raise
    return tuple(written)


def redacted(trial: Trial, keep: Keep, attachments: Sequence[Path] = ()) -> Clean:
    """Return the trial and the parts of attached logs without secrets; one secret has one placeholder in all.

    Raises:
        UsageRefused: a log cannot be attached.
    """
    redactor = Redactor(keep=keep)
    clean = redact_trial(_what_is_written(trial), redactor)
    parts = attach(trial, attachments, redactor)
    counts = Counter(clean.redactions) + Counter(parts.redactions)
    says = (*parts.says, *(f"--keep {word!r} kept nothing" for word in keep.unused(redactor.kept)))
    clean = clean.model_copy(update={"redactions": dict(sorted(counts.items()))})
    return Clean(clean, parts.files, keep.records(redactor.kept), says)


def _what_is_written(trial: Trial) -> Trial:
    """Leave out what no case holds, so that the numbers of redactions are those of what is written."""
    error = trial.error
    if error is not None:
        error = error.model_copy(update={"traceback": None, "chain": ()})
    return trial.model_copy(
        update={"error": error, "submission": None, "partial_patch": None, "final_text": None, "can_show": ()}
    )


def _taken(folder: Path, *, given: bool) -> str:
    number = 2
    while (folder.parent / f"{folder.name}-{number}").exists():
        number += 1
    same = "" if given else " It may be this very trial: look at its source_event."
    return (
        f"Couldn't write the case {folder.name}: {folder} exists, and a case is never overwritten.{same}\n"
        f"Say another id: --id {folder.name}-{number}; or, to make it anew, remove that folder first."
    )


def _about_replies(trial: Trial, *, has_work_tree: bool) -> Iterator[str]:
    calls = sum(len(line.tool_calls) for line in trial.replies)
    if not trial.steps:
        yield (
            "no transcript: simulations inject their fault at the first request; for a later one write"
            ' recorded/script.jsonl and say [replies] source = "script"'
        )
    elif calls:
        yield (
            f"the transcript holds {how_many(calls, 'tool call')}, and a run replays each: the agent's tools will"
            " execute it. Review recorded/transcript.jsonl as you would review code"
        )
    elif trial.replies:
        yield (
            "no recorded reply calls a tool: an agent that takes such a reply for its last word ends before the"
            " failing step, and then nothing is shown"
        )
    replayed = [
        text for line in trial.replies for text in (line.text, *(call.arguments for call in line.tool_calls))
    ]
    changed = sum(1 for text in replayed if text and PLACEHOLDER_PREFIX in text)
    if changed:
        yield (
            how_many(changed, "recorded reply or call holds", "recorded replies or calls hold")
            + f" a placeholder ({PLACEHOLDER_PREFIX}...) where a secret or a home path was removed: replayed, that"
            " may do something else"
        )
    if trial.steps and not has_work_tree:
        yield (
            "no work tree: the agent starts in an empty folder, and whether it keeps or submits a partial patch"
            " cannot be seen; to give the files that it started from, remove the case's folder and make it anew"
            " with --work-tree DIR"
        )
    if trial.task_text is None:
        yield "no task text: write recorded/task.txt and name it in [task] text_file before the first run"
