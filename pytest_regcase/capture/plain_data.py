"""Anything an agent hands over, as plain JSON data: what has no JSON form becomes text, and nothing is fatal.

Knows Python's own types and the conventions of record classes (`model_dump`, dataclasses); writes no file.
"""

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

TEXT_LIMIT: Final = 4 * 1024 * 1024
"""Characters of one text."""
RECORD_LIMIT_BYTES: Final = 25 * 1024 * 1024
"""Of all texts of one record, as JSON: a line of `trial.jsonl` beyond 32 MiB could not be read back. A text at its
limit fits, whatever its characters are (JSON takes up to six bytes for one)."""
CUT_MARK: Final = " [pytest-regcase cut this text here]"
_DEEPEST: Final = 40
_MOST_VALUES: Final = 50_000
_LONG_ENOUGH_TO_COUNT: Final = 4096
_MOST_BYTES: Final = 6
"""That JSON takes for one character."""
_LONGEST_WORD: Final = 64
_LEFT_OUT: Final = "holds itself, or is too deep or too large to be recorded"
_WIDEST_INTEGER: Final = 2**63


def plain(value: object) -> Any:
    """Return `value` as JSON data: objects, lists, texts, finite numbers, truth values and null.

    An exception class becomes its name, bytes and paths their text, NaN and the infinities ``"NaN"``,
    ``"Infinity"`` and ``"-Infinity"``; what holds itself, or is deeper or larger than anybody reads, is left
    out there and said. What comes first has room first. Never raises an `Exception`, whatever the object does when
    it is asked.
    """
    return _Walk().value(value, ())


def as_text(value: object) -> str:
    """Return `value` as text that UTF-8 can hold, whatever its ``str()`` does."""
    try:
        if isinstance(value, type):
            text = type_name(value)
        elif isinstance(value, bytes | bytearray | memoryview):
            text = bytes(value).decode("utf-8", errors="backslashreplace")
        else:
            text = str(value)
        return _whole(text)
    except Exception as raised:
        return f"<{type_name(type(value))}: its str() raised {type_name(type(raised))}>"


def type_name(kind: type) -> str:
    """Return a class's name with its module; a built-in one's without. Never raises an `Exception`."""
    # `__module__` may be anything that somebody assigned to it, and a metaclass may answer for both.
    try:
        module, name = getattr(kind, "__module__", None), kind.__qualname__
    except Exception:
        module, name = None, bare_name(kind)
    return f"{module}.{name}" if isinstance(module, str) and module != "builtins" else name


def bare_name(kind: type) -> str:
    """Return a class's own name as Python keeps it, whatever its metaclass answers."""
    name: str = type.__dict__["__name__"].__get__(kind)
    return name


def _whole(text: str) -> str:
    """Return `text` as an exact `str`, without half surrogates, cut at the limit."""
    text = str.__str__(text)
    if len(text) > TEXT_LIMIT:
        text = text[:TEXT_LIMIT] + CUT_MARK
    return text.encode("utf-8", errors="backslashreplace").decode("utf-8")


class _Walk:
    """One value on its way to JSON: counts what it meets, so that no object can make it endless."""

    def __init__(self) -> None:
        self._met = 0
        self._room = RECORD_LIMIT_BYTES

    def value(self, value: object, around: tuple[int, ...]) -> Any:
        self._met += 1
        try:
            if value is None or isinstance(value, bool):
                return value
            if isinstance(value, str):
                return self._text(_whole(value))
            if isinstance(value, int):
                # Readers of JSON in other languages lose larger ones, and Python refuses to print huge ones.
                return int(value) if abs(value) < _WIDEST_INTEGER else self._text(hex(value))
            if isinstance(value, float):
                return float(value) if math.isfinite(value) else _not_finite(value)
            if id(value) in around or len(around) > _DEEPEST or self._met > _MOST_VALUES:
                # Its own text may be endless, or as good as that.
                return f"<{type_name(type(value))}: {_LEFT_OUT}>"
            return self._container(value, (*around, id(value)))
        except Exception:  # a foreign object may raise anything when it is looked at
            return self._text(as_text(value))

    def _container(self, value: object, around: tuple[int, ...]) -> Any:
        if isinstance(value, Mapping):
            table: dict[str, Any] = {}
            for key, item in value.items():
                if self._is_full:
                    return {**table, "...": _LEFT_OUT}
                table[self._text(_whole(key) if isinstance(key, str) else as_text(key))] = self.value(item, around)
            return table
        if isinstance(value, list | tuple):
            return self._items(value, around)
        if isinstance(value, set | frozenset):
            return sorted(self._items(value, around), key=repr)
        if isinstance(value, datetime):
            return value.isoformat()
        if isinstance(value, BaseException):
            return self._text(f"{type_name(type(value))}: {as_text(value)}")
        if not isinstance(value, type):
            dump = getattr(value, "model_dump", None)
            if callable(dump):
                return self.value(dump(), around)
            if dataclasses.is_dataclass(value):
                fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
                return self.value(fields, around)
        return self._text(as_text(value))

    @property
    def _is_full(self) -> bool:
        return self._met > _MOST_VALUES

    def _items(self, values: Iterable[object], around: tuple[int, ...]) -> list[Any]:
        found: list[Any] = []
        for item in values:
            if self._is_full:
                return [*found, f"<{_LEFT_OUT}>"]
            found.append(self.value(item, around))
        return found

    def _text(self, text: str) -> str:
        """Return `text`, cut where the record has no room for it; never a word of ours, or the name of a field."""
        if len(text) < _LONG_ENOUGH_TO_COUNT:
            cost = _MOST_BYTES * len(text)
        else:
            cost = len(json.dumps(text, ensure_ascii=False).encode())
        if cost > self._room and len(text) > _LONGEST_WORD:
            text = text[: max(self._room, 0) // _MOST_BYTES] + CUT_MARK
            cost = max(self._room, 0)
        self._room -= cost
        return text


def _not_finite(number: float) -> str:
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
