"""The objects of a file that is one JSON document, a list of objects, or JSON lines, one after the other.

Knows JSON and the limits of reading; knows no format. Must import no importer. Raises `ImportRefused` only.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.last_document import Version, version_of
from pytest_regcase.importers.reading import (
    MEBIBYTE,
    TOO_LONG,
    NotJson,
    parse_json,
    read_document,
    read_lines,
    refused,
)
from pytest_regcase.records.plurals import how_many

_SHOWN_BAD_LINES: Final = 5
_KEPT_BYTES: Final = 16 * MEBIBYTE
"""JSON lines of a larger file are read again for each trial; a whole document, or a single line, is kept."""


class LastRecords:
    """The objects of the file that was read last, for importers whose files hold many trials.

    What it keeps must not be changed. One an importer, gone with it.
    """

    def __init__(self) -> None:
        self.version: Version | None = None
        self.records: list[tuple[str, Mapping[str, Any]]] = []
        self.missing: list[str] = []

    def keep(
        self, version: Version | None, records: list[tuple[str, Mapping[str, Any]]], missing: list[str]
    ) -> None:
        """Keep these, and nothing else."""
        self.version, self.records, self.missing = version, records, missing


class JsonRecords:
    """Yields (origin, object) in the order of the file. Lines are read one by one, a document as a whole.

    It is JSON lines when its first line is a whole object, or when the format has no other form (`lines_only`). A
    line that is no object is left out: the lines around it are not lost. With `last` a file is parsed once for all
    its trials, where it is small enough.
    """

    def __init__(self, path: Path, *, lines_only: bool = False, last: LastRecords | None = None) -> None:
        self._path = path
        self._last = last
        self._lines_only = lines_only
        self._notes: list[str] = []
        self._bad = 0
        self._no_objects = 0

    def __iter__(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        self._notes, self._bad, self._no_objects = [], 0, 0
        last, version = self._last, version_of(self._path)
        if last is not None and version is not None and version == last.version:
            self._notes = list(last.missing)
            yield from last.records
            return
        if last is not None:
            last.keep(None, [], [])
        as_lines = self._lines_only or _begins_with_object_line(self._path)
        found = self._lines() if as_lines else self._document()
        if last is None or version is None:
            yield from found
            return
        small = not as_lines or version[1] <= _KEPT_BYTES
        kept: list[tuple[str, Mapping[str, Any]]] = []
        for number, each in enumerate(found):
            if small or number == 0:
                kept.append(each)
            else:
                kept.clear()
            yield each
        if kept:
            last.keep(version, kept, self.missing)

    @property
    def missing(self) -> list[str]:
        """Sentences, once all was read: what was left out, and what had to be changed."""
        found = list(self._notes)
        if self._bad > _SHOWN_BAD_LINES:
            more = self._bad - _SHOWN_BAD_LINES
            found.append(how_many(more, "further line is left out", "further lines are left out"))
        if self._no_objects:
            words = ("record is no object and is left out", "records are no objects and are left out")
            found.append(how_many(self._no_objects, *words))
        return found

    def _lines(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for number, content, complete in read_lines(self._path):
            if content is None:
                self._bad_line(number, TOO_LONG, complete=True)
                continue
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
        if content is None or not content.strip():  # so long a line may be a whole document
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
