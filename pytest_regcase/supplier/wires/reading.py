"""What every wire reads alike: bodies of requests and answers that may be anything, none of which may raise.

Knows no protocol. Standard library only, since the supplier's child process imports it.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

_LINE_ENDS = re.compile(r"\r\n|\n|\r")
"""Those of server-sent events; what else ends a line elsewhere may stand inside a JSON text."""


_Read = TypeVar("_Read")


class Reader(Generic[_Read]):
    """Reads lists of JSON objects, and of each list only what the one before did not begin with.

    Agents send the whole conversation with every request, and all of it would be read anew. Two objects that are
    equal in Python count as one: 1 and true as well, which no agent exchanges in what it repeats.
    """

    def __init__(self, read: Callable[[dict[str, Any]], _Read]) -> None:
        self._read_one = read
        # One tuple, set at once: a wire may be asked by several threads.
        self._last: tuple[list[dict[str, Any]], tuple[_Read, ...]] = ([], ())

    def read(self, given: list[dict[str, Any]]) -> tuple[_Read, ...]:
        """Return what was read of each object."""
        before, known = self._last
        same = len(before)
        if given[:same] != before:
            same = next(at for at, one in enumerate(before) if given[at : at + 1] != [one])
        found = (*known[:same], *[self._read_one(each) for each in given[same:]])
        self._last = given, found
        return found


def json_object(body: bytes | str) -> dict[str, Any] | None:
    """Return the JSON object in `body`; None where there is none."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def stream_events(body: bytes) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of an event stream, as far as they are whole."""
    for line in _LINE_ENDS.split(body.decode("utf-8", "replace")):
        data = json_object(line.removeprefix("data:")) if line.startswith("data:") else None
        if data is not None:
            yield data


def text_or_none(value: Any) -> str | None:
    """Return a text that is not empty."""
    return value if isinstance(value, str) and value else None


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of what should be an array of them."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def member(value: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the object at `key`, an empty one where there is none."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def flat(content: Any) -> str:
    """Return the text of a content that is a string or a list of strings and parts with a text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [each.get("text") if isinstance(each, dict) else each for each in content]
    return "".join(each for each in texts if isinstance(each, str))


def error_word(data: Mapping[str, Any]) -> str | None:
    """Return the code or type of the error in an answer, never its message: that may quote a key."""
    error = data.get("error")
    if error is None or error == {}:
        return None
    words = [error.get("code"), error.get("type")] if isinstance(error, dict) else []
    return next((str(each)[:80] for each in words if each), "no code")
