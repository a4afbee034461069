"""A faulted request in the hands of a fault: the one `Exchange` that there is.

Knows answers and connections. Whether the fault reached the wire is never decided here.
"""

import os
import signal
from typing import Literal

from pytest_regcase.supplier.answer import Answer
from pytest_regcase.supplier.connection import ClientConnection
from pytest_regcase.supplier.protocol import ModelRequest, Reply, Wire


class FaultExchange:
    """Carries out what a fault asks for, and records it."""

    def __init__(
        self,
        connection: ClientConnection,
        answer: Answer,
        wire: Wire,
        request: ModelRequest,
        *,
        kind: str,
        number: int,
        created: int,
    ) -> None:
        self.wire = wire
        self.request = request
        self.number = number
        self.text: str | None = None
        self._connection = connection
        self._answer = answer
        self._kind = kind
        self._created = created

    @property
    def complete(self) -> bool:
        """Say whether a whole HTTP answer went out, so that the connection can be used again."""
        return self._answer.complete

    async def hold(self) -> None:
        """Send nothing until the client lets go."""
        await self._connection.gone.wait()

    async def send(
        self, data: bytes, *, status: int | None = None, complete: bool = False, text: str | None = None
    ) -> None:
        """Send raw bytes; `complete` claims that a whole HTTP answer is out with them."""
        self._answer.status = self._answer.status if status is None else status
        self._note(text)
        await self._answer.write(data)
        self._answer.complete = complete

    async def send_error(self, status: int, slug: str, message: str | None = None) -> None:
        """Answer with the wire's error body."""
        await self._answer.send_json(status, self.wire.render_error(status, slug, message))

    async def send_reply(self, text: str | None, *, finish: str = "stop") -> None:
        """Answer as a healthy server would, streaming where that was asked for."""
        self._note("" if text is None else text)
        reply = Reply(
            id=f"chatcmpl-regcase-fault-{self.number:06d}",
            model=self.request.model,
            created=self._created,
            text=text,
            finish=finish,
            usage_asked=self.request.usage_asked,
        )
        if self.request.streaming:
            await self._answer.send_events(self.wire.render(reply, True))
        else:
            await self._answer.send_json(200, b"".join(self.wire.render(reply, False)))

    def close(self, how: Literal["fin", "rst"]) -> None:
        """End the connection from our side."""
        self.record()
        self._connection.close(how)

    def kill_process(self) -> None:
        """SIGKILL ourselves. The kernel closes every socket: FIN where the request was read, RST where not."""
        self.record()
        os.kill(os.getpid(), signal.SIGKILL)

    def record(self) -> None:
        """Write what was sent so far, if anything was."""
        self._answer.record("fault", fault_kind=self._kind, text=self.text)

    def _note(self, text: str | None) -> None:
        if text is not None:
            self.text = (self.text or "") + text
