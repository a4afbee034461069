"""The files beside a case file: transcripts, scripts, texts and work trees, read within bounds.

Knows one case's files; knows neither its TOML nor what a supplier does with the lines.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_regcase.errors import FileError
from pytest_regcase.records.canonical import digest, digest_of
from pytest_regcase.records.trial import TranscriptLine
from pytest_regcase.toml_lines import at_line, complaint, read_bounded

RECORDED_LIMIT_BYTES = 32 * 1024 * 1024
LINE_LIMIT_BYTES = 4 * 1024 * 1024
TEXT_LIMIT_BYTES = 4 * 1024 * 1024
WORK_TREE_LIMIT_BYTES = 256 * 1024 * 1024
WORK_TREE_LIMIT_FILES = 20_000


def read_transcript(path: Path, *, first_step: int = 1) -> tuple[TranscriptLine, ...]:
    """Return the lines of a ``transcript.jsonl``, or of a script that a person wrote.

    A line without `step` gets it from its place: a reply opens the next step (`first_step` for the first),
    whatever else follows belongs to the last reply. Empty lines are passed over.

    Raises:
        FileError: one line a problem, with file and line.
    """
    lines: list[TranscriptLine] = []
    problems: list[str] = []
    before = 0
    replies = first_step - 1
    for number, raw in enumerate(read_bounded(path, RECORDED_LIMIT_BYTES).split(b"\n"), 1):
        if not raw.strip():
            continue
        if len(raw) > LINE_LIMIT_BYTES:
            problems.append(at_line(path, number, f"has {len(raw):,} bytes; allowed: {LINE_LIMIT_BYTES:,} a line"))
            continue
        try:
            line = _line(raw, replies, first_step)
        except ValueError as error:
            problems.append(at_line(path, number, str(error)))
            continue
        if line.is_reply:
            if line.step <= before:
                says = f"the reply of step {line.step} comes after that of step {before}"
                problems.append(at_line(path, number, f"{says}; allowed: each step once, in order"))
            before = replies = line.step
        lines.append(line)
    if problems:
        raise FileError(problems)
    return tuple(lines)


def read_text(path: Path) -> str:
    """Return a text file.

    Raises:
        FileError: it is not there, too large or not UTF-8.
    """
    try:
        return read_bounded(path, TEXT_LIMIT_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError([at_line(path, None, f"is not UTF-8 (byte {error.start})")]) from error


def digest_of_recorded(path: Path) -> str:
    """Return the digest of a file's bytes, or of a folder's tree.

    Raises:
        FileError: it is not there, is too large, or the tree holds more than plain files.
    """
    return tree_digest(path) if path.is_dir() else digest(read_bounded(path, RECORDED_LIMIT_BYTES))


def tree_digest(folder: Path, replaced: Mapping[Path, bytes] | None = None) -> str:
    """Return the digest of the plain files below `folder`: relative names, contents, and who may be executed.

    Empty folders, times and owners do not count (git keeps none of them). `replaced` holds what some of the
    files are about to become.

    Raises:
        FileError: there is no such folder; it holds a symbolic link, a special file or a repository; or it is too
            large.
    """
    if not folder.is_dir() or folder.is_symlink():
        raise FileError([at_line(folder, None, "there is no such folder")])
    seen: dict[str, Any] = {}
    total = 0
    for path in _plain_files(folder):
        size = path.stat().st_size
        total += size
        if total > WORK_TREE_LIMIT_BYTES or len(seen) >= WORK_TREE_LIMIT_FILES:
            allowed = f"{WORK_TREE_LIMIT_FILES:,} files and {WORK_TREE_LIMIT_BYTES:,} bytes"
            raise FileError([at_line(folder, None, f"is too large; allowed: {allowed}")])
        executable = bool(path.stat().st_mode & 0o100)
        content = replaced.get(path) if replaced is not None else None
        content = content if content is not None else read_bounded(path, size)
        seen[path.relative_to(folder).as_posix()] = [digest(content), executable]
    return digest_of(seen)


def _plain_files(folder: Path) -> Iterator[Path]:
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        path = Path(entry.path)
        if entry.is_symlink():
            raise FileError([at_line(path, None, "is a symbolic link; a work tree holds plain files")])
        if entry.name == ".git":
            raise FileError(
                [at_line(path, None, "is a repository; a work tree holds plain files, leave .git out")]
            )
        if entry.is_dir():
            yield from _plain_files(path)
        elif entry.is_file():
            yield path
        else:
            raise FileError([at_line(path, None, "is a special file; a work tree holds plain files")])


def _line(raw: bytes, replies: int, first_step: int) -> TranscriptLine:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not a JSON object: {error}") from error
    if not isinstance(found, dict):
        raise ValueError("is not a JSON object")
    if "step" not in found:
        opens = found.get("role") == "assistant"
        found["step"] = replies + 1 if opens else (0 if replies < first_step else replies)
        raw = json.dumps(found).encode()
    try:
        # From JSON: only there do strict models take a list for a tuple and a text for a date-time.
        line = TranscriptLine.model_validate_json(raw, by_alias=True, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "json_invalid":  # what Python's own reader lets pass: half of a surrogate pair
            raise ValueError(f"is not a JSON object: {first['ctx']['error']}") from error
        raise ValueError(complaint(TranscriptLine, error)) from error
    if line.at is not None and line.at.tzinfo is None:
        raise ValueError(f"at = {line.at.isoformat()} has no offset; write it with Z or +hh:mm")
    return line
