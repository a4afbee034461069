"""Replaces several files of one case as one: no reader takes a half-replaced case for a whole one.

What replaces them is written to a folder beside the case's, checked together with what stays, and then moved
in, the case file last. From the moment that the folder has its final name, the move can be finished by whoever
comes next.
"""

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from pytest_regcase.case_files.loading import LoadedCase, check_case
from pytest_regcase.case_files.places_on_disk import (
    CASE_FILE,
    alone,
    pending_folder,
    refuse_link,
    replace_whole,
    writing,
)
from pytest_regcase.errors import FileError, UsageRefused
from pytest_regcase.records.canonical import digest
from pytest_regcase.toml_lines import parse_toml, shown

_LIST: Final = "replaced.json"
_FILES: Final = "files"
_VIEW: Final = "view"


def replace_files(folder: Path, contents: Mapping[str, bytes], before: Mapping[str, str]) -> LoadedCase:
    """Replace files of the case in `folder`, its case file among them, and return the case as it is then.

    `contents` and `before` (the digest of each file as it was read) are by name relative to `folder`.

    Raises:
        FileError: the case would not be right with them; nothing was changed.
        UsageRefused: a file was changed meanwhile, or somebody else is replacing files of this case.
        WriteError: the file system refuses.
    """
    for name in contents:
        refuse_link(folder / name)
    place = folder.resolve()
    draft = place.parent / f".{place.name}.{secrets.token_hex(4)}.tmp"
    try:
        with writing(folder):
            draft.mkdir()
            for name, content in contents.items():
                _write(draft / _FILES, name, content, like=folder / name)
            new = {name: digest(content) for name, content in contents.items()}
            listed = {name: {"before": before[name], "after": new[name]} for name in contents}
            replace_whole(draft / _LIST, json.dumps(listed).encode())
            loaded = _checked(folder, draft, contents)
            with alone(folder):
                for name in contents:
                    if digest((folder / name).read_bytes()) != before[name]:
                        raise UsageRefused(
                            f"Couldn't edit {shown(folder / name)}: it was changed meanwhile.\nTry again."
                        )
                _claim(draft, folder)
                finish_replacing(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return LoadedCase(path=folder / CASE_FILE, folder=folder, case=loaded.case)


def is_half_replaced(folder: Path) -> bool:
    """Say whether a replacement of files of this case was cut short."""
    return pending_folder(folder).is_dir()


def finish_replacing(folder: Path) -> tuple[str, ...]:
    """Move in what is still to be moved in, and return the names of all files of that replacement.

    Raises:
        UsageRefused: one of the files is neither what it was nor what it was to become.
        WriteError: the file system refuses; it can be finished later.
    """
    pending = pending_folder(folder)
    with writing(folder):
        try:
            listed: dict[str, dict[str, str]] = json.loads((pending / _LIST).read_bytes())
            names = sorted(listed, key=lambda name: (name == CASE_FILE, name))
            waiting = [name for name in names if (pending / _FILES / name).is_file()]
            expected = [(name, {listed[name]["after"]}) for name in names if name not in waiting]
            expected += [(name, {listed[name]["before"], listed[name]["after"]}) for name in waiting]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _odd(pending, f"{_LIST} in it is damaged") from error
        for name, digests in expected:
            refuse_link(folder / name)
            if not (folder / name).is_file() or digest((folder / name).read_bytes()) not in digests:
                raise _odd(pending, f"{shown(folder / name)} was changed since")
        for name in waiting:
            os.replace(pending / _FILES / name, folder / name)
    shutil.rmtree(pending, ignore_errors=True)
    return tuple(names)


def _checked(folder: Path, draft: Path, contents: Mapping[str, bytes]) -> LoadedCase:
    """Check the case as it will be, in a folder of links to what stays."""
    view = draft / _VIEW
    shutil.copytree(folder, view, symlinks=True, copy_function=_link)
    for name, content in contents.items():
        (view / name).unlink()
        _write(view, name, content, like=folder / name)
    toml = parse_toml(folder / CASE_FILE, contents[CASE_FILE])
    try:
        loaded = check_case(toml, view)
    except FileError as error:
        raise type(error)([each.replace(shown(view), shown(folder)) for each in error.problems]) from None
    shutil.rmtree(view)
    return loaded


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target)


def _write(folder: Path, name: str, content: bytes, *, like: Path) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_whole(path, content)
    with suppress(OSError):
        path.chmod(like.stat().st_mode & 0o7777)


def _claim(draft: Path, folder: Path) -> None:
    try:
        # POSIX renames a folder onto an empty one, and onto no other: whoever was faster goes first.
        draft.rename(pending_folder(folder))
    except OSError as error:
        if not pending_folder(folder).exists():
            raise
        raise UsageRefused(
            f"Couldn't edit the case {shown(folder)}: another edit of it is going on, or was cut short.\n"
            "Try again; `regcase redact` finishes one that was cut short."
        ) from error


def _odd(pending: Path, why: str) -> UsageRefused:
    return UsageRefused(
        f"Couldn't finish an edit that was cut short: {why}.\n"
        f"Look at {shown(pending)}: it holds what was to replace the files. Remove it to give that edit up; what"
        " was to go is then still in the files that it had not reached.",
        slug="half-replaced",
    )
