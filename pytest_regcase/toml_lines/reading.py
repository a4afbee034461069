"""Reads TOML files, bounded and with their text kept, so that an error can name the line.

Values always come from tomllib. Knows no case, no project and no model.
"""

import os
import re
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any

from pytest_regcase.errors import FileError
from pytest_regcase.toml_lines.places import Key, Places, dotted, places_of

TOML_LIMIT_BYTES = 1024 * 1024
INT_MIN, INT_MAX = -(2**63), 2**63 - 1
"""The whole numbers that TOML 1.0 promises to hold; tomllib takes larger ones, other readers do not."""
_DEEPEST = 32


@dataclass(frozen=True)
class TomlFile:
    """A TOML file as read: its values by tomllib, and its text for whoever has to name a line or edit it."""

    path: Path
    data: dict[str, Any]
    text: str

    def places(self) -> Places:
        """Return where each key stands. Walks the text; meant for errors and edits."""
        return places_of(self.text)

    def problem(self, key: Key, says: str) -> str:
        """Return `says` as one line, with the file and the line of `key` (or of the nearest table around it)."""
        return at_line(self.path, self.places().line(key), says)


def shown(path: Path) -> str:
    """Return `path` as a person in the current folder would write it."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def at_line(path: Path, line: int | None, says: str) -> str:
    """Return `file:line: says`."""
    return f"{shown(path)}:{line}: {says}" if line is not None else f"{shown(path)}: {says}"


def read_bounded(path: Path, limit_bytes: int) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        FileError: it does not exist, is no regular file, cannot be read, or is larger than `limit_bytes`, which is
            found out before it is read.
    """
    try:
        if not path.exists():
            raise FileError([at_line(path, None, "there is no such file")])
        if not path.is_file():
            raise FileError([at_line(path, None, "is not a regular file")])
        size = os.path.getsize(path)
        if size > limit_bytes:
            raise FileError([at_line(path, None, f"has {size:,} bytes; at most {limit_bytes:,} are read")])
        with path.open("rb") as file:
            content = file.read(limit_bytes + 1)
    except OSError as error:
        raise FileError([at_line(path, None, f"cannot be read: {error.strerror or error}")]) from error
    if len(content) > limit_bytes:
        raise FileError([at_line(path, None, f"grew while it was read; at most {limit_bytes:,} bytes are read")])
    return content


def read_toml(path: Path, *, limit_bytes: int = TOML_LIMIT_BYTES) -> TomlFile:
    """Read a TOML file.

    Raises:
        FileError: it is not there, too large, not UTF-8, not TOML, nested too deeply, or holds a time that no one
            can place (a date-time without an offset, a time of day without a date).
    """
    return parse_toml(path, read_bounded(path, limit_bytes))


def parse_toml(path: Path, content: bytes) -> TomlFile:
    """Return `content` as the TOML file `path` would be; raises as `read_toml`."""
    if content.startswith(b"\xef\xbb\xbf"):
        raise FileError([at_line(path, 1, "starts with a byte order mark; save the file as UTF-8 without one")])
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FileError([at_line(path, line, f"byte {content[error.start]:#04x} is not UTF-8")]) from error
    try:
        data = tomllib.loads(text)
    except ValueError as error:  # most are tomllib's own; a number of more than 4300 digits is Python's
        raise FileError([_syntax(path, text, str(error))]) from error
    except RecursionError as error:
        raise FileError([at_line(path, None, "is nested too deeply")]) from error
    toml = TomlFile(path, data, text)
    _check_values(toml)
    return toml


def _syntax(path: Path, text: str, message: str) -> str:
    place = re.search(r"\s*\(at line (\d+), column (\d+)\)$", message)
    if place is not None:
        return at_line(path, int(place[1]), f"not valid TOML: {message[: place.start()]} (column {place[2]})")
    end = message.removesuffix(" (at end of document)")
    line = text.rstrip().count("\n") + 1 if end != message else None
    return at_line(path, line, f"not valid TOML: {end}")


def _check_values(toml: TomlFile) -> None:
    problems: list[str] = []
    waiting: list[tuple[Key, Any]] = [((), toml.data)]
    while waiting:
        key, value = waiting.pop()
        if len(key) > _DEEPEST:
            raise FileError([at_line(toml.path, None, f"is nested deeper than {_DEEPEST} levels")])
        if isinstance(value, dict):
            waiting.extend(((*key, name), item) for name, item in value.items())
        elif isinstance(value, list):
            waiting.extend(((*key, index), item) for index, item in enumerate(value))
        else:
            says = _unusable(value)
            if says is not None:
                problems.append(toml.problem(key, f"{dotted(key)} {says}"))
    if problems:
        raise FileError(sorted(problems))


def _unusable(value: Any) -> str | None:
    """Say what is wrong with a value that tomllib takes and no digest can be made of; None where nothing is."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return f"= {value.isoformat()} has no offset; write it with Z or +hh:mm"
        try:
            value.astimezone(UTC)
        except OverflowError:
            return f"= {value.isoformat()} lies outside the years 1 to 9999 in UTC"
    elif isinstance(value, time):
        return f"= {value} is a time without a date; write a date-time"
    elif isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
        # Not shown: it may have thousands of digits.
        return "is a whole number of more than 64 bits; write it as text, in quotes"
    return None
