"""What every wire writes alike: JSON, the events of a stream, a text in pieces, a rough count of tokens.

Knows no protocol. Standard library only, since the supplier's child process imports it.
"""

import json
from collections.abc import Iterator
from typing import Any

from pytest_regcase.supplier.protocol import Reply

_PIECE_CHARACTERS = 24
_compact = json.JSONEncoder(separators=(",", ":")).encode


def as_json(value: Any) -> bytes:
    """Return `value` as compact JSON; ASCII only, so that no text can break a line of a stream."""
    return _compact(value).encode()


def event(data: Any, name: str | None = None) -> bytes:
    """Return one server-sent event."""
    head = b"" if name is None else f"event: {name}\n".encode()
    return head + b"data: " + as_json(data) + b"\n\n"


def pieces(text: str) -> Iterator[str]:
    """Yield `text` in the pieces that a stream sends; nothing for an empty one."""
    yield from (text[start : start + _PIECE_CHARACTERS] for start in range(0, len(text), _PIECE_CHARACTERS))


def written_tokens(reply: Reply) -> int:
    """Return a rough count of the reply's tokens: four characters each, and at least one where there is any."""
    return rough_tokens(
        sum(len(each.name) + len(each.arguments) for each in reply.tool_calls) + len(reply.text or "")
    )


def rough_tokens(characters: int) -> int:
    """Return how many tokens so many characters may be."""
    return characters // 4 + (characters > 0)
