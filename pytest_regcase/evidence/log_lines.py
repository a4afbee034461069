"""The lines of a log of any size, plain or in gzip, one at a time. Knows bytes; knows no format of a log."""

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

LINE_LIMIT_BYTES: Final = 1024 * 1024
LOG_LIMIT_BYTES: Final = 8 * 1024**3
"""Of the log as it is read, inflated: what is behind that is refused, not passed over."""
HEAD_BYTES: Final = 256 * 1024


class Line(NamedTuple):
    """One line of a log."""

    number: int
    """From 1, as editors and grep count, of the inflated text."""
    raw: bytes
    """With its end; at most 1 MiB, the rest of a longer line is dropped."""

    @property
    def text(self) -> str:
        """The line without its end; what is not UTF-8 is replaced."""
        return self.raw.decode("utf-8", "replace").rstrip("\r\n")


class LogUnreadable(Exception):
    """A log cannot be read. Holds the two halves of a message, for whoever knows what it was read for."""

    def __init__(self, why: str, what_to_do: str) -> None:
        super().__init__(why)
        self.why = why
        self.what_to_do = what_to_do


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of `path`, never more than one in memory.

    Raises:
        LogUnreadable: it cannot be opened or inflated, is no plain file, or is too large.
    """
    read = 0
    try:
        with _opened(path) as file:
            number = 0
            while raw := file.readline(LINE_LIMIT_BYTES):
                number += 1
                read += len(raw)
                part = raw
                while not part.endswith(b"\n") and len(part) == LINE_LIMIT_BYTES:
                    part = file.readline(LINE_LIMIT_BYTES)
                    read += len(part)
                    _check(read)
                _check(read)
                yield Line(number, raw)
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(error) from error


def read_head(path: Path) -> bytes:
    """Return the first 256 KiB, inflated.

    Raises:
        LogUnreadable: see `read_lines`.
    """
    try:
        with _opened(path) as file:
            return file.read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(error) from error


def inflated_digest(path: Path) -> str | None:
    """Return the digest of the text that a packed log holds; None where it is not packed.

    Raises:
        LogUnreadable: see `read_lines`.
    """
    found, read = hashlib.sha256(), 0
    try:
        with _opened(path) as file:
            if not isinstance(file, gzip.GzipFile):
                return None
            while part := file.read(LINE_LIMIT_BYTES):
                read += len(part)
                _check(read)
                found.update(part)
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(error) from error
    return f"sha256:{found.hexdigest()}"


def read_whole(path: Path, limit: int) -> bytes | None:
    """Return all of it, inflated, or its bytes as they are where that cannot be; None above `limit` bytes.

    Raises:
        OSError: it cannot be read.
    """
    if path.stat().st_size > limit:
        return None
    try:
        with _opened(path) as file:
            content = file.read(limit + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        content = path.read_bytes()
    return content if len(content) <= limit else None


def _check(read: int) -> None:
    if read > LOG_LIMIT_BYTES:
        raise LogUnreadable(f"it is larger than {LOG_LIMIT_BYTES // 1024**3} GiB", "Cut it first.")


def _opened(path: Path) -> "gzip.GzipFile | BinaryIO":
    if path.exists() and not path.is_file():
        # A pipe or a device would be waited for.
        raise LogUnreadable("it is no plain file", "Give a file.")
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if packed else path.open("rb")


def _unreadable(error: Exception) -> LogUnreadable:
    why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return LogUnreadable(why.lower(), "Check the file.")
