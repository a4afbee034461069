"""Where each key and value of a TOML text stands. The text must be one that tomllib has accepted.

tomllib and tomlkit keep no positions. Knows syntax only, checks nothing, and never changes a value.
"""

import json
import re
import tomllib
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

Key = tuple[int | str, ...]
"""Names of tables and keys, and indexes into arrays (of tables, too), from the top."""

_SPACE = " \t\r\n"


class Span(NamedTuple):
    """Offsets into the text: from the first character to behind the last."""

    start: int
    end: int


def dotted(key: Key) -> str:
    """Return `key` as TOML writes it; an index counts from 1, as a person does: ``hypotheses[1].id``."""
    text = ""
    for part in key:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            name = part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part, ensure_ascii=False)
            text += f".{name}" if text else name
    return text


@dataclass
class Places:
    """The places that were found in one text."""

    text: str
    keys: dict[Key, int] = field(default_factory=dict)
    """Offset of the key, or of the header, that first names it."""
    values: dict[Key, Span] = field(default_factory=dict)
    """Where the value of a `key = value` stands."""
    headers: list[tuple[Key, Span]] = field(default_factory=list)
    """Each `[table]` and `[[table]]` header, in the order of the text."""

    def __post_init__(self) -> None:
        self._starts = [0, *(at + 1 for at, char in enumerate(self.text) if char == "\n")]

    def line_at(self, offset: int) -> int:
        """Return the number of the line, from 1, in which `offset` lies."""
        return bisect_right(self._starts, offset)

    def known(self, key: Key) -> Key:
        """Return the longest beginning of `key` that stands in the text."""
        while key and key not in self.keys:
            key = key[:-1]
        return key

    def line(self, key: Key) -> int | None:
        """Return the line of `key`, or of the nearest thing around it; None where that is the whole file."""
        found = self.known(key)
        return self.line_at(self.keys[found]) if found else None


def places_of(text: str) -> Places:
    """Return the places of `text`."""
    walker = _Walker(text)
    # Something newer than this walker knows: what was found until there is still right.
    with suppress(IndexError, RecursionError):
        walker.walk()
    return walker.places


class _Walker:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.places = Places(text)
        self.counts: dict[Key, int] = {}

    def walk(self) -> None:
        table: Key = ()
        while self._skip(_SPACE):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _skip(self, spaces: str) -> bool:
        """Go past spaces and comments; say whether anything follows."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char in spaces:
                self.at += 1
            else:
                return True
        return False

    def _header(self) -> Key:
        start = self.at
        many = self.text.startswith("[[", self.at)
        self.at += 2 if many else 1
        names = self._names()
        self.at += 2 if many else 1
        key: Key = ()
        for depth, name in enumerate(names):
            key = (*key, name)
            self.places.keys.setdefault(key, start)
            last = depth == len(names) - 1
            if key in self.counts and not (last and many):
                key = (*key, self.counts[key] - 1)
            elif last and many:
                self.counts[key] = self.counts.get(key, 0) + 1
                key = (*key, self.counts[key] - 1)
                self.places.keys[key] = start
        # A header is a better place for a table than a dotted mention of it before.
        self.places.keys[key] = start
        self.places.headers.append((key, Span(start, self.at)))
        return key

    def _pair(self, table: Key) -> None:
        start = self.at
        key = table
        for name in self._names():
            key = (*key, name)
            self.places.keys.setdefault(key, start)
        self.at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(key)

    def _names(self) -> list[str]:
        """Read a dotted key and stop at the character after it."""
        names: list[str] = []
        while True:
            self._skip(" \t")
            start = self.at
            if self.text[self.at] in "\"'":
                self._string()
                names.append(tomllib.loads("k = " + self.text[start : self.at])["k"])
            else:
                while self.text[self.at] not in " \t.=]":
                    self.at += 1
                names.append(self.text[start : self.at])
            self._skip(" \t")
            if self.text[self.at] != ".":
                return names
            self.at += 1

    def _value(self, key: Key) -> None:
        start = self.at
        char = self.text[self.at]
        if char in "\"'":
            self._string()
        elif char == "[":
            self._array(key)
        elif char == "{":
            self._inline_table(key)
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}#\n":
                self.at += 1
            while self.text[self.at - 1] in " \t\r":
                self.at -= 1
        self.places.values[key] = Span(start, self.at)

    def _array(self, key: Key) -> None:
        self.at += 1
        index = 0
        while self._skip(_SPACE + ",") and self.text[self.at] != "]":
            item = (*key, index)
            self.places.keys[item] = self.at
            self._value(item)
            index += 1
        self.at += 1

    def _inline_table(self, key: Key) -> None:
        self.at += 1
        while self._skip(_SPACE + ",") and self.text[self.at] != "}":
            self._pair(key)
        self.at += 1

    def _string(self) -> None:
        quote = self.text[self.at]
        fence = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(fence)
        while not self.text.startswith(fence, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(fence)
        # Up to two quotes may stand directly before the closing three.
        while len(fence) == 3 and self.at < len(self.text) and self.text[self.at] == quote:
            self.at += 1
