"""Everything that a source says, so that a test can tell what was invented."""

import contextlib
import html
import json
import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_regcase.importers.reading import moment
from pytest_regcase.importers.zip_members import ZipMembers

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_IN_WORDS = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?")


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def documents(content: bytes) -> list[bytes]:
    """Return the one JSON document, or the lines."""
    try:
        json.loads(content)
    except ValueError:
        return content.split(b"\n")
    return [content]


def source_text(path: Path) -> str:
    """Return everything that a file or folder says, names included, with texts unescaped."""
    if path.is_dir():
        files = [each for each in sorted(path.rglob("*")) if each.is_file()]
        return "\n".join(f"{each.relative_to(path.parent).as_posix()}\n{source_text(each)}" for each in files)
    content = path.read_bytes()
    contents = [content]
    if content.startswith(b"PK"):
        with ZipMembers(path) as archive:
            contents = [archive.read(name) for name in archive.names]
    said = [path.name]
    for each in contents:
        raw = each.decode("utf-8", "replace")
        said.append(html.unescape(raw) if raw.startswith("<") else raw)
        for document in documents(each):
            with contextlib.suppress(ValueError):
                for outer in texts(json.loads(document)):
                    said.append(outer)
                    with contextlib.suppress(ValueError):
                        said.extend(texts(json.loads(outer)))
    return "\n".join(said)


@lru_cache(maxsize=8)
def times_in(said: str, *, bare_times_are_utc: bool = False) -> frozenset[datetime]:
    """Return each point in time that a source names: in ISO with an offset, or in s, ms or ns since 1970."""
    words = _IN_WORDS.findall(said)
    found = {moment(each) for each in words}
    if bare_times_are_utc:
        found |= {moment(f"{each}+00:00") for each in words}
    for line in said.splitlines():
        if _NUMBER.fullmatch(line):
            found |= {moment(float(line) / unit) for unit in (1, 1000, 10**9)}
    return frozenset(each for each in found if each is not None)
