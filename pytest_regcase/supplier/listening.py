"""Who listens on the supplier's port, and who is connected to it.

Knows sockets and connections; nothing of requests, replies or faults.
"""

import asyncio
from collections.abc import Awaitable, Callable

from pytest_regcase.supplier.connection import ClientConnection
from pytest_regcase.supplier.port import bound_socket, try_connect
from pytest_regcase.supplier.wire_log import WireLog

_SETTLE_ROUNDS = 20
_SETTLE_SECONDS = 0.01


class Listening:
    """The listener and its open connections, each of which is served by `serve`."""

    def __init__(self, port: int, log: WireLog, serve: Callable[[ClientConnection], Awaitable[None]]) -> None:
        self.port = port
        self._log = log
        self._serve = serve
        self._server: asyncio.Server | None = None
        self._open: dict[int, ClientConnection] = {}
        self._accepted = 0

    async def start(self) -> float:
        """Listen on the port that the parent holds; returns the `t` of that moment."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, sock=bound_socket(self.port), backlog=128)
        return self._log.write("listen")

    def _accept(self) -> ClientConnection:
        self._accepted += 1
        connection = ClientConnection(self._accepted, self._log, self._serve)
        self._open[connection.number] = connection
        return connection

    def forget(self, connection: ClientConnection) -> None:
        """Drop a connection that has ended."""
        self._open.pop(connection.number, None)

    def refuse(self, asking: ClientConnection) -> None:
        """Close the listener and every idle connection but `asking`; recorded with what a connect meets then."""
        assert self._server is not None
        if not self._server.is_serving():
            return
        self._server.close()
        for connection in tuple(self._open.values()):
            if connection is not asking and connection.open_request is None:
                connection.end()
        self._log.write("refusing", conn=asking.number, connect=try_connect(self.port))

    async def stop(self) -> None:
        """Close the listener and record how every connection stood.

        Ends that are on their way arrive first, so that they count as the peer's, and acknowledgements too.
        """
        assert self._server is not None
        self._server.close()
        for _ in range(_SETTLE_ROUNDS):
            await asyncio.sleep(_SETTLE_SECONDS)
            if not any(each.sample_unacknowledged() for each in tuple(self._open.values())):
                break
        for connection in tuple(self._open.values()):
            connection.end()
