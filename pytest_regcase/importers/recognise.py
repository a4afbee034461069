"""Tells what a path holds: each file's format by content, and folders that one importer takes as a whole.

Knows the importers by their entry points only. Must import no importer module.
"""

import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from pytest_regcase import registry
from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.protocol import Importer, Peek
from pytest_regcase.importers.reading import read_head, refused

DEPTH_LIMIT: Final = 16
FILES_LIMIT: Final = 20_000
_MEMBERS_DEPTH: Final = 3
"""How deep below a folder its members are shown to importers."""
_MEMBERS_LIMIT: Final = 2_000
_ZIP_MARKS: Final = (b"PK\x03\x04", b"PK\x05\x06")

Progress = Callable[[int, int | None, str], None]
"""Told how many are done, of how many (None: not known yet), and what is looked at."""


@dataclass(frozen=True)
class Source:
    """A file, or a folder read as a whole, and the importer of its format."""

    path: Path
    reader: Importer


@dataclass(frozen=True)
class Unreadable:
    """What could not be read, and the refusal that says why."""

    path: Path
    refusal: ImportRefused


@dataclass
class Recognised:
    """What lies below a path, in the order of its names."""

    sources: list[Source] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    others: int = 0
    """Files in no format that we read."""


def readers(importer: str | None = None) -> list[Importer]:
    """Return the named importer, or all of them."""
    known = [importer] if importer is not None else list(registry.names("importers"))
    return [registry.load("importers", name)() for name in known]


def kind_of(path: Path) -> str:
    """Return ``"folder"``, ``"zip"`` or ``"file"``.

    Raises:
        ImportRefused: no such path, or it cannot be looked at.
    """
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise refused("unreadable", path, why.lower(), "Check the path.") from error
    if is_folder:
        return "folder"
    if not is_file and (path.exists() or path.is_symlink()):
        why = "it is neither a file nor a folder (a pipe, a socket, a device, or a link to nothing)"
        raise refused("no-such-file", path, why, "Give a log, a folder of logs, or a zip of them.")
    if not is_file:
        raise refused("no-such-file", path, "there is no such file or folder", "Check the path.")
    return "zip" if read_head(path).startswith(_ZIP_MARKS) else "file"


def recognise_file(path: Path, known: Sequence[Importer]) -> Source | None:
    """Return the file with the importer that takes it; None where none does.

    Raises:
        ImportRefused: it cannot be read, or two formats match.
    """
    return _taken(_peek_file(path), known)


def recognise_folder(
    folder: Path, known: Sequence[Importer], *, progress: Progress | None = None, strict: bool = False
) -> Recognised:
    """Return everything below `folder` that some importer takes, sorted by name.

    A folder that an importer takes as a whole is one source, and nothing in it is looked at again. Hidden folders
    and links are passed over. What cannot be read is listed and loses nothing else; with `strict` it is raised.

    Raises:
        ImportRefused: more than 20,000 files, or (with `strict`) a part that cannot be read.
    """
    found = Recognised()
    files = 0
    waiting = [(folder, 0)]
    while waiting:
        place, depth = waiting.pop()
        try:
            inner, names, members = _listing(place)
            as_a_whole = [each for each in known if each.handles(Peek(place, "folder", members=members))]
            if as_a_whole:
                found.sources.append(Source(place, _only(place, as_a_whole)))
                continue
        except ImportRefused as refusal:
            _unreadable(found, place, refusal, strict=strict)
            continue
        for file in names:
            files += 1
            if files > FILES_LIMIT:
                raise refused(
                    "too-many-files", folder, f"it holds more than {FILES_LIMIT} files", "Give a part of it."
                )
            if progress is not None:
                progress(files, None, file.name)
            try:
                peek = _peek_file(file)
                source = _taken(peek, known)
            except ImportRefused as refusal:
                _unreadable(found, file, refusal, strict=strict)
                continue
            if source is not None:
                found.sources.append(source)
            elif peek.kind == "zip" and not strict:  # an agent's output may hold any zip
                within = refused("zip-within", file, "it is a zip within what was given", "Give it by itself.")
                found.unreadable.append(Unreadable(file, within))
            else:
                found.others += 1
        if depth < DEPTH_LIMIT:
            waiting.extend((each, depth + 1) for each in reversed(inner))
    found.sources.sort(key=lambda each: each.path)
    found.unreadable.sort(key=lambda each: each.path)
    return found


def _taken(peek: Peek, known: Sequence[Importer]) -> Source | None:
    found = [reader for reader in known if reader.handles(peek)]  # one peek: its shape is worked out once
    return Source(peek.path, _only(peek.path, found)) if found else None


def not_recognised(path: Path, known: Sequence[Importer], why: str) -> ImportRefused:
    """Return the refusal of what no importer takes; it says what was looked for."""
    names = ", ".join(reader.name for reader in known) or "none"
    return refused("not-recognised", path, why, f"Looked for: {names}.")


@contextmanager
def only_refusals(path: Path) -> Iterator[None]:
    """Turn what a malformed source makes pydantic raise into a refusal; anything else is a bug and passes."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(each) for each in first["loc"])
        raise refused(
            "malformed", path, f"{place} cannot be used ({first['msg']})", "Check what wrote the file."
        ) from error


def _unreadable(found: Recognised, path: Path, refusal: ImportRefused, *, strict: bool) -> None:
    if strict:
        raise refusal
    found.unreadable.append(Unreadable(path, refusal))


def _only(path: Path, found: Sequence[Importer]) -> Importer:
    if len(found) > 1:
        names = ", ".join(each.name for each in found)
        raise refused("two-formats", path, f"two formats match: {names}", "Say which with --importer NAME.")
    return found[0]


def _listing(folder: Path) -> tuple[list[Path], list[Path], tuple[str, ...]]:
    """Return the folders and plain files right below `folder`, and the names of files up to three levels down."""
    inner, files = _entries(folder)
    members = [each.name for each in files]
    waiting = [(each, 2) for each in inner]
    for place, depth in waiting:  # grows while it is walked
        if len(members) >= _MEMBERS_LIMIT:
            break
        try:
            below, names = _entries(place)
        except ImportRefused:
            continue  # said when the walk gets there
        members.extend(each.relative_to(folder).as_posix() for each in names)
        if depth < _MEMBERS_DEPTH:
            waiting.extend((each, depth + 1) for each in below)
    return inner, files, tuple(members[:_MEMBERS_LIMIT])


def _entries(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return folders and plain files right below, sorted, without hidden folders and without links.

    Raises:
        ImportRefused: the folder cannot be listed: the trial, or a second one, may be in there.
    """
    folders: list[Path] = []
    files: list[Path] = []

    def stop(error: OSError) -> None:
        raise error

    try:
        place, inner, names = next(iter(os.walk(folder, onerror=stop)), (str(folder), [], []))
        folders = [Path(place) / each for each in sorted(inner) if not each.startswith(".")]
        folders = [each for each in folders if not each.is_symlink()]
        files = [Path(place) / each for each in sorted(names)]
        files = [each for each in files if not each.is_symlink() and each.is_file()]
    except OSError as error:
        name = Path(error.filename) if isinstance(error.filename, str) else folder
        raise refused(
            "unreadable", name, (error.strerror or str(error)).lower(), "Check the path and its permissions."
        ) from error
    return folders, files


def _peek_file(path: Path) -> Peek:
    head = read_head(path)
    if not head.startswith(_ZIP_MARKS):
        return Peek(path, "file", head)
    try:
        with zipfile.ZipFile(path) as archive:
            members = tuple(archive.namelist()[:_MEMBERS_LIMIT])
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        members = ()
    return Peek(path, "zip", head, members)
