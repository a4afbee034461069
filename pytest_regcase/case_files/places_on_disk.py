"""Where cases lie, and which names inside a case may be followed.

Knows folders and file names; reads no more of a case file than its id.
"""

import errno
import fcntl
import os
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from pytest_regcase.errors import FileError, RegcaseError, UnknownName, WriteError, did_you_mean
from pytest_regcase.toml_lines import TOML_LIMIT_BYTES, at_line, read_bounded, shown

CASE_FILE = "case.toml"
_SHOWN_NAME = 60


class RealPlaces:
    """Follows the links of many paths below the same folders, looking at each folder once.

    `Path.resolve` looks at every folder of a path each time. A link that changes afterwards is not seen.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._paths: dict[str, Path] = {}

    def of(self, path: Path) -> Path:
        """Return the path without links and ``..``, as `Path.resolve` does."""
        name = os.fspath(path)
        found = self._paths.get(name)
        if found is None:
            found = self._paths[name] = Path(self._of(os.path.join(os.getcwd(), name)))
        return found

    def _of(self, path: str) -> str:
        known = self._known.get(path)
        if known is None:
            folder, name = os.path.split(path)
            if name in ("", ".", "..") or os.path.islink(path):
                known = os.path.realpath(path)
            else:
                known = os.path.join(self._of(folder), name)
            self._known[path] = known
        return known


def find_case_files(folders: Iterable[Path]) -> list[Path]:
    """Return the case files below `folders`: their own ``case.toml``, and ``*/case.toml``; sorted, each once.

    Folders whose name begins with a dot are passed over, and so is a folder that does not exist. What may not be
    looked into is no reason to pass a case over: its file is among them, and cannot be read.

    Raises:
        FileError: a folder of cases cannot be listed.
    """
    found: dict[Path, Path] = {}
    places = RealPlaces()
    for folder in folders:
        try:
            inner = [each for each in folder.iterdir() if not each.name.startswith(".") and _may_be_folder(each)]
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise FileError([at_line(folder, None, f"cannot be listed: {error.strerror or error}")]) from error
        for path in (each / CASE_FILE for each in (folder, *inner)):
            if not path.parent.name.startswith(".") and _may_be_file(path):
                found.setdefault(places.of(path), path)
    return sorted(found.values())


def _may_be_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return True


def _may_be_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return True


def find_case(folders: Sequence[Path], name: str) -> Path:
    """Return the case file that `name` means: its path, its folder, or a case's id below `folders`.

    Raises:
        UnknownName: none of the three, and the known ids are listed; or several cases have the id.
    """
    path = Path(name)
    with suppress(OSError):  # a name that is too long for a path
        if path.is_dir() and (path / CASE_FILE).is_file():
            return path / CASE_FILE
        if path.is_file():
            return path
    known: dict[str, list[Path]] = {}
    for each in find_case_files(folders):
        known.setdefault(_id_of(each), []).append(each)
    meant = known.get(name, [])
    if len(meant) == 1:
        return meant[0]
    called = repr(name if len(name) <= _SHOWN_NAME else name[:_SHOWN_NAME] + "...")
    if meant:
        raise UnknownName(
            f"Couldn't tell which case {called} is: {len(meant)} cases have that id, and an id is one case's.\n"
            f"Give another id to all but one of: {', '.join(map(shown, meant))}."
        )
    raise UnknownName(
        f"Couldn't find the case {called}: it is no case file, no folder with one, and no id.\n"
        f"{did_you_mean(name, known)}Known: {', '.join(sorted(known)) or 'none'}."
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
        # Without a link on the way it cannot lead out.
        leads_out = _has_link(folder, parts) and not path.resolve().is_relative_to(folder.resolve())
        path.exists()  # raises where the name is too long, or a folder on the way may not be entered
    except (OSError, RuntimeError) as error:
        says = error.strerror if isinstance(error, OSError) else None
        raise ValueError(f"cannot be followed: {says or error}") from error
    if leads_out:
        raise ValueError("leaves the case's folder through a symbolic link")
    return path


def _has_link(folder: Path, name: PurePosixPath) -> bool:
    place = os.fspath(folder)
    for part in name.parts:
        place = os.path.join(place, part)
        if os.path.islink(place):
            return True
    return False


def pending_folder(folder: Path) -> Path:
    """Return where the files lie that are about to replace some of the case in `folder`; mostly there is none."""
    resolved = folder.resolve()
    return resolved.parent / f".{resolved.name}.replacing"


def replace_file(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that a reader sees the old file or the new one, never half of either.

    A file that was there keeps its mode.

    Raises:
        FileError: it is a symbolic link: what it points to is not ours to replace.
        WriteError: the file system refuses.
    """
    refuse_link(path)
    with writing(path):
        replace_whole(path, content)


def refuse_link(path: Path) -> None:
    """Refuse a file that `replace_file` would not replace.

    Raises:
        FileError: it is a symbolic link.
    """
    if path.is_symlink():
        raise FileError([at_line(path, None, "is a symbolic link; edit the file that it points to")])


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other commands of ours from replacing a file in `folder` meanwhile; waits for one that does.

    Without it, two that compared with the same old file would both replace it, and one would be lost.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        # Some file systems know no locks; what is left there is the comparison just before.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say of what the file system refuses meanwhile that `path` could not be written, whatever it was for.

    Raises:
        WriteError: instead of an OSError.
    """
    try:
        yield
    except OSError as error:
        no_place = error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
        reason = (error.strerror or type(error).__name__).lower()
        raise WriteError(
            f"Couldn't write {shown(path)}: {reason}.\n"
            + ("Check the path." if no_place else "Nothing was changed; look at the disk and the permissions."),
            exit_code=2 if no_place else 4,
        ) from error


def replace_whole(path: Path, content: bytes) -> None:
    """Do what `replace_file` does where it is already known that the file may be replaced.

    Raises:
        OSError: the file system refuses.
    """
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
