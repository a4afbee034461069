"""Members of a zip within bounds: stored, deflated, and zstandard (method 93; zipfile has it from 3.14 on).

Knows the zip container; knows no trial format. Member names are labels, never paths. Raises `ImportRefused` only.
"""

import contextlib
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.reading import DOCUMENT_LIMIT_BYTES, MEBIBYTE, refused
from pytest_regcase.records.plurals import how_many

MEMBERS_LIMIT: Final = 200_000
TOTAL_LIMIT_BYTES: Final = 1024 * MEBIBYTE
_ZSTANDARD: Final = 93
_PIECE_BYTES: Final = 256 * 1024
_LOCAL_HEADER: Final = struct.Struct("<4s2xHH4xIIIHH")
_LOCAL_MARK: Final = b"PK\x03\x04"
_IN_ZIP64: Final = 0xFFFFFFFF


class ZipMembers:
    """The members of a zip. `names` holds each name once; of members with one name the last one counts.

    A zip whose directory is missing (cut off in copying, or the disk was full) is read by what stands before each
    member instead: those that are whole can be read, and `lost` says so.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lost: str | None = None
        """What is lost, in words, where the directory is missing."""
        self._inflated = 0
        try:
            self._file = path.open("rb")
        except OSError as error:
            why = (error.strerror or "it cannot be read").lower()
            raise refused("unreadable", path, why, "Check the path and its permissions.") from error
        try:
            infos = self._directory()
            if len(infos) > MEMBERS_LIMIT:
                raise refused("too-large", path, f"it has more than {MEMBERS_LIMIT} members", "Split the log.")
        except ImportRefused:
            self.close()
            raise
        self._infos = {info.filename: info for info in infos}

    @property
    def names(self) -> tuple[str, ...]:
        """The member names, in the order of the directory."""
        return tuple(self._infos)

    @property
    def infos(self) -> tuple[zipfile.ZipInfo, ...]:
        """What the directory says of each member: nothing of it is proven before the member is read."""
        return tuple(self._infos.values())

    def read(self, name: str) -> bytes:
        """Return one member, inflated.

        Raises:
            ImportRefused: damaged, encrypted, too large, in a method we do not read, or no zstandard at hand.
        """
        info = self._infos[name]
        if info.flag_bits & 0x1:
            raise refused("encrypted", self.path, f"its member {name!r} is encrypted", "Give an unencrypted log.")
        try:
            content = b"".join(self._bounded(info, self._pieces(info)))
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, struct.error) as error:
            raise self._damaged(name) from error
        if zlib.crc32(content) != info.CRC:
            raise self._damaged(name)
        return content

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> "ZipMembers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _directory(self) -> list[zipfile.ZipInfo]:
        try:
            # Bounded by the file's size; what it names by the limit on members.
            with zipfile.ZipFile(self._file) as archive:
                return archive.infolist()
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error) as error:
            if found := self._without_directory():
                return found
            raise refused(
                "corrupt",
                self.path,
                "it begins as a zip, but its directory is missing or damaged (a cut-off or never closed file),"
                " and no member in it is whole",
                "Copy it again from where it was written; for Inspect, try `inspect log recover`.",
            ) from error

    def _pieces(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        self._file.seek(info.header_offset)
        mark, _, method, *_, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(self._file.read(_LOCAL_HEADER.size))
        if mark != _LOCAL_MARK or method != info.compress_type:
            raise zipfile.BadZipFile("no local header where the directory says")
        self._file.seek(name_bytes + extra_bytes, os.SEEK_CUR)
        packed = _Window(self._file, info.compress_size)
        if method == zipfile.ZIP_STORED:
            while piece := packed.read(_PIECE_BYTES):
                yield piece
        elif method == zipfile.ZIP_DEFLATED:
            yield from _deflated(packed)
        elif method == _ZSTANDARD:
            yield from self._zstandard_pieces(info, packed)
        else:
            raise refused(
                "unknown-compression",
                self.path,
                f"its member {info.filename!r} is compressed with method {method}",
                "We read stored, deflated and zstandard members; write the log again with one of these.",
            )

    def _zstandard_pieces(self, info: zipfile.ZipInfo, packed: "_Window") -> Iterator[bytes]:
        decompressor, failure = _zstandard(self.path, info.filename)
        try:
            with decompressor(packed) as inflated:
                while piece := inflated.read(_PIECE_BYTES):
                    yield piece
        except failure as error:
            raise zipfile.BadZipFile(str(error)) from error

    def _without_directory(self) -> list[zipfile.ZipInfo]:
        """Return the members whose bytes are all there, by what stands before each; note what is not."""
        found: list[zipfile.ZipInfo] = []
        file, cut = self._file, None
        with contextlib.suppress(OSError, ValueError, struct.error):
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            while len(found) <= MEMBERS_LIMIT and (info := _next_member(file)) is not None:
                if file.seek(info.compress_size, os.SEEK_CUR) > size:
                    cut = info.filename
                    break
                found.append(info)
        within = f", within {cut!r}" if cut is not None else ""
        self.lost = (
            f"the file is cut off behind {how_many(len(found), 'whole member')}{within}; what came after is lost"
        )
        return found

    def _bounded(self, info: zipfile.ZipInfo, pieces: Iterator[bytes]) -> Iterator[bytes]:
        size = 0
        for piece in pieces:
            size += len(piece)
            self._inflated += len(piece)
            if size > DOCUMENT_LIMIT_BYTES or self._inflated > TOTAL_LIMIT_BYTES:
                raise refused(
                    "too-large",
                    self.path,
                    f"its member {info.filename!r} inflates to more than we read:"
                    f" {DOCUMENT_LIMIT_BYTES // MEBIBYTE} MiB each, {TOTAL_LIMIT_BYTES // MEBIBYTE} MiB in all",
                    "Write a log of the one sample.",
                )
            yield piece

    def _damaged(self, name: str) -> Exception:
        return refused(
            "corrupt",
            self.path,
            f"its member {name!r} is damaged or cut off",
            "Copy the file again from where it was written; other samples may be whole: pick one by --sample.",
        )


def _next_member(file: IO[bytes]) -> zipfile.ZipInfo | None:
    """Return the member whose local header is next, the file then standing at its first byte; None where none is.

    A member whose size stands behind it (flag bit 3: written to a pipe) ends the search: its end is not told.
    """
    offset = file.tell()
    header = file.read(_LOCAL_HEADER.size)
    if len(header) < _LOCAL_HEADER.size or not header.startswith(_LOCAL_MARK):
        return None
    _, flags, method, crc, packed, size, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)
    name, extra = file.read(name_bytes), file.read(extra_bytes)
    if flags & 0x8 or packed == _IN_ZIP64 or not name or len(extra) < extra_bytes:
        return None
    info = zipfile.ZipInfo(name.decode("utf-8" if flags & 0x800 else "cp437", "replace"))
    info.header_offset, info.flag_bits, info.compress_type = offset, flags, method
    info.CRC, info.compress_size, info.file_size = crc, packed, size
    return info


def _deflated(packed: "_Window") -> Iterator[bytes]:
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    while not inflate.eof:
        # What a piece inflates to is bounded as well: the rest of it waits.
        waiting = inflate.unconsumed_tail or packed.read(_PIECE_BYTES)
        piece = inflate.decompress(waiting, _PIECE_BYTES)
        if not waiting and not piece:
            raise zipfile.BadZipFile("it ends before its last block")
        yield piece


class _Window:
    """A file-like view of the next `size` bytes, so that a decompressor cannot read into the next member."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        piece = self._file.read(wanted)
        self._left -= len(piece)
        return piece


def _zstandard(path: Path, name: str) -> tuple[Any, type[Exception]]:
    """Return a function that opens a zstandard stream, and its error: Python 3.14's own, else the extra's."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]

        return zstd.ZstdFile, zstd.ZstdError
    except ImportError:
        pass
    try:
        import zstandard
    except ImportError as error:
        raise refused(
            "zstandard-missing",
            path,
            f"its member {name!r} is compressed with zstandard, which this Python cannot read by itself",
            "Run: pip install 'pytest-regcase[inspect]'",
        ) from error
    return (
        lambda source: zstandard.ZstdDecompressor(max_window_size=128 * MEBIBYTE).stream_reader(
            source, read_across_frames=True
        ),
        zstandard.ZstdError,
    )
