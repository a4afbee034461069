"""A faulted request in the hands of a fault: the one `Exchange` that there is.

Knows answers and connections. Whether the fault reached the wire is never decided here.
"""

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Literal, Protocol

from pytest_regcase.supplier.agent_clock import AgentClock
from pytest_regcase.supplier.answer import JSON, Answer
from pytest_regcase.supplier.connection import ClientConnection
from pytest_regcase.supplier.protocol import Headers, ModelRequest, Reply, Wire

if TYPE_CHECKING:
    from pytest_regcase.supplier.memory import MemoryLimit


class Host(Protocol):
    """What a fault may do to the supplier as a whole."""

    def refuse_connections(self, asking: ClientConnection) -> None:
        """Close the listener and every idle connection but `asking`, and record what a client now meets."""
        ...

    def memory_limited(self, limit: "MemoryLimit") -> None:
        """Record that the memory of this process is limited now, and tell the parent, which reads the proof."""
        ...

    def allocation_failed(self, error: str) -> None:
        """Record that an allocation failed."""
        ...


class FaultExchange:
    """Carries out what a fault asks for, and records it."""

    def __init__(
        self,
        host: Host,
        connection: ClientConnection,
        answer: Answer,
        wire: Wire,
        request: ModelRequest,
        *,
        clock: AgentClock,
        kind: str,
        number: int,
        created: int,
    ) -> None:
        self.wire = wire
        self.request = request
        self.number = number
        self._host = host
        self._clock = clock
        self._connection = connection
        self._answer = answer
        self._kind = kind
        self._created = created
        self._text: str | None = None
        self._body = bytearray()
        self._unfinished = False
        self._in_events = False

    async def hold(self) -> None:
        """Send nothing more until the client lets go."""
        await self._connection.gone.wait()

    def now(self) -> float:
        """Return the wall clock of the agent."""
        return self._clock.now()

    async def wait(self, seconds: float) -> bool:
        """Send nothing for so long, by the agent's clock; False as soon as the client lets go."""
        try:
            await asyncio.wait_for(self._connection.gone.wait(), self._clock.real_seconds(seconds))
        except TimeoutError:
            return True
        return False

    async def send(
        self, data: bytes, *, status: int | None = None, complete: bool = False, text: str | None = None
    ) -> None:
        """Send raw bytes; `complete` claims that a whole HTTP answer is out with them."""
        self._answer.status = self._answer.status if status is None else status
        self._note(text)
        await self._answer.write(data)
        self._answer.complete = complete

    async def send_head(
        self,
        status: int = 200,
        headers: Headers = (),
        *,
        content_type: str | None = JSON,
        length: int | None = None,
    ) -> None:
        """Send the head of an answer and nothing behind it; without a `length` the body is chunked."""
        self._in_events = content_type is not None and content_type.startswith("text/event-stream")
        named = [self._answer.request_id, *headers]
        await self._answer.start(status, content_type, length=length, headers=named)

    async def send_part(self, data: bytes) -> None:
        """Send a part of the body, framed as the head said."""
        await self._answer.piece(data)
        self._body += data

    async def end_body(self) -> None:
        """Say that the body is whole; the HTTP answer is complete."""
        await self._answer.finish()

    async def send_body(
        self,
        status: int,
        body: bytes,
        content_type: str | None = JSON,
        headers: Headers = (),
        *,
        text: str | None = None,
    ) -> None:
        """Answer with this body, whole."""
        self._note(text)
        await self._answer.send_whole(status, body, content_type, headers)

    async def send_error(
        self, status: int, slug: str, message: str | None = None, *, headers: Headers = ()
    ) -> None:
        """Answer with the wire's error body."""
        body = self.wire.render_error(status, slug, message, request_id=self._answer.request_id_value)
        await self._answer.send_json(status, body, headers)

    async def send_reply(self, text: str | None, *, finish: str = "stop") -> None:
        """Answer as a healthy server would, streaming where that was asked for."""
        self._note("" if text is None else text)
        reply = self._reply(text, finish)
        if self.request.streaming:
            await self._answer.send_events(self.wire.render(reply, True))
        else:
            await self._answer.send_json(200, b"".join(self.wire.render(reply, False)))

    def rendered(self, text: str | None, *, finish: str = "stop") -> tuple[bytes, ...]:
        """Return the body of a healthy answer: the events of a stream, or one JSON document."""
        return tuple(self.wire.render(self._reply(text, finish), self.request.streaming))

    async def send_unfinished(self, text: str, *, seconds_a_byte: float = 0) -> None:
        """Send an answer that has begun and nothing of its end."""
        self._unfinished = True
        reply = self._reply(text, "stop")
        if self.request.streaming:
            self._in_events = True
            await self._answer.start_events()
            parts = tuple(self.wire.render_unfinished(reply))
        else:
            whole = b"".join(self.wire.render(reply, False))
            await self._answer.start(200, JSON, length=len(whole), headers=[self._answer.request_id])
            parts = (whole[: len(whole) // 2],)
        if not seconds_a_byte:
            for each in parts:
                await self.send_part(each)
            return
        for byte in b"".join(parts):
            await self.send_part(bytes([byte]))
            if not await self.wait(seconds_a_byte):
                return

    async def send_error_event(self, status: int, slug: str, message: str | None = None) -> None:
        """Send the wire's error event in a stream, after its head where none is out yet, and the body's end."""
        if not self._in_events:
            self._in_events = True
            await self._answer.start_events()
        await self._answer.piece(self.wire.render_error_event(status, slug, message), last=True)

    async def close(self, how: Literal["fin", "rst"]) -> None:
        """End the connection from our side, once the client's kernel has what was sent."""
        self.record()
        await self._connection.close(how)

    def refuse_connections(self) -> None:
        """Close the listener for good; an answer to this request ends its connection."""
        self._connection.keep_alive = False
        self._host.refuse_connections(self._connection)

    def kill_process(self, *, reset: bool = False) -> None:
        """SIGKILL ourselves. The request was read, so the kernel sends FIN, and RST where it is told to."""
        self._connection.check_peer()
        self.record()
        if reset:
            self._connection.reset_when_closed()
            self._connection.record_kill()
        os.kill(os.getpid(), signal.SIGKILL)

    def exhaust_memory(self) -> None:
        """Allocate in a limited memory until the kernel kills us or an allocation fails."""
        # Here and not above: every other supplier starts faster without it.
        from pytest_regcase.supplier.memory import exhaust

        self._connection.check_peer()
        self.record()
        self._host.allocation_failed(exhaust(self._host.memory_limited))
        os.kill(os.getpid(), signal.SIGKILL)

    def record(self) -> None:
        """Write what was sent so far, if anything was."""
        if self._text is None and self._body:
            # What a client can read of the bytes that went out, which may be less than was to go out.
            self._text = self.wire.read_answer(bytes(self._body), self.request.streaming).text
        self._answer.record_fault(self._kind, self._text, unfinished=self._unfinished)

    def _reply(self, text: str | None, finish: str) -> Reply:
        return Reply(
            id=self._answer.reply_id,
            model=self.request.model,
            created=self._created,
            text=text,
            finish=finish,
            usage_asked=self.request.usage_asked,
        )

    def _note(self, text: str | None) -> None:
        if text is not None:
            self._text = (self._text or "") + text
