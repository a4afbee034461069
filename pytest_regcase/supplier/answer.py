"""One HTTP answer on its way out: framing, and the count and digest of every byte.

Knows HTTP/1.1 framing and the wire log; nothing of what the body means.
"""

import hashlib
from collections.abc import Iterable
from functools import cache
from http import HTTPStatus
from typing import Any

from pytest_regcase.supplier.connection import ClientConnection
from pytest_regcase.supplier.protocol import Call, Headers
from pytest_regcase.supplier.wire_log import WireLog

JSON = "application/json"
EVENT_STREAM = "text/event-stream; charset=utf-8"
_END = b"0\r\n\r\n"
"""The last chunk of a body (RFC 9112, section 7.1)."""


class Answer:
    """Writes one answer and records it with one `sent` event, also when it broke off in the middle."""

    def __init__(
        self,
        connection: ClientConnection,
        log: WireLog,
        *,
        request: int,
        step: int | None,
        reply_id: str = "",
        request_id_header: str = "x-request-id",
    ) -> None:
        self.request = request
        self.reply_id = reply_id
        """What a model reply in this answer goes by."""
        self.request_id_value = f"req_regcase_{request:06d}"
        self._request_id_header = request_id_header
        self.bytes_sent = 0
        self.parts = 0
        """Parts of a body that went out; a head is none."""
        self.smallest_part: int | None = None
        """Bytes that the smallest of them took on the wire."""
        self.first_byte: float | None = None
        """`t` at which the first byte was handed over."""
        self.complete = False
        self.status: int | None = None
        self._connection = connection
        self._log = log
        self._step = step
        self._digest = hashlib.sha256()
        self._chunked = False
        self._recorded = False

    async def write(self, data: bytes) -> None:
        """Send raw bytes.

        Raises:
            PeerGone: the client is not there any more.
        """
        if self.first_byte is None:
            self.first_byte = self._log.now()
        await self._connection.write(data)
        self.bytes_sent += len(data)
        self._digest.update(data)

    async def start(
        self,
        status: int,
        content_type: str | None,
        *,
        length: int | None = None,
        headers: Headers = (),
        body: bytes = b"",
    ) -> None:
        """Send the head, and `body` in the same write; without a `length` the body goes out in chunks."""
        self.status = status
        lines = [f"HTTP/1.1 {status} {_phrase(status)}"]
        if content_type is not None:
            lines.append(f"Content-Type: {content_type}")
        if length is not None:
            lines.append(f"Content-Length: {length}")
        elif self._connection.http_1_0:
            # HTTP/1.0 has no chunks: the end of the connection ends the body.
            self._connection.keep_alive = False
        else:
            self._chunked = True
            lines.append("Transfer-Encoding: chunked")
        lines += [f"{name}: {value}" for name, value in headers]
        if not self._connection.keep_alive:
            lines.append("Connection: close")
        if self._connection.takes_no_body:
            body, self._chunked = b"", False
        await self.write("\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body)
        if body:
            self._count_part(len(body))

    async def piece(self, data: bytes, *, last: bool = False) -> None:
        """Send one part of the body, which a client that asked for the head alone does not get.

        The end of the body goes out with the `last` one, in one write: a client may let go as soon as it has read
        that part, and an end sent after it would never be acknowledged.
        """
        if data and not self._connection.takes_no_body:
            framed = b"%x\r\n%s\r\n" % (len(data), data) if self._chunked else data
            await self.write(framed + _END if last and self._chunked else framed)
            self._count_part(len(framed))
            self.complete = last
        elif last:
            await self.finish()

    async def finish(self) -> None:
        """Send the end of the body, unless it is out; the answer is complete."""
        if self._chunked and not self.complete:
            await self.write(_END)
        self.complete = True

    async def send_whole(self, status: int, body: bytes, content_type: str | None, headers: Headers = ()) -> None:
        """Send a whole answer with one write."""
        await self.start(status, content_type, length=len(body), headers=headers, body=body)
        self.complete = True

    async def send_json(self, status: int, body: bytes, headers: Headers = ()) -> None:
        """Send a whole JSON answer of an API with one write."""
        await self.send_whole(status, body, JSON, [self.request_id, *headers])

    async def start_events(self) -> None:
        """Send the head of an event stream."""
        await self.start(200, EVENT_STREAM, headers=[("Cache-Control", "no-cache"), self.request_id])

    async def send_events(self, events: Iterable[bytes]) -> None:
        """Send a whole event stream, event by event."""
        await self.start_events()
        held_back = b""
        for event in events:
            await self.piece(held_back)
            held_back = event
        await self.piece(held_back, last=True)

    @property
    def request_id(self) -> tuple[str, str]:
        """The header by which an API names the request."""
        return self._request_id_header, self.request_id_value

    def _count_part(self, size: int) -> None:
        self.parts += 1
        self.smallest_part = size if self.smallest_part is None else min(self.smallest_part, size)

    def record_fault(self, kind: str, text: str | None, *, unfinished: bool) -> None:
        """Write the `sent` event of a fault, with what shows its course; none where no byte went out."""
        if self.bytes_sent:
            self.record(
                "fault",
                fault_kind=kind,
                text=text,
                tool_calls=(),
                parts=self.parts,
                smallest_part=self.smallest_part,
                first_byte=self.first_byte,
                unfinished=unfinished or None,
            )

    def record(
        self,
        origin: str,
        *,
        fault_kind: str | None = None,
        text: str | None = None,
        tool_calls: Iterable[Call] = (),
        **facts: Any,
    ) -> None:
        """Write the `sent` event, once. There is none where no byte went out and no further fact is known."""
        if self._recorded or not (self.bytes_sent or facts):
            return
        self._recorded = True
        event: dict[str, Any] = {
            "conn": self._connection.number,
            "request": self.request,
            "step": self._step,
            "from": origin,
            "fault_kind": fault_kind,
            "status": self.status,
            "bytes": self.bytes_sent,
            "digest": "sha256:" + self._digest.hexdigest(),
            "complete": self.complete,
            "text": text,
            "tool_calls": [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in tool_calls] or None,
        }
        self._log.write("sent", **event, **facts)


@cache
def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
