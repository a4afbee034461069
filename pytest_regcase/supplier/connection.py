"""One client connection: h11 reads requests, our own bytes go out, and how it ended is recorded once.

Knows HTTP framing and the socket; nothing of models, replies or faults. h11 only parses, each request with a new
parser: one that was shown no answer never reads the next request.
"""

import asyncio
import fcntl
import os
import socket
import struct
import sys
import termios
from collections.abc import Awaitable, Callable
from typing import Literal

import h11

from pytest_regcase.supplier.protocol import HttpRequest, PeerGone
from pytest_regcase.supplier.wire_log import WireLog

MAX_BODY_BYTES = 64 * 1024 * 1024
"""A request with a longer body is refused (413)."""
_MAX_UNREAD_BYTES = 1024 * 1024
_SO_NWRITE = 0x1024  # macOS: bytes in the send queue
_ACKNOWLEDGED_WITHIN_SECONDS = 2.0
_LOOK_AGAIN_SECONDS = 0.001


class BodyTooLarge(Exception):
    """A request body beyond `MAX_BODY_BYTES`."""


class ClientConnection(asyncio.Protocol):
    """A connection of a client to us.

    `gone` is set as soon as the peer sends its end or a reset, also while a request is held: that moment is when
    the agent let go.
    """

    def __init__(self, number: int, log: WireLog, serve: Callable[["ClientConnection"], Awaitable[None]]) -> None:
        self.number = number
        self.gone = asyncio.Event()
        self.open_request: tuple[int, int | None, float] | None = None
        """Number, step and `t` of a request that has no complete answer yet."""
        self.last_request: tuple[int | None, int | None] = (None, None)
        self.keep_alive = True
        self.http_1_0 = False
        self.takes_no_body = False
        """The last request was a HEAD, whose answer is a head alone."""
        self._log = log
        self._serve = serve
        self._parser = h11.Connection(h11.SERVER)
        self._waiting: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.Transport | None = None
        self._gone_at: float | None = None
        self._how: Literal["fin", "rst"] = "fin"
        self._closed_by_us = False
        self._unacknowledged: int | None = None
        self._logged = False
        self._unread_bytes = 0
        self._task: asyncio.Task[None] | None = None

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._log.write("accept", conn=self.number)
        self._task = asyncio.ensure_future(self._serve(self))

    def data_received(self, data: bytes) -> None:
        """Feed the parser; a client that sends on while its request is held is slowed down."""
        if self._closed_by_us:
            # Nobody reads on: a client that was refused could otherwise fill our memory.
            return
        self._parser.receive_data(data)
        self._unread_bytes += len(data)
        if self.open_request is not None and self._unread_bytes > _MAX_UNREAD_BYTES and self._transport:
            self._transport.pause_reading()
        self._wake_reader()

    def eof_received(self) -> bool:
        """Note that the peer let go; the socket stays open for what is still to be sent."""
        self._peer_is_gone("fin")
        self._parser.receive_data(b"")
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Note a reset. The socket is still open here, so this is the last moment to ask what arrived."""
        self._unacknowledged = self.sample_unacknowledged()
        self._peer_is_gone("rst" if exc is not None else "fin")
        self._writable.set()

    def pause_writing(self) -> None:
        """Make writers wait: the peer does not read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let writers go on."""
        self._writable.set()

    def _peer_is_gone(self, how: Literal["fin", "rst"]) -> None:
        if self._gone_at is None:
            self._gone_at = self._log.now()
            # A client that answers our own end with a reset does not change how we ended it.
            self._how = self._how if self._closed_by_us else how
        self.gone.set()
        self._wake_reader()

    def _wake_reader(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    # reading

    async def read_request(self) -> HttpRequest | None:
        """Return the next whole request, or None when the peer has no more.

        Raises:
            h11.RemoteProtocolError: what came in is no HTTP.
            BodyTooLarge: the body is beyond the bound.
        """
        something_came = self._renew_parser()
        if self._transport is not None:
            # What came while the request before was held may have stopped it.
            self._transport.resume_reading()
        head: h11.Request | None = None
        body: list[bytes] = []
        size = 0
        while True:
            event = self._parser.next_event() if something_came else h11.NEED_DATA
            something_came = True
            if event is h11.NEED_DATA:
                # "Expect: 100-continue" gets no interim answer: clients send the body after a moment anyway, and
                # no byte may go out on a request that is to meet silence.
                if self.gone.is_set():
                    return None
                self._waiting = asyncio.get_running_loop().create_future()
                await self._waiting
            elif type(event) is h11.Request:
                head = event
            elif type(event) is h11.Data:
                body.append(event.data)
                size += len(event.data)
                if size > MAX_BODY_BYTES:
                    raise BodyTooLarge
            elif type(event) is h11.EndOfMessage and head is not None:
                break
            else:
                return None
        self._unread_bytes = 0
        path, _, query = head.target.decode("latin-1").partition("?")
        headers = _decoded(head.headers.raw_items())
        self.http_1_0 = head.http_version < b"1.1"
        self.takes_no_body = head.method == b"HEAD"
        self.keep_alive = not self.http_1_0 and not _says_close(headers)
        return HttpRequest(head.method.decode("latin-1"), path, query, headers, b"".join(body))

    def _renew_parser(self) -> bool:
        """Begin with the next request; says whether some of it has come already, or the peer's end."""
        data, ended = self._parser.trailing_data
        self._parser = h11.Connection(h11.SERVER)
        if data:
            self._parser.receive_data(data)
        if ended:
            self._parser.receive_data(b"")
        return bool(data) or ended

    # writing

    async def write(self, data: bytes) -> None:
        """Hand `data` to the kernel, waiting while the peer does not read.

        Raises:
            PeerGone: the connection is lost.
        """
        if self._transport is None or self._transport.is_closing():
            raise PeerGone
        self._transport.write(data)
        await self._writable.wait()
        if self._transport.is_closing():
            raise PeerGone

    async def close(self, how: Literal["fin", "rst"]) -> None:
        """End the connection from our side, once the client's kernel has what was sent, and record it.

        The agent held nothing then: we let go of it. Where the client went first, its end is recorded. A client
        that acknowledges nothing is waited for two seconds, and the log says how many bytes it had not got.
        """
        transport = self._transport
        limit = self._log.now() + _ACKNOWLEDGED_WITHIN_SECONDS
        await self._wait_until_acknowledged(limit)
        if transport is None or transport.is_closing() or self.gone.is_set():
            self.end()
            return
        t = self._log.now()
        if how == "fin" and not self._say_end(transport):
            self.end()
            return
        self._closed_by_us, self._how, self.open_request = True, how, None
        if how == "rst":
            self._unacknowledged = self.sample_unacknowledged()
            self.record_end()
            self.reset_when_closed()
            transport.abort()
            return
        # The queue holds our FIN too: once it is empty, the client's kernel has that as well.
        await self._wait_until_acknowledged(limit)
        self._unacknowledged = self.sample_unacknowledged()
        self.record_end(t)
        transport.close()

    async def _wait_until_acknowledged(self, limit: float) -> None:
        while self.sample_unacknowledged() and not self.gone.is_set() and self._log.now() < limit:
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    def check_peer(self) -> None:
        """Ask the kernel whether the client let go, which the event loop may not have seen yet.

        Raises:
            PeerGone: its end or its reset is there.
        """
        if not self.gone.is_set():
            with socket.socket(fileno=os.dup(self._socket().fileno())) as same:
                try:
                    if not same.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                        self._peer_is_gone("fin")
                except BlockingIOError:
                    pass  # it is there and says nothing
                except OSError:
                    self._peer_is_gone("rst")
        if self.gone.is_set():
            raise PeerGone

    def reset_when_closed(self) -> None:
        """Have the kernel end this connection with RST, whoever closes it, the end of the process included."""
        # A linger time of zero makes close() send a reset instead of a FIN.
        self._socket().setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    @property
    def resets_when_closed(self) -> bool:
        """Say what the kernel will do, by asking it."""
        packed = self._socket().getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.calcsize("ii"))
        return bool(struct.unpack("ii", packed) == (1, 0))

    @property
    def ends(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """The client's address and port, and ours."""
        assert self._transport is not None
        return self._transport.get_extra_info("peername"), self._transport.get_extra_info("sockname")

    def _socket(self) -> socket.socket:
        assert self._transport is not None
        found: socket.socket = self._transport.get_extra_info("socket")
        return found

    async def finish(self) -> None:
        """End a connection that is not kept: say our end, wait for the peer's, then record what arrived.

        Asking right after the write whether the bytes were acknowledged would be a race.
        """
        transport = self._transport
        if transport is not None and not transport.is_closing() and not self.gone.is_set():
            if self._say_end(transport):
                self._closed_by_us = True
            await self.gone.wait()
        self.end()

    def _say_end(self, transport: asyncio.Transport) -> bool:
        """Send our FIN; False where the client's reset is there, which the event loop may not have seen."""
        try:
            transport.write_eof()
        except OSError:
            self._peer_is_gone("rst")
            return False
        return True

    def end(self) -> None:
        """Record the end, whoever brought it, and give the socket back."""
        if not self._logged and self._unacknowledged is None:
            self._unacknowledged = self.sample_unacknowledged()
        self.record_end()
        if self._transport is not None:
            self._transport.close()

    # recording

    def sample_unacknowledged(self) -> int | None:
        """Return how many bytes the peer's kernel has not acknowledged; None where that cannot be asked."""
        if self._transport is None:
            return None
        handle = self._socket()
        waiting = self._transport.get_write_buffer_size()
        try:
            if sys.platform == "darwin":
                return waiting + int(handle.getsockopt(socket.SOL_SOCKET, _SO_NWRITE))
            # On Linux TIOCOUTQ is SIOCOUTQ: bytes that were written and not acknowledged.
            queued = fcntl.ioctl(handle.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
            return waiting + int(struct.unpack("i", queued)[0])
        except (OSError, ValueError):
            return None

    def record_kill(self) -> None:
        """Write the `closed` event of a connection that the end of this process will reset, as the kernel says."""
        self._closed_by_us, self.open_request = True, None
        self._how = "rst" if self.resets_when_closed else "fin"
        self._unacknowledged = self.sample_unacknowledged()
        self.record_end()

    def record_end(self, t: float | None = None) -> None:
        """Write the `closed` event, once. While a request is open, its `t` is when the peer let go."""
        if self._logged:
            return
        self._logged = True
        by_us = self._closed_by_us or self._gone_at is None
        if t is None:
            t = self._log.now() if by_us or self._gone_at is None or self.open_request is None else self._gone_at
        request, step = self.last_request
        held = None
        if self.open_request is not None:
            request, step, since = self.open_request
            held = round(max(0.0, t - since), 4)
        self._log.write(
            "closed",
            t=t,
            conn=self.number,
            request=request,
            step=step,
            by="us" if by_us else "peer",
            how=self._how,
            held_seconds=held,
            unacknowledged=self._unacknowledged,
        )


def _decoded(headers: list[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
    # All at once: one by one it costs as much as reading the body. No line feed stands in a header.
    names = b"\n".join([name for name, _ in headers]).lower().decode("latin-1").split("\n")
    values = b"\n".join([value for _, value in headers]).decode("latin-1").split("\n")
    return tuple(zip(names, values, strict=True)) if headers else ()


def _says_close(headers: tuple[tuple[str, str], ...]) -> bool:
    words = ",".join([value for name, value in headers if name == "connection"]).lower().split(",")
    return "close" in [each.strip() for each in words]
