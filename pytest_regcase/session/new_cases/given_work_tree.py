"""The files that an agent starts from, as a person gives them: plain files, all or none, no secret in them.

Knows folders and files; knows no trial. Must not print.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_regcase.errors import UsageRefused
from pytest_regcase.redaction import redact, secrets_in

WORK_TREE_LIMIT_BYTES: Final = 16 * 1024 * 1024
WORK_TREE_LIMIT_FILES: Final = 5_000


@dataclass(frozen=True)
class WorkTree:
    """What goes into ``recorded/work_tree``."""

    files: dict[str, bytes]
    executable: tuple[str, ...]
    warnings: tuple[str, ...]


def read_work_tree(folder: Path) -> WorkTree:
    """Return the plain files of `folder` by relative name, as they are.

    Raises:
        UsageRefused: no such folder, no plain file, too large, a part that cannot be read, or a file holds what
            looks like a secret.
    """
    if not folder.is_dir():
        raise UsageRefused(f"Couldn't take the work tree {folder}: there is no such folder.\nCheck --work-tree.")
    try:
        return _taken_work_tree(folder)
    except OSError as error:
        raise UsageRefused(
            f"Couldn't take the work tree {folder}: {(error.strerror or str(error)).lower()}: {error.filename}.\n"
            "A case holds all of it, or none: check the permissions."
        ) from error


def _taken_work_tree(folder: Path) -> WorkTree:
    files: dict[str, bytes] = {}
    executable: list[str] = []
    left_out = size = 0
    for path in _below(folder):
        if path.is_symlink() or not path.is_file():
            left_out += 1
            continue
        size += path.stat().st_size
        if size > WORK_TREE_LIMIT_BYTES or len(files) >= WORK_TREE_LIMIT_FILES:
            raise UsageRefused(
                f"Couldn't take the work tree {folder}: it is larger than {WORK_TREE_LIMIT_BYTES // 1024**2} MiB"
                f" or {WORK_TREE_LIMIT_FILES} files.\nGive a folder with the files that the task needs."
            )
        name = path.relative_to(folder).as_posix()
        with path.open("rb") as opened:
            files[name] = opened.read(WORK_TREE_LIMIT_BYTES + 1)
        if os.access(path, os.X_OK):
            executable.append(name)
        _refuse_secrets(folder, name, files[name])
    if not files:
        raise UsageRefused(f"Couldn't take the work tree {folder}: it holds no plain file.\nCheck --work-tree.")
    warnings = []
    if left_out:
        warnings.append(f"{left_out} links and special files of the work tree are left out")
    return WorkTree(files, tuple(executable), tuple(warnings))


def _below(folder: Path) -> Iterator[Path]:
    def stop(error: OSError) -> None:
        raise error  # os.walk would leave the folder out and say nothing

    for place, folders, names in os.walk(folder, onerror=stop):
        folders[:] = sorted(each for each in folders if each != ".git")
        linked = [each for each in folders if (Path(place) / each).is_symlink()]
        yield from (Path(place) / each for each in sorted([*names, *linked]) if each != ".git")


def _refuse_secrets(folder: Path, name: str, content: bytes) -> None:
    """Work-tree files are copied as they are, so a secret in them cannot be replaced on the way."""
    kinds = secrets_in(name)
    if kinds:
        name = f"the name {redact(name)[0]}"
    elif b"\0" not in content[:8192]:
        kinds = secrets_in(content.decode("utf-8", "replace"))
    if kinds:
        shown = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        raise UsageRefused(
            f"Couldn't take the work tree {folder}: {name} holds what looks like a secret ({shown}), and files of"
            " a work tree are copied unchanged.\nTake it out, or put a made-up value in its place, and try again.",
            slug="secret-in-work-tree",
        )
