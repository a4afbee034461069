"""Tells whether a file that is to be cited was made by regcase.

What a simulation or an attempt of ours produced is never evidence of what happened in a trial. It is told by where
it lies, by marks in it, and by comparing it with what attempts have kept here. That finds slips and copies; a
forgery is for the reviewer. Never prints.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pytest_regcase.case_files import CASE_FILE, LoadedCase, built_in_folder, find_case_files, load_case
from pytest_regcase.config import Project
from pytest_regcase.errors import RegcaseError
from pytest_regcase.evidence.log_lines import LogUnreadable, read_head, read_whole
from pytest_regcase.evidence.own_marks import own_form, own_line, own_mark
from pytest_regcase.records.canonical import digest
from pytest_regcase.session.batches.run_folder import RUN_FILE
from pytest_regcase.session.new_cases.attach import FOLDER as ATTACHED

KEPT: Final = ".regcase"
_TRACES: Final = ("wire.jsonl", "trial.jsonl")
"""Files that lie beside what an attempt or a run of ours left."""
_FILES_LIMIT: Final = 20_000
_BYTES_LIMIT: Final = 512 * 1024 * 1024
_TELLING: Final = 20
"""Bytes of a line from which on it is no chance that a kept file holds it too."""


class Cited(NamedTuple):
    """What is to be cited."""

    path: Path
    digest: str
    inflated: str | None
    """Digest of the text that a packed file holds; None where it is not packed."""
    head: str
    lines: Sequence[bytes]
    before: Sequence[bytes]
    """The lines directly above: the kernel names the control group there."""

    @property
    def digests(self) -> frozenset[str]:
        """All by which a copy of it is known: who packs a file changes nothing of what it says."""
        return frozenset({self.digest, self.inflated or self.digest})


class Looked(NamedTuple):
    """What the search found."""

    why_own: str | None
    """Why it is ours; None: nothing shows that it is."""
    all_kept: bool = True
    """Whether everything that attempts have kept here was looked through."""


def attached_name(loaded: LoadedCase, path: Path) -> str | None:
    """Return the name in the case's folder of a log's part that is attached to the case; None for others."""
    place, folder = path.resolve(), loaded.folder.resolve()
    if not place.is_relative_to(folder / ATTACHED):
        return None
    name = place.relative_to(folder).as_posix()
    return name if name in loaded.case.observation.recorded else None


def look_for_own(project: Project, loaded: LoadedCase, cited: Cited) -> Looked:
    """Say whether what is to be cited was made by us."""
    attached = attached_name(loaded, cited.path) is not None
    why = None if attached else _by_place(project, cited.path) or _by_case(project, loaded, cited.digests)
    why = why or _by_marks(cited) or _by_words(loaded, cited.head)
    if why is not None:
        return Looked(why)
    return _by_kept(project.root / KEPT, cited)


def _by_place(project: Project, path: Path) -> str | None:
    place = path.resolve()
    if KEPT in place.parts:
        return f"it lies in {KEPT}, where attempts and their suppliers write"
    if place.name in _TRACES:
        return f"a {place.name} is what our own runs write"
    if any(place.is_relative_to(each.resolve()) for each in (built_in_folder(), *project.fixture_folders)):
        return "it lies in a folder of simulations"
    for folder in place.parents:
        if (folder / CASE_FILE).is_file():
            return "it lies in the folder of a case, whose files tell what is known already"
        if any((folder / each).is_file() for each in _TRACES):
            return f"it lies in {folder.name or folder}, which a run or an attempt of ours has written"
        if (folder / RUN_FILE).is_file() and own_form(_head_of(folder / RUN_FILE)):
            return f"it lies in {folder.name or folder}, which regcase run has written"
    return None


def _by_case(project: Project, loaded: LoadedCase, digests: frozenset[str]) -> str | None:
    if not digests.isdisjoint(loaded.case.observation.source_digests.values()):
        return "it is the trial's own log, from which the case was made: the cause is not in it"
    for path in find_case_files(project.case_folders):
        try:
            other = load_case(path)
        except RegcaseError:
            continue  # a broken case is no reason to refuse a log
        for name, recorded in other.case.observation.recorded.items():
            if recorded in digests and not name.startswith(f"{ATTACHED}/"):
                return f"it is a copy of {name} of the case {other.id}"
    return None


def _by_marks(cited: Cited) -> str | None:
    form = own_form(cited.head)
    if form is not None:
        return f"it is {form} that regcase has written"
    lines = [each.decode("utf-8", "replace") for each in (*cited.lines, *cited.before)]
    # Pasted behind a real log, a line of ours is no head; what stands above the cited lines is not cited.
    pasted = next(filter(None, map(own_line, lines[: len(cited.lines)])), None)
    if pasted is not None:
        return f"a cited line is one of {pasted} that regcase has written"
    mark = own_mark(lines)
    return (
        f'"{mark}" in it, or directly above it, is a mark of our own supplier or of an attempt' if mark else None
    )


def _by_words(loaded: LoadedCase, head: str) -> str | None:
    """No server knows the id and the title of a case: a text with both retells it, as `regcase show` does."""
    words = " ".join(head.split())
    return "it retells the case" if " ".join(f"{loaded.id}: {loaded.case.title}".split()) in words else None


def _by_kept(folder: Path, cited: Cited) -> Looked:
    """Look for a copy: the same file, or all cited lines, in one file that an attempt has kept."""
    lines = [each.strip() for each in cited.lines if each.strip()]
    telling = any(len(each) >= _TELLING for each in lines)
    read = 0
    for number, path in enumerate(_files_below(folder), start=1):
        if number > _FILES_LIMIT or read > _BYTES_LIMIT:
            return Looked(None, all_kept=False)
        try:
            content = read_whole(path, _BYTES_LIMIT)
        except OSError:
            continue  # it was removed meanwhile
        if content is None:
            return Looked(None, all_kept=False)
        read += len(content)
        if digest(content) in cited.digests or (telling and all(each in content for each in lines)):
            return Looked(f"an attempt of ours has kept the same in {path.relative_to(folder.parent)}")
    return Looked(None)


def _files_below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place) / name
            if path.is_file() and not path.is_symlink():
                yield path


def _head_of(path: Path) -> str:
    try:
        return read_head(path).decode("utf-8", "replace")
    except LogUnreadable:
        return ""
