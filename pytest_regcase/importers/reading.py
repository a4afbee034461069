"""Bounded reading of files that others wrote, and careful access to what is in them.

Knows bytes, JSON and the limits; knows no format. Must import no importer. Raises `ImportRefused` only.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pytest_regcase.errors import ImportRefused
from pytest_regcase.records.moments import moment as moment

MEBIBYTE: Final = 1024 * 1024
DOCUMENT_LIMIT_BYTES: Final = 256 * MEBIBYTE
"""A single JSON document has to be in memory as a whole; JSON lines and zip members do not."""
LINE_LIMIT_BYTES: Final = 32 * MEBIBYTE
TOO_LONG: Final = f"it is longer than {LINE_LIMIT_BYTES // MEBIBYTE} MiB"
"""Why a line is lost that `read_lines` gives as None."""
LINES_LIMIT_BYTES: Final = 1024 * MEBIBYTE
DEPTH_LIMIT: Final = 200
HEAD_BYTES: Final = 256 * 1024


def refused(slug: str, path: Path, why: str, what_to_do: str) -> ImportRefused:
    """Return the refusal of `path` in the house form, with nothing that would drive a terminal."""
    return ImportRefused(
        slug, f"Couldn't import {on_one_line(str(path))}: {printable(why)}.\n{printable(what_to_do)}"
    )


def on_one_line(name: str) -> str:
    """Return a name as it can be shown and copied: `printable`, and without line ends."""
    return printable(name).replace("\n", "?")


def printable(words: str) -> str:
    """Return `words` with what a terminal would act on replaced; line ends stay."""
    return "".join(each if each.isprintable() or each == "\n" else "?" for each in words)


def read_document(path: Path, *, limit_bytes: int = DOCUMENT_LIMIT_BYTES) -> bytes:
    """Return the bytes of a file that is read as a whole.

    Raises:
        ImportRefused: it is too large (the size is looked at first), or cannot be read.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            content = file.read(limit_bytes + 1) if size <= limit_bytes else b""
    except OSError as error:
        raise refused("unreadable", path, _os_words(error), "Check the path and its permissions.") from error
    if size > limit_bytes or len(content) > limit_bytes:  # it may grow, or be a pipe, which has no size
        raise refused(
            "too-large",
            path,
            f"it is one document of {max(size, len(content)) / MEBIBYTE:,.0f} MiB, and one of at most"
            f" {limit_bytes // MEBIBYTE} MiB is read",
            "Have the harness write one file a trial, JSON lines or a zip, or cut the trial out of it.",
        )
    return content


def read_parsed(path: Path) -> "Parsed":
    """Return the one JSON document that a file holds.

    Raises:
        ImportRefused: it is too large, cut off, no JSON, or cannot be read.
    """
    try:
        return parse_json(read_document(path))
    except NotJson as error:
        raise refused("corrupt", path, str(error), "The file may be cut off: copy it again.") from error


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file, enough to tell its format.

    Raises:
        ImportRefused: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        raise refused("unreadable", path, _os_words(error), "Check the path and its permissions.") from error


def read_lines(path: Path) -> Iterator[tuple[int, bytes | None, bool]]:
    """Yield (line number from 1, line without its end, whether its end was there), never more than one in memory.

    A line of more than 32 MiB is None: it is lost (say `TOO_LONG` of it), the lines around it are not.

    Raises:
        ImportRefused: the file cannot be read, or is larger than 1 GiB.
    """
    read = 0
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LINE_LIMIT_BYTES):
                number += 1
                whole = line.endswith(b"\n")
                if not whole and len(line) == LINE_LIMIT_BYTES:
                    read += len(line)
                    while rest := file.readline(LINE_LIMIT_BYTES):
                        read += len(rest)
                        if rest.endswith(b"\n") or read > LINES_LIMIT_BYTES:
                            break
                    yield number, None, True
                    continue
                read += len(line)
                if read > LINES_LIMIT_BYTES:
                    raise refused(
                        "too-large",
                        path,
                        f"it is larger than {LINES_LIMIT_BYTES // MEBIBYTE} MiB",
                        "Cut it first.",
                    )
                yield number, line.rstrip(b"\r\n"), whole
    except OSError as error:
        raise refused("unreadable", path, _os_words(error), "Check the path and its permissions.") from error


def digests_of(path: Path) -> dict[str, str]:
    """Return the file's name and its digest, as a trial notes its sources.

    What is not UTF-8 in the name is replaced: no file of ours could hold it.

    Raises:
        ImportRefused: it cannot be read.
    """
    return {os.fsencode(path.name).decode("utf-8", "replace"): digest_file(path)}


def digest_file(path: Path) -> str:
    """Return the digest of a file's untouched bytes, read piece by piece.

    Raises:
        ImportRefused: it cannot be read.
    """
    try:
        seen = path.stat()
        version = (seen.st_size, seen.st_mtime_ns, seen.st_ino)
        return _digest_file(path) if seen.st_size < MEBIBYTE else _digest_of_version(path, *version)
    except OSError as error:
        raise refused("unreadable", path, _os_words(error), "Check the path and its permissions.") from error


@lru_cache(maxsize=64)
def _digest_of_version(path: Path, *_version: int) -> str:
    """A large log of 200 trials is digested once, not once a trial, as long as its size and times stay."""
    return _digest_file(path)


def _digest_file(path: Path) -> str:
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Parsed:
    """A JSON value, and what had to be changed so that it can be written again."""

    value: Any
    notes: tuple[str, ...] = ()


class NotJson(ValueError):
    """The bytes are not one JSON value that we read; the text says why."""


def parse_json(content: bytes) -> Parsed:
    """Parse one JSON value as harnesses write it.

    NaN and infinities become null and lone surrogates U+FFFD, each with a note. Of a key that is there twice the
    last one counts.

    Raises:
        NotJson: not UTF-8, not JSON, or nested deeper than 200.
    """
    strange: set[str] = set()

    def constant(_: str) -> None:
        strange.add("a number that is NaN or infinite in the source is written as null")

    def number(text: str) -> float | None:
        value = float(text)
        if not math.isfinite(value):
            constant(text)
            return None
        return value

    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotJson(f"it is not UTF-8 at byte {error.start}") from None
    try:
        value = json.loads(text, parse_constant=constant, parse_float=number)
    except RecursionError:
        raise NotJson(f"it is nested deeper than {DEPTH_LIMIT}") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"it is no valid JSON at line {error.lineno}, column {error.colno} ({error.msg})") from None
    except ValueError as error:  # a number of more than 4300 digits
        raise NotJson(f"it holds a number that cannot be read ({error})") from None
    _check_depth(value)
    if b"\\ud" in content.lower():
        value = _mended(value, strange)
    return Parsed(value, tuple(sorted(strange)))


def _check_depth(value: Any) -> None:
    """Raise where it is nested too deep: level by level and without recursion, whatever the depth."""
    level: list[Any] = [[value]]
    for _ in range(DEPTH_LIMIT + 1):
        # Written for speed: half of the time that a document takes is spent here.
        level = [
            item
            for each in level
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return
    raise NotJson(f"it is nested deeper than {DEPTH_LIMIT}")


def _mended(value: Any, strange: set[str]) -> Any:
    """Return the value, not nested too deep, with lone surrogates replaced."""
    if isinstance(value, dict):
        return {_mended(key, strange): _mended(item, strange) for key, item in value.items()}
    if isinstance(value, list):
        return [_mended(item, strange) for item in value]
    if not isinstance(value, str):
        return value
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        strange.add("a lone surrogate in a text of the source is written as U+FFFD")
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


# Careful access: what has another type than the format says is absent.


def mapping(value: Any) -> Mapping[str, Any]:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """Return `value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str | None:
    """Return `value` if it is a text, the empty one too."""
    return value if isinstance(value, str) else None


def filled(value: Any) -> str | None:
    """Return `value` if it is a text that is not empty."""
    return value if isinstance(value, str) and value else None


def whole(value: Any) -> int | None:
    """Return `value` if it is a whole number of at most 64 bits (a truth value is none)."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


def present(value: Any) -> Any:
    """Return plain data without nulls and empty containers (absent stays absent)."""
    if isinstance(value, dict):
        kept = {key: present(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None and item != {} and item != []}
    if isinstance(value, list):
        return [item for item in map(present, value) if item is not None]
    return value


def exception_chain(traceback: str | None) -> list[tuple[str, str | None]]:
    """Return (type, message) of each exception that a Python traceback text shows, outermost first.

    The type is as printed, with its module. Texts that are no traceback give an empty list.
    """
    if traceback is None or "Traceback (most recent call last)" not in traceback:
        return []
    found: list[tuple[str, str | None]] = []
    for part in _CHAINED.split(traceback):
        last = None
        for line in part.splitlines():
            matched = _RAISED.match(line)
            if matched is not None and not line.startswith("Traceback ("):
                last = matched
        if last is not None:
            found.append((last["type"], last["message"] or None))
    found.reverse()
    return found


_CHAINED = re.compile(
    r"\n+(?:The above exception was the direct cause of the following exception:"
    r"|During handling of the above exception, another exception occurred:)\n+"
)
_RAISED = re.compile(r"(?P<type>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_<][A-Za-z0-9_>]*)*)(?:: ?(?P<message>.*))?$")


def bare(type_name: str) -> str:
    """Return an exception's name without its module."""
    return type_name.rpartition(".")[2]


def _os_words(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
