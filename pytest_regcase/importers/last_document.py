"""The JSON document that was read last, kept so that each of its many trials does not parse it again.

Knows one file at a time, by its path, size and time of change. Must import no importer. Raises `ImportRefused`
only.
"""

from pathlib import Path

from pytest_regcase.importers.reading import Parsed, read_parsed

Version = tuple[Path, int, int]
"""A file as it was: its path, size, and time of change in nanoseconds."""


class LastDocument:
    """Reads whole documents; what it gives must not be changed. One an importer, gone with it."""

    def __init__(self) -> None:
        self._version: Version | None = None
        self._parsed = Parsed(None)

    def read(self, path: Path) -> Parsed:
        """Return the parsed document, again without parsing while the file is the same.

        Raises:
            ImportRefused: it is too large, cut off, no JSON, or cannot be read.
        """
        version = version_of(path)
        if version is None or version != self._version:
            self._version, self._parsed = None, Parsed(None)  # two large ones never are in memory together
            self._parsed = read_parsed(path)
            self._version = version
        return self._parsed


def version_of(path: Path) -> Version | None:
    """Return what tells that a file is still the same; None where it cannot be looked at: reading it says why."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return path, found.st_size, found.st_mtime_ns
