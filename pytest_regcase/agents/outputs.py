"""What the agent wrote: sizes at the fault, text written after it, and the values at declared places.

Knows files of one attempt only. Does not read formats (importers do) and judges nothing.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_regcase.agents.launch import Places
from pytest_regcase.agents.placeholders import fill
from pytest_regcase.agents.python_runner import ANSWER_FILE
from pytest_regcase.config import AgentConfig
from pytest_regcase.records.observed import Declared

MAX_FILES = 2_000
MAX_DECLARED_BYTES = 16 * 1024 * 1024
_PROBE_BYTES = 512 * 1024
_BINARY_PROBE_BYTES = 8192


@dataclass(frozen=True)
class Mark:
    """One file as it was: how long, and a digest of its beginning and end up to there."""

    size_bytes: int
    digest: str


@dataclass(frozen=True)
class OutputMarks:
    """Every output file as it was at one moment."""

    marks: Mapping[str, Mark]

    @property
    def sizes_bytes(self) -> dict[str, int]:
        """Size by name, as `FaultNotes` keeps it."""
        return {name: mark.size_bytes for name, mark in self.marks.items()}


def mark(places: Places, *, log: Path | None = None) -> OutputMarks:
    """Mark ``stdout``, ``stderr``, the declared ``log`` and each file of the output folder (as ``out/NAME``).

    At most 2,000 files; links are not followed.
    """
    marks: dict[str, Mark] = {}
    for name, path in _files(places, log):
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                marks[name] = Mark(size, _digest(file.fileno(), size))
        except OSError:
            continue  # it vanished while we looked
    return OutputMarks(marks)


def sizes(places: Places) -> dict[str, int]:
    """Return the size in bytes of each output file by name. `mark` also notices files that are written anew."""
    return mark(places).sizes_bytes


def written_after(
    places: Places,
    before: OutputMarks | Mapping[str, int],
    limit_bytes: int = 256 * 1024,
    *,
    log: Path | None = None,
) -> dict[str, str]:
    """Return the text that each file gained since `before`, by name; files that gained none are left out.

    Counted in bytes; of a long text the last `limit_bytes`. A file that shrank or was written anew is left out,
    since nobody can tell which part of it is new (an importer reads it whole); so is one that is no text.
    """
    gained: dict[str, str] = {}
    for name, path in _files(places, log):
        try:
            with path.open("rb") as file:
                text = _gained(file.fileno(), name, before, limit_bytes)
        except OSError:
            continue
        if text:
            gained[name] = text
    return gained


def declared(config: AgentConfig, places: Places, placeholders: Mapping[str, str]) -> Declared:
    """Return what the agent's declared places hold.

    ``path`` means the file's text, ``path#/a/0`` the value in its JSON (RFC 6901). A relative path is relative to
    the agent's working folder. A place that is declared but not there, or not readable as what it is declared to
    be, is declared and None. Text that a function returned (``answer.txt``) is the answer of a ``python`` agent
    that declares no other.
    """

    def value(key: str, place: str | None) -> str | None:
        return None if place is None else read_place(place, places, placeholders, key)

    answer, answer_declared = value("answer", config.answer), config.answer is not None
    if config.python is not None and not answer_declared:
        answer = _text(places.out_dir / ANSWER_FILE)
        answer_declared = answer is not None
    return Declared(
        submission=value("submission", config.submission),
        submission_declared=config.submission is not None,
        answer=answer,
        answer_declared=answer_declared,
        status=value("status", config.status),
        status_declared=config.status is not None,
    )


def read_place(place: str, places: Places, placeholders: Mapping[str, str], key: str) -> str | None:
    """Return the text at one declared place, None where there is none.

    Raises UsageRefused for a placeholder that cannot be filled in.
    """
    path, pointer = _path_and_pointer(fill(place, placeholders, where=key))
    text = _text(places.work_dir / path)
    if text is None or pointer is None:
        return text
    try:
        return _at(json.loads(text), pointer)
    except (ValueError, RecursionError, LookupError):
        return None


def _path_and_pointer(place: str) -> tuple[str, str | None]:
    path, mark_found, pointer = place.partition("#/")
    return (path, "/" + pointer) if mark_found else (place, None)


def _at(document: Any, pointer: str) -> str | None:
    """Follow a JSON pointer (RFC 6901); LookupError or ValueError where it leads nowhere."""
    found = document
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            if not part.isdigit():
                raise LookupError(part)
            found = found[int(part)]
        elif isinstance(found, dict):
            found = found[part]
        else:
            raise LookupError(part)
    if found is None or isinstance(found, str):
        return found
    return json.dumps(found, ensure_ascii=False, sort_keys=True)


def _text(path: Path) -> str | None:
    try:
        # A FIFO would make us wait for a writer.
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        with path.open("rb") as file:
            return file.read(MAX_DECLARED_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return None


def _files(places: Places, log: Path | None) -> Iterator[tuple[str, Path]]:
    named = {"stdout": places.stdout, "stderr": places.stderr}
    if log is not None and not log.is_relative_to(places.out_dir):
        named["log"] = log
    found = 0
    for name, path in [*named.items(), *_below(places.out_dir)]:
        try:
            regular = stat.S_ISREG(path.lstat().st_mode)
        except OSError:
            continue
        if regular:
            yield name, path
            found += 1
            if found >= MAX_FILES:
                return


def _below(folder: Path) -> Iterator[tuple[str, Path]]:
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for each in sorted(files):
            path = Path(parent, each)
            yield f"out/{path.relative_to(folder).as_posix()}", path


def _digest(file: int, size: int) -> str:
    """Digest the first and the last part of the first `size` bytes: enough to see that a file was written anew."""
    digest = hashlib.sha256(os.pread(file, min(size, _PROBE_BYTES), 0))
    if size > _PROBE_BYTES:
        digest.update(os.pread(file, _PROBE_BYTES, max(_PROBE_BYTES, size - _PROBE_BYTES)))
    return digest.hexdigest()


def _gained(file: int, name: str, before: OutputMarks | Mapping[str, int], limit_bytes: int) -> str:
    size = os.fstat(file).st_size
    if isinstance(before, OutputMarks):
        known = before.marks.get(name, Mark(0, ""))
        start = known.size_bytes
        if start and (size < start or _digest(file, start) != known.digest):
            return ""
    else:
        start = before.get(name, 0)
    if size <= start or b"\0" in os.pread(file, _BINARY_PROBE_BYTES, start):
        return ""
    first = max(start, size - limit_bytes)
    return os.pread(file, size - first, first).decode("utf-8", errors="replace")
