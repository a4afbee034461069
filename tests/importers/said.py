"""Everything that a source says, so that a test can tell what was invented."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.importers.zips import read_members


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


def source_text(path: Path) -> str:
    """Return everything that a source says, with texts unescaped."""
    content = path.read_bytes()
    contents = [each for _, each in read_members(path)] if content.startswith(b"PK") else [content]
    said = []
    for each in contents:
        is_lines = each.startswith(b'{"kind"')
        for document in each.split(b"\n") if is_lines else [each]:
            with contextlib.suppress(ValueError):
                for outer in texts(json.loads(document)):
                    said.append(outer)
                    with contextlib.suppress(ValueError):
                        said.extend(texts(json.loads(outer)))
    return "\n".join(said)
