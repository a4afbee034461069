"""Events that a conversation keeps in a file of their own each, or all in one list or JSON-lines file.

Knows files, numbers in names and JSON; knows no format. Must import no importer. Raises `ImportRefused` only.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.json_records import JsonRecords
from pytest_regcase.importers.reading import NotJson, digest_file, digests_of, parse_json, read_document, refused
from pytest_regcase.records.canonical import digest_of

SAYS_NO_FAILURE: Final = "nothing in it says that it failed, and events hold no pass or fail"
"""Why a conversation whose events show no failure is no failed trial."""
_FILES_LIMIT: Final = 20_000


class EventFiles:
    """Yields (origin, event) in order: by the number that the pattern's first group finds in a file's name.

    In a folder the files lie in `events/`, or in the folder itself. One that is damaged is left out and said.
    """

    def __init__(self, source: Path, pattern: re.Pattern[str]) -> None:
        self.missing: list[str] = []
        self._source = source
        self._pattern = pattern
        self._records = None if source.is_dir() else JsonRecords(source)
        self._paths = self._numbered() if source.is_dir() else []

    def __iter__(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        self.missing = []
        if self._records is not None:
            yield from self._records
            self.missing = list(self._records.missing)
            return
        for path in self._paths:
            try:
                parsed = parse_json(read_document(path))
            except NotJson as error:
                self.missing.append(f"{path.name} is left out: {error}")
                continue
            self.missing.extend(note for note in parsed.notes if note not in self.missing)
            if isinstance(parsed.value, dict):
                yield path.name, parsed.value
            else:
                self.missing.append(f"{path.name} is left out: it is no object")

    @property
    def digests(self) -> dict[str, str]:
        """Return the file's digest, or for a folder one digest over the names and digests of all its events."""
        if self._records is not None:
            return digests_of(self._source)
        return {"events": digest_of({path.name: digest_file(path) for path in self._paths})}

    def _numbered(self) -> list[Path]:
        inner = self._source / "events"
        folder = inner if inner.is_dir() else self._source
        found: list[tuple[int, str, Path]] = []
        try:
            for path in folder.iterdir():
                named = self._pattern.fullmatch(path.name)
                if named is not None and path.is_file() and not path.is_symlink():
                    found.append((int(named[1]), path.name, path))
        except OSError as error:
            why = (error.strerror or "it cannot be read").lower()
            raise refused("unreadable", folder, why, "Check its permissions.") from error
        if len(found) > _FILES_LIMIT:
            raise refused("too-many-files", folder, f"it holds more than {_FILES_LIMIT} events", "Give fewer.")
        return [path for _, _, path in sorted(found)]
