"""The JSON document that was read last, kept so that each of its many trials does not parse it again.

Knows one file at a time, by its path, size and time of change. Must import no importer. Raises `ImportRefused`
only.
"""

from pathlib import Path

from pytest_regcase.importers.reading import NotJson, Parsed, parse_json, read_document, refused


class LastDocument:
    """Reads whole documents; what it gives must not be changed. One an importer, gone with it."""

    def __init__(self) -> None:
        self._stamp: tuple[Path, int, int] | None = None
        self._parsed = Parsed(None)

    def read(self, path: Path) -> Parsed:
        """Return the parsed document, again without parsing while the file is the same.

        Raises:
            ImportRefused: it is too large, cut off, no JSON, or cannot be read.
        """
        stamp = _stamp(path)
        if stamp is None or stamp != self._stamp:
            try:
                self._parsed = parse_json(read_document(path))
            except NotJson as error:
                raise refused("corrupt", path, str(error), "It may be cut off: copy the file again.") from error
            self._stamp = stamp
        return self._parsed


def _stamp(path: Path) -> tuple[Path, int, int] | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None  # reading it says why
    return path, found.st_size, found.st_mtime_ns
