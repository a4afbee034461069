"""From a path to a written case: read, redact, draft, write. The order of these stages, and nothing else.

Must not print and must not import pytest.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_regcase.case_builder import WORK_TREE, draft_case, propose_id
from pytest_regcase.case_files import CASE_FILE, write_new_case, writing
from pytest_regcase.config import Project
from pytest_regcase.errors import UsageRefused
from pytest_regcase.importers.source import read_one
from pytest_regcase.records.case import RegressionCase
from pytest_regcase.records.trial import Trial
from pytest_regcase.redaction import PLACEHOLDER_PREFIX, redact, redact_trial, secrets_in
from pytest_regcase.session.owners import Owner, owner_of

WORK_TREE_LIMIT_BYTES: Final = 16 * 1024 * 1024
WORK_TREE_LIMIT_FILES: Final = 5_000
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


def adopt(
    project: Project,
    source: Path,
    *,
    cases: Path | None = None,
    case_id: str | None = None,
    work_tree: Path | None = None,
    outcome: str | None = None,
    owner: str | None = None,
    sample: str | None = None,
    epoch: int | None = None,
    title: str | None = None,
    importer: str | None = None,
) -> Adopted:
    """Make a case of the failed trial in `source`. Nothing is written unless everything could be.

    `outcome` is a person's word and can only be "failed".

    Raises:
        ImportRefused: there is no failed trial to take; the slug and the words say why.
        UsageRefused: the id is taken or no id, the work tree cannot be taken, or nobody owns the case.
        WriteError: the file system refuses.
    """
    by_person = outcome == "failed"
    trial = read_one(source, importer=importer, sample=sample, epoch=epoch, failed_only=not by_person)
    warnings: list[str] = []
    if by_person and trial.outcome != "failed":
        if trial.outcome == "passed":
            warnings.append("the log says that the trial passed; failed is a person's word against it")
        trial = trial.model_copy(update={"outcome": "failed", "outcome_from": "person"})
    trial = redact_trial(_what_is_written(trial))
    tree = _read_work_tree(work_tree) if work_tree is not None else None
    name = case_id if case_id is not None else propose_id(trial)
    if _ID.fullmatch(name) is None:
        raise UsageRefused(
            f"Couldn't use the id {name!r}: it is not made of lower-case letters, digits and hyphens.\n"
            "Say another one with --id."
        )
    folder = (cases if cases is not None else project.case_folders[0]) / name
    with writing(folder):
        taken = folder.exists() or folder.is_symlink()
    if taken:
        raise UsageRefused(_taken(folder, given=case_id is not None), slug="id-taken")
    found = owner_of(folder / CASE_FILE, project.root, owner)
    draft = draft_case(trial, owner=found.name, case_id=name, title=_clean(title), with_work_tree=tree is not None)
    files = dict(draft.files)
    if tree is not None:
        files.update({f"{WORK_TREE}/{name}": content for name, content in tree.files.items()})
        warnings.extend(tree.warnings)
    written = write_new_case(
        folder, draft.case, files, executable=[f"{WORK_TREE}/{name}" for name in tree.executable] if tree else []
    )
    return Adopted(
        folder=folder,
        case=draft.case,
        written=tuple(written),
        trial=trial,
        owner=found,
        missing=trial.missing,
        redactions=trial.redactions,
        warnings=(*warnings, *draft.warnings, *_about_replies(trial, has_work_tree=tree is not None)),
    )


def _what_is_written(trial: Trial) -> Trial:
    """Leave out what no case holds, so that the numbers of redactions are those of what is written."""
    error = trial.error
    if error is not None:
        error = error.model_copy(update={"traceback": None, "chain": ()})
    return trial.model_copy(
        update={"error": error, "submission": None, "partial_patch": None, "final_text": None, "can_show": ()}
    )


def _clean(title: str | None) -> str | None:
    return redact(title.strip())[0] or None if title is not None else None


def _taken(folder: Path, *, given: bool) -> str:
    number = 2
    while (folder.parent / f"{folder.name}-{number}").exists():
        number += 1
    same = "" if given else " It may be this very trial: look at its source_event."
    return (
        f"Couldn't write the case {folder.name}: {folder} exists, and a case is never overwritten.{same}\n"
        f"Say another id: --id {folder.name}-{number}"
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
            f"the transcript holds {calls} tool calls, and a run replays them: the agent's tools will execute"
            " them. Review recorded/transcript.jsonl as you would review code"
        )
    replayed = [
        text for line in trial.replies for text in (line.text, *(call.arguments for call in line.tool_calls))
    ]
    changed = sum(1 for text in replayed if text and PLACEHOLDER_PREFIX in text)
    if changed:
        yield (
            f"{changed} recorded replies or calls hold a placeholder ({PLACEHOLDER_PREFIX}...) where a secret or a"
            " home path was removed: replayed, they may do something else"
        )
    if trial.steps and not has_work_tree:
        yield (
            "no work tree: the agent starts in an empty folder, and whether it keeps or submits a partial patch"
            " cannot be seen; give the files it started from with --work-tree DIR"
        )
    if trial.task_text is None:
        yield "no task text: write recorded/task.txt and name it in [task] text_file before the first run"


@dataclass(frozen=True)
class _WorkTree:
    files: dict[str, bytes]
    executable: tuple[str, ...]
    warnings: tuple[str, ...]


def _read_work_tree(folder: Path) -> _WorkTree:
    """Return the plain files of `folder` by relative name, as they are.

    Raises:
        UsageRefused: no such folder, no plain file, too large, a part that cannot be read, or a file holds what
            looks like a secret.
    """
    if not folder.is_dir():
        raise UsageRefused(f"Couldn't take the work tree {folder}: there is no such folder.\nCheck --work-tree.")
    try:
        return _taken_work_tree(folder)
    except OSError as error:
        raise UsageRefused(
            f"Couldn't take the work tree {folder}: {(error.strerror or str(error)).lower()}: {error.filename}.\n"
            "A case holds all of it, or none: check the permissions."
        ) from error


def _taken_work_tree(folder: Path) -> _WorkTree:
    files: dict[str, bytes] = {}
    executable: list[str] = []
    left_out = size = 0
    for path in _below(folder):
        if path.is_symlink() or not path.is_file():
            left_out += 1
            continue
        size += path.stat().st_size
        if size > WORK_TREE_LIMIT_BYTES or len(files) >= WORK_TREE_LIMIT_FILES:
            raise UsageRefused(
                f"Couldn't take the work tree {folder}: it is larger than {WORK_TREE_LIMIT_BYTES // 1024**2} MiB"
                f" or {WORK_TREE_LIMIT_FILES} files.\nGive a folder with the files that the task needs."
            )
        name = path.relative_to(folder).as_posix()
        with path.open("rb") as opened:
            files[name] = opened.read(WORK_TREE_LIMIT_BYTES + 1)
        if os.access(path, os.X_OK):
            executable.append(name)
        _refuse_secrets(folder, name, files[name])
    if not files:
        raise UsageRefused(f"Couldn't take the work tree {folder}: it holds no plain file.\nCheck --work-tree.")
    warnings = []
    if left_out:
        warnings.append(f"{left_out} links and special files of the work tree are left out")
    return _WorkTree(files, tuple(executable), tuple(warnings))


def _below(folder: Path) -> Iterator[Path]:
    def stop(error: OSError) -> None:
        raise error  # os.walk would leave the folder out and say nothing

    for place, folders, names in os.walk(folder, onerror=stop):
        folders[:] = sorted(each for each in folders if each != ".git")
        linked = [each for each in folders if (Path(place) / each).is_symlink()]
        yield from (Path(place) / each for each in sorted([*names, *linked]) if each != ".git")


def _refuse_secrets(folder: Path, name: str, content: bytes) -> None:
    """Work-tree files are copied as they are, so a secret in them cannot be replaced on the way."""
    kinds = secrets_in(name)
    if kinds:
        name = f"the name {redact(name)[0]}"
    elif b"\0" not in content[:8192]:
        kinds = secrets_in(content.decode("utf-8", "replace"))
    if kinds:
        shown = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        raise UsageRefused(
            f"Couldn't take the work tree {folder}: {name} holds what looks like a secret ({shown}), and files of"
            " a work tree are copied unchanged.\nTake it out, or put a made-up value in its place, and try again.",
            slug="secret-in-work-tree",
        )
