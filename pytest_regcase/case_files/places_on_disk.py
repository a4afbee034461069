"""Where cases lie, and which names inside a case may be followed.

Knows folders and file names; reads no more of a case file than its id.
"""

import os
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from pytest_regcase.errors import FileError, RegcaseError, UnknownName
from pytest_regcase.toml_lines import TOML_LIMIT_BYTES, at_line, read_bounded

CASE_FILE = "case.toml"


def find_case_files(folders: Iterable[Path]) -> list[Path]:
    """Return the case files below `folders`: their own ``case.toml``, and ``*/case.toml``; sorted, each once.

    Folders whose name begins with a dot are passed over, and so is a folder that does not exist.
    """
    found: dict[Path, Path] = {}
    for folder in folders:
        for path in (folder / CASE_FILE, *folder.glob(f"*/{CASE_FILE}")):
            if not path.parent.name.startswith(".") and path.is_file():
                found.setdefault(path.resolve(), path)
    return sorted(found.values())


def find_case(folders: Sequence[Path], name: str) -> Path:
    """Return the case file that `name` means: its path, its folder, or a case's id below `folders`.

    Raises:
        UnknownName: none of the three; the known ids are listed.
    """
    path = Path(name)
    if path.is_dir() and (path / CASE_FILE).is_file():
        return path / CASE_FILE
    if path.is_file():
        return path
    known = {_id_of(each): each for each in find_case_files(folders)}
    if name in known:
        return known[name]
    raise UnknownName(
        f"Couldn't find the case {name!r}: it is no case file, no folder with one, and no id.\n"
        f"Known: {', '.join(sorted(known)) or 'none'}."
    )


def inside(folder: Path, name: str) -> Path:
    """Return the path of `name` in `folder`, which it may not leave.

    Raises:
        ValueError: it is absolute, has a ``..`` or another odd part, or a symbolic link leads out; says which.
    """
    parts = PurePosixPath(name)
    if not name or "\\" in name or any(ord(char) < 32 for char in name):
        raise ValueError("is no relative path with forward slashes")
    if parts.is_absolute() or ".." in parts.parts or not parts.parts:
        raise ValueError("leaves the case's folder; allowed: a path below it")
    path = folder / parts
    try:
        resolved = path.resolve()
    except (OSError, RuntimeError) as error:
        raise ValueError(f"cannot be followed: {error}") from error
    if not resolved.is_relative_to(folder.resolve()):
        raise ValueError("leaves the case's folder through a symbolic link")
    return path


def replace_file(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a reader sees the old file or the new one, never half of either.

    A file that was there keeps its mode.

    Raises:
        FileError: it is a symbolic link: what it points to is not ours to replace.
        OSError: the file system refuses.
    """
    if path.is_symlink():
        raise FileError([at_line(path, None, "is a symbolic link; edit the file that it points to")])
    try:
        mode = path.stat().st_mode & 0o7777
    except FileNotFoundError:
        mode = 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        # Some file systems cannot sync a folder; the file itself is safe already.
        with suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _id_of(path: Path) -> str:
    try:
        found = tomllib.loads(read_bounded(path, TOML_LIMIT_BYTES).decode()).get("id")
    except (RegcaseError, ValueError, RecursionError):
        found = None
    return found if isinstance(found, str) else path.parent.name
