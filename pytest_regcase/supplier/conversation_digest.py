"""What makes two requests the same conversation, computed from what came since the request before.

Knows canonical messages only; no sockets, no clock, no wire. Standard library only, since the supplier's child
process imports it.
"""

import hashlib
import json

from pytest_regcase.supplier.protocol import Message


class ConversationDigests:
    """Digests the messages of one request after the other, whatever wire and options they come with.

    Agents send the whole conversation every time, so a request that goes on from the one before costs its new
    messages only. The digest never depends on what came before. Not for several threads at once.
    """

    def __init__(self) -> None:
        self._messages: tuple[Message, ...] = ()
        self._state = _empty()

    def of(self, messages: tuple[Message, ...]) -> str:
        """Return the SHA-256 of all messages as one JSON array, such as ``sha256:9f86…``."""
        known = len(self._messages)
        if messages[:known] != self._messages:
            known, self._state = 0, _empty()
        if new := messages[known:]:
            self._state.update((b", " if known else b"") + _members(new))
        self._messages = messages
        whole = self._state.copy()
        whole.update(b"]")
        return "sha256:" + whole.hexdigest()


def _empty() -> "hashlib._Hash":
    return hashlib.sha256(b"[")


def _members(messages: tuple[Message, ...]) -> bytes:
    """Return what stands between the brackets of their JSON array; a call is an array of its fields too."""
    rows = [[each.role, each.text, each.tool_calls, each.tool_call_id] for each in messages]
    return json.dumps(rows)[1:-1].encode()
