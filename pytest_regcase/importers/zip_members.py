"""Members of a zip within bounds: stored, deflated, and zstandard (method 93; zipfile has it from 3.14 on).

Knows the zip container; knows no trial format. Member names are labels, never paths. Raises `ImportRefused` only.
"""

import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from pytest_regcase.importers.reading import DOCUMENT_LIMIT_BYTES, MEBIBYTE, refused

MEMBERS_LIMIT: Final = 200_000
TOTAL_LIMIT_BYTES: Final = 1024 * MEBIBYTE
_ZSTANDARD: Final = 93
_PIECE_BYTES: Final = 256 * 1024
_LOCAL_HEADER: Final = struct.Struct("<4s22xHH")


class ZipMembers:
    """An open zip. `names` holds each name once; of members with one name the last one counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._inflated = 0
        try:
            # The directory itself is bounded by the file's size; its entries by the limit below.
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error) as error:
            raise refused(
                "corrupt",
                path,
                "it begins as a zip, but its directory is missing or damaged (a cut-off or never closed file)",
                "Copy it again from where it was written; for Inspect, try `inspect log recover`.",
            ) from error
        infos = self._zip.infolist()
        if len(infos) > MEMBERS_LIMIT:
            self._zip.close()
            raise refused("too-large", path, f"it has more than {MEMBERS_LIMIT} members", "Split the log.")
        self._infos = {info.filename: info for info in infos}

    @property
    def names(self) -> tuple[str, ...]:
        """The member names, in the order of the directory."""
        return tuple(self._infos)

    def read(self, name: str) -> bytes:
        """Return one member, inflated.

        Raises:
            ImportRefused: damaged, encrypted, too large, in a method we do not read, or no zstandard at hand.
        """
        info = self._infos[name]
        if info.flag_bits & 0x1:
            raise refused("encrypted", self.path, f"its member {name!r} is encrypted", "Give an unencrypted log.")
        try:
            # Closed at once when a limit stops it: a generator that is left alone keeps its file open.
            with closing(self._pieces(info)) as pieces:
                content = b"".join(self._bounded(info, pieces))
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, struct.error) as error:
            raise self._damaged(name) from error
        except NotImplementedError as error:
            raise refused(
                "unknown-compression",
                self.path,
                f"its member {name!r} is compressed with method {info.compress_type}",
                "We read stored, deflated and zstandard members; write the log again with one of these.",
            ) from error
        if zlib.crc32(content) != info.CRC:
            raise self._damaged(name)
        return content

    def close(self) -> None:
        """Close the file."""
        self._zip.close()

    def __enter__(self) -> "ZipMembers":
        return self

    def __exit__(self, *_: "type[BaseException] | BaseException | TracebackType | None") -> None:
        self.close()

    def _pieces(self, info: zipfile.ZipInfo) -> Generator[bytes, None, None]:
        if info.compress_type == _ZSTANDARD:
            yield from self._zstandard_pieces(info)
            return
        with self._zip.open(info) as member:
            while piece := member.read(_PIECE_BYTES):
                yield piece

    def _zstandard_pieces(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        decompressor, failure = _zstandard(self.path, info.filename)
        with self.path.open("rb") as file:
            file.seek(info.header_offset)
            mark, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
            if mark != b"PK\x03\x04":
                raise zipfile.BadZipFile("no local header where the directory says")
            file.seek(name_bytes + extra_bytes, 1)
            try:
                with decompressor(_Window(file, info.compress_size)) as inflated:
                    while piece := inflated.read(_PIECE_BYTES):
                        yield piece
            except failure as error:
                raise zipfile.BadZipFile(str(error)) from error

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
