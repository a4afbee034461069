"""What a JSON document shows of itself without being parsed: object or list, and its outermost keys.

Knows JSON's punctuation; knows no format. Must import no importer. Works piece by piece, never on the whole.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from pytest_regcase.importers.reading import DOCUMENT_LIMIT_BYTES, MEBIBYTE

_KEY_LIMIT_BYTES: Final = 400
"""A longer key is left out: no format has one, and a part of it is no key of the document."""
_SPACE: Final = b" \t\r\n"
_MARK: Final = re.compile(rb'[\[\]{}":]')
_INSIDE: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_FURTHER_IN: Final = re.compile(rb'(?:[^\[\]{}"]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
"""All up to the next bracket, whole texts included: keys further in than we look are none of our business."""


@dataclass(frozen=True)
class Shape:
    """What the beginning of a JSON document shows without parsing all of it."""

    kind: Literal["object", "list", "other"]
    keys: frozenset[str] = frozenset()
    """Of the object, or of the objects in the list."""
    inner_keys: frozenset[str] = frozenset()
    """Of the objects one level further in."""


@lru_cache(maxsize=4)
def shape_of(head: bytes) -> Shape:
    """Return the shape of a JSON document from its first bytes; keys behind them are not seen.

    Kept for a while: every importer asks for the same head.
    """
    scan = _Scan()
    scan.feed(head)
    return scan.shape


def shape_of_file(path: Path) -> Shape:
    """Return the shape of a whole document, up to 256 MiB of it.

    Raises:
        OSError: it cannot be read.
    """
    scan = _Scan()
    read = 0
    with path.open("rb") as file:
        while read < DOCUMENT_LIMIT_BYTES and (piece := file.read(MEBIBYTE)):
            read += len(piece)
            if not scan.feed(piece):
                break
    return scan.shape


class _Scan:
    """Reads a document in pieces that may end anywhere, within a text or an escape too."""

    def __init__(self) -> None:
        self._kind: Literal["object", "list", "other"] | None = None
        self._wanted = 0
        self._depth = 0
        self._in_text = False
        self._text = b""
        self._carried = b""
        self._keys: set[str] = set()
        self._inner: set[str] = set()

    @property
    def shape(self) -> Shape:
        return Shape(self._kind or "other", frozenset(self._keys), frozenset(self._inner))

    def feed(self, piece: bytes) -> bool:
        """Take the next piece; return whether anything behind it can matter."""
        piece, self._carried = self._carried + piece, b""
        position = 0
        if self._kind is None:
            piece = piece.removeprefix(b"\xef\xbb\xbf").lstrip(_SPACE)
            if not piece:
                return True
            self._kind = {b"{": "object", b"[": "list"}.get(piece[:1], "other")  # type: ignore[assignment]
            self._wanted = 1 if self._kind == "object" else 2
        if self._kind == "other":
            return False
        while position < len(piece):
            if self._in_text:
                position = self._go_on_in_text(piece, position)
                continue
            if self._depth > self._wanted + 1 and (skipped := _FURTHER_IN.match(piece, position)):
                position = skipped.end()
            found = _MARK.search(piece, position)
            if found is None:
                break
            position = found.end()
            if not self._take(found.group()):
                return False
        return True

    def _go_on_in_text(self, piece: bytes, start: int) -> int:
        found = _INSIDE.match(piece, start)
        end = found.end() if found is not None else start
        if self._wanted <= self._depth <= self._wanted + 1 and len(self._text) <= _KEY_LIMIT_BYTES:
            self._text += piece[start : min(end, start + _KEY_LIMIT_BYTES + 1)]
        if piece[end : end + 1] == b'"':
            self._in_text = False
            return end + 1
        self._carried = piece[end:]  # a lone backslash, whose escape is in the next piece
        return len(piece)

    def _take(self, mark: bytes) -> bool:
        if mark == b'"':
            self._in_text, self._text = True, b""
        elif mark == b":":
            if self._wanted <= self._depth <= self._wanted + 1 and len(self._text) <= _KEY_LIMIT_BYTES:
                keys = self._keys if self._depth == self._wanted else self._inner
                keys.add(self._text.decode("utf-8", "replace"))
        elif mark in b"{[":
            self._depth += 1
        else:
            self._depth -= 1
        return self._depth > 0 or mark in b'":'
