"""The objects of a file that is one JSON document, a list of objects, or JSON lines, one after the other.

Knows JSON and the limits of reading; knows no format. Must import no importer. Raises `ImportRefused` only.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.reading import NotJson, parse_json, read_document, read_lines, refused

_SHOWN_BAD_LINES: Final = 5


class JsonRecords:
    """Yields (origin, object) in the order of the file. Lines are read one by one, a document as a whole.

    It is JSON lines when its first line is a whole object, or when the format has no other form (`lines_only`). A
    line that is no object is left out: the lines around it are not lost.
    """

    def __init__(self, path: Path, *, lines_only: bool = False) -> None:
        self._path = path
        self._lines_only = lines_only
        self._notes: list[str] = []
        self._bad = 0
        self._no_objects = 0

    def __iter__(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        self._notes, self._bad, self._no_objects = [], 0, 0
        yield from self._lines() if self._lines_only or _begins_with_object_line(self._path) else self._document()

    @property
    def missing(self) -> list[str]:
        """Sentences, once all was read: what was left out, and what had to be changed."""
        found = list(self._notes)
        if self._bad > _SHOWN_BAD_LINES:
            found.append(f"{self._bad - _SHOWN_BAD_LINES} further lines are left out")
        if self._no_objects:
            found.append(f"{self._no_objects} records are no objects and are left out")
        return found

    def _lines(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for number, content, complete in read_lines(self._path):
            if not content.strip():
                continue
            try:
                parsed = parse_json(content)
            except NotJson as error:
                self._bad_line(number, str(error), complete=complete)
                continue
            self._note(parsed.notes)
            if isinstance(parsed.value, dict):
                yield f"line {number}", parsed.value
            else:
                self._no_objects += 1

    def _document(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        try:
            parsed = parse_json(read_document(self._path))
        except NotJson as error:
            raise refused(
                "corrupt",
                self._path,
                str(error),
                "The file may be cut off: copy it again from where it was written.",
            ) from error
        self._note(parsed.notes)
        if isinstance(parsed.value, dict):
            yield "", parsed.value
            return
        items = parsed.value if isinstance(parsed.value, list) else [parsed.value]
        for index, item in enumerate(items):
            if isinstance(item, dict):
                yield f"[{index}]", item
            else:
                self._no_objects += 1

    def _bad_line(self, number: int, why: str, *, complete: bool) -> None:
        self._bad += 1
        if not complete:
            self._notes.append(f"line {number}, the last one, is cut off: left out")
            self._bad -= 1
        elif self._bad <= _SHOWN_BAD_LINES:
            self._notes.append(f"line {number} is left out: {why}")

    def _note(self, notes: tuple[str, ...]) -> None:
        self._notes.extend(note for note in notes if note not in self._notes)


def _begins_with_object_line(path: Path) -> bool:
    for _, content, _ in read_lines(path):
        if not content.strip():
            continue
        try:
            return isinstance(parse_json(content).value, dict)
        except NotJson:
            return False
    return False


def decoded(value: Any) -> Any:
    """Return what a JSON text of an object or a list holds; a text that is none, and any other value, as it is."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return parse_json(value.encode("utf-8", "surrogatepass")).value
        except NotJson:
            return value
    return value
