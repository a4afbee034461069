"""Writes zips that the standard library cannot: zstandard members, damaged ones, two of one name."""

import struct
import zipfile
import zlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

STORED, DEFLATED, ZSTANDARD = 0, 8, 93

Member = tuple[str, bytes]


def write_zip(
    path: Path, members: Sequence[Member], *, method: int = ZSTANDARD, damage: str | None = None
) -> Path:
    """Write `members` in order. `damage` names a member whose bytes are changed after they were counted."""
    body, directory = b"", b""
    for name, content in members:
        packed, checksum = _packed(content, method)
        if name == damage:
            packed = packed[:-4] + bytes(4)
        encoded = name.encode()
        facts = struct.pack(
            "<HHHHHIIIHH",
            20,
            0x800,
            method,
            0,
            0x21,
            checksum,
            len(packed),
            len(content),
            len(encoded),
            0,
        )
        directory += b"PK\x01\x02" + struct.pack("<H", 20) + facts
        directory += struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + encoded
        body += b"PK\x03\x04" + facts + encoded + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(body), 0)
    path.write_bytes(body + directory + b"PK\x05\x06" + end)
    return path


def read_members(path: Path) -> list[Member]:
    """Return the members of an `.eval` as inspect writes it (all zstandard)."""
    import zstandard

    found: list[Member] = []
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            names, extra = struct.unpack("<HH", content[info.header_offset + 26 : info.header_offset + 30])
            start = info.header_offset + 30 + names + extra
            packed = content[start : start + info.compress_size]
            if info.compress_type == ZSTANDARD:
                inflated = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
            else:
                inflated = archive.read(info)
            found.append((info.filename, inflated))
    return found


@lru_cache(maxsize=4)
def _packed(content: bytes, method: int) -> tuple[bytes, int]:
    """Return the packed bytes and the checksum; kept, so that a huge zip of equal members is made quickly."""
    checksum = zlib.crc32(content)
    if method == STORED:
        return content, checksum
    if method == DEFLATED:
        deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
        return deflate.compress(content) + deflate.flush(), checksum
    import zstandard

    return zstandard.ZstdCompressor(level=9).compress(content), checksum
