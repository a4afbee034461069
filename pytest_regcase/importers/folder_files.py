"""Careful access to the files of a folder that is read as a whole: no links, nothing outside, only refusals.

Knows paths; knows no format. Must import no importer.
"""

import os
from pathlib import Path

from pytest_regcase.importers.reading import refused


def is_plain_file(path: Path) -> bool:
    """Say whether `path` is a file and no link; False where that cannot be looked at (a name may be anything)."""
    try:
        return path.is_file() and not path.is_symlink()
    except (OSError, ValueError):
        return False


def folders_in(place: Path) -> list[Path]:
    """Return the folders right below `place`, sorted by name, without links.

    Raises:
        ImportRefused: it cannot be listed.
    """
    try:
        with os.scandir(place) as found:
            return sorted(Path(each.path) for each in found if each.is_dir(follow_symlinks=False))
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise refused("unreadable", place, why, "Check the path and its permissions.") from error


def beside(place: Path, name: str) -> Path | None:
    """Return the plain file `name` right below `place`, where a document says that it belongs to it.

    None where there is none, also where the name is more than a name: it came out of a file.
    """
    path = place / os.path.basename(name)
    return path if path.name == name and is_plain_file(path) else None


def name_below(path: Path, place: Path) -> str:
    """Return `path` as a trial notes it: relative to `place`, with what is not UTF-8 replaced."""
    return os.fsencode(os.path.relpath(path, place)).decode("utf-8", "replace").replace(os.sep, "/")
