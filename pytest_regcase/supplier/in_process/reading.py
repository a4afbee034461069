"""What goes into a callable and comes out of it, in the words of the wires.

Arguments are read as a request of one wire, as far as they look like one; replies that are objects of a client
library, or the JSON of an API, are read by that wire; a text stands for itself.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_regcase.errors import UsageRefused
from pytest_regcase.supplier.protocol import HttpRequest, Message, ModelRequest, UpstreamReply, Wire

ReadText = Callable[[Any], str | None]


class CallReader:
    """Reads the calls of one supplier. `read` returns the text of a reply, or of a part of a stream."""

    def __init__(self, wire: Wire, read: ReadText | None) -> None:
        self._wire = wire
        self._read = read

    def request(self, args: Sequence[Any], kwargs: Mapping[str, Any], *, streaming: bool) -> ModelRequest:
        """Return what the arguments ask for; one without messages where they do not look like a request."""
        body: dict[str, Any] = {"model": "in-process", "max_tokens": 1, **kwargs}
        key = "input" if self._wire.name == "openai-responses" else "messages"
        if args and key not in body:
            body[key] = args[0]
        if isinstance(body.get(key), str):
            body[key] = [{"role": "user", "content": body[key]}]
        try:
            content = json.dumps(body, default=_plain).encode()
        except (TypeError, ValueError, RecursionError):
            content = b""
        parsed = self._wire.parse(HttpRequest("POST", self._wire.paths[0], "", (), content))
        if isinstance(parsed, ModelRequest):
            return parsed
        asked = "\n".join(each for each in (*args, *kwargs.values()) if isinstance(each, str))
        return ModelRequest(self._wire.name, "in-process", streaming, (Message("user", asked),))

    def reply(self, value: Any) -> UpstreamReply:
        """Return what a whole reply says.

        Raises:
            UsageRefused: it is no text, and nothing that the wire's API sends.
        """
        if self._read is not None:
            return UpstreamReply(text=self._read(value) or "")
        if isinstance(value, str):
            return UpstreamReply(text=value)
        said = self._wire.read_answer(_json(value), False)
        if not said.has_choice and said.text is None and not said.tool_calls:
            raise self._unreadable(value)
        return said

    def parts(self, parts: Sequence[Any], *, whole: bool) -> UpstreamReply:
        """Return what the parts of a stream say so far.

        Raises:
            UsageRefused: they are `whole`, and are no texts and no events of the wire's API.
        """
        if self._read is not None:
            return UpstreamReply(text="".join(filter(None, map(self._read, parts))))
        if all(isinstance(each, str) for each in parts):
            return UpstreamReply(text="".join(parts))
        events = b"".join(b"data: " + _json(each) + b"\n\n" for each in parts)
        said = self._wire.read_answer(events, True)
        if whole and not said.has_choice and said.text is None and not said.tool_calls:
            raise self._unreadable(parts[0])
        return said

    def _unreadable(self, value: Any) -> UsageRefused:
        return UsageRefused(
            f"Couldn't read what the supplier gave: it is a {type(value).__name__}, no text and no answer of"
            f" {self._wire.name}.\nPass read=, a function that returns its text, or wire=, whose answers it gives."
        )


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, default=_plain).encode()
    except (TypeError, ValueError, RecursionError):
        return b""


def _plain(value: Any) -> Any:
    """Return the plain data of a client library's object."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else str(value)
