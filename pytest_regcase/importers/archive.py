"""A zip of log files: its members are written to a folder of their own, within bounds, and read from there.

Knows the zip container; knows no trial format. A member's name is a label: one that would leave the folder, or
that no folder can hold, refuses the whole archive. A zip that an importer takes itself never gets here.
"""

import stat
import unicodedata
import zipfile
from pathlib import Path, PurePosixPath
from typing import Final

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.reading import MEBIBYTE, refused
from pytest_regcase.importers.zip_members import TOTAL_LIMIT_BYTES, ZipMembers

FILES_LIMIT: Final = 20_000
RATIO_LIMIT: Final = 200
"""Logs shrink to a tenth or a fiftieth; what grows by more than this, and beyond 64 MiB, is no log."""
_RATIO_FROM_BYTES: Final = 64 * MEBIBYTE
_NAME_LIMIT: Final = 200


def unpack(path: Path, folder: Path) -> list[ImportRefused]:
    """Write the files of the zip `path` below the empty `folder`; return what was refused of single members.

    Sizes are looked at before anything is written, and again while it is inflated.

    Raises:
        ImportRefused: no zip, too many or too large members, or a name that leaves the folder (or a link does).
    """
    lost: list[ImportRefused] = []
    with ZipMembers(path) as archive:
        infos = [each for each in archive.infos if not each.is_dir()]
        names = {each.filename: _place(path, each) for each in infos}
        if len(infos) > FILES_LIMIT:
            raise refused("too-large", path, f"it holds more than {FILES_LIMIT} files", "Split it.")
        _refuse_a_bomb(path, infos)
        taken: set[Path] = set()
        for info in infos:
            target = folder / names[info.filename]
            if target in taken:
                lost.append(_lost(path, info.filename, "a member before it has the same name"))
                continue
            taken.add(target)
            try:
                content = archive.read(info.filename)
            except ImportRefused as refusal:
                if refusal.slug == "too-large":
                    raise
                lost.append(refusal)
                continue
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as file:
                    file.write(content)
            except (FileExistsError, NotADirectoryError):
                lost.append(_lost(path, info.filename, "its name is also that of a folder or another file"))
        if archive.lost is not None:
            lost.append(refused("corrupt", path, archive.lost, "Copy it again from where it was written."))
    return lost


def _place(path: Path, info: zipfile.ZipInfo) -> PurePosixPath:
    """Return the member's name as a path below a folder.

    Raises:
        ImportRefused: it leads elsewhere, or nothing can have that name.
    """
    name = info.filename
    place = PurePosixPath(name)
    leaves = place.is_absolute() or ".." in place.parts or "\\" in name or ":" in (place.parts or ("",))[0]
    odd = not place.parts or any(unicodedata.category(each) in ("Cc", "Cs") for each in name)
    long = len(place.parts) > 32 or any(len(each.encode("utf-8", "replace")) > _NAME_LIMIT for each in place.parts)
    if leaves or stat.S_ISLNK(info.external_attr >> 16):
        raise refused(
            "unsafe-member",
            path,
            f"its member {name!r} leads out of the archive (an absolute path, a parent folder or a link)",
            "Unpack it yourself where that is safe, and give the folder.",
        )
    if odd or long:
        raise refused("unsafe-member", path, f"its member {name[:80]!r} is no usable name", "Pack it again.")
    return place


def _refuse_a_bomb(path: Path, infos: list[zipfile.ZipInfo]) -> None:
    inflated = sum(each.file_size for each in infos)
    packed = path.stat().st_size
    if inflated > TOTAL_LIMIT_BYTES or (inflated > _RATIO_FROM_BYTES and inflated > RATIO_LIMIT * packed):
        raise refused(
            "too-large",
            path,
            f"its {packed:,} bytes inflate to {inflated:,}; allowed: {TOTAL_LIMIT_BYTES // MEBIBYTE} MiB, and no"
            f" more than {RATIO_LIMIT} times its size",
            "Unpack it yourself, and give the folder or one of the logs.",
        )


def _lost(path: Path, name: str, why: str) -> ImportRefused:
    return refused("corrupt", path, f"its member {name!r} is not read: {why}", "Pack it again.")
