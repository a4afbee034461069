"""Who listens on the supplier's port, on each of its addresses, and who is connected to it.

Knows sockets and connections; nothing of requests, replies or faults.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from pytest_regcase.supplier.connection import ClientConnection
from pytest_regcase.supplier.port import HOST, bound_socket, try_connect
from pytest_regcase.supplier.wire_log import WireLog

_SETTLE_ROUNDS = 20
_SETTLE_SECONDS = 0.01


class Listening:
    """The listeners, one an address, and their open connections, each of which is served by `serve`."""

    def __init__(
        self,
        addresses: Sequence[str],
        port: int,
        log: WireLog,
        serve: Callable[[ClientConnection], Awaitable[None]],
    ) -> None:
        self.port = port
        self._addresses = tuple(addresses)
        self._log = log
        self._serve = serve
        self._servers: list[asyncio.Server] = []
        self._open: dict[int, ClientConnection] = {}
        self._accepted = 0

    async def start(self) -> float:
        """Listen on the port that the parent holds, on every address; returns the `t` of that moment."""
        loop = asyncio.get_running_loop()
        for each in self._addresses:
            bound = bound_socket(self.port, each)
            self._servers.append(await loop.create_server(self._accept, sock=bound, backlog=128))
        beside = [each for each in self._addresses if each != HOST]
        return self._log.write("listen", beside_loopback=beside or None)

    def _accept(self) -> ClientConnection:
        self._accepted += 1
        connection = ClientConnection(self._accepted, self._log, self._serve)
        self._open[connection.number] = connection
        return connection

    def forget(self, connection: ClientConnection) -> None:
        """Drop a connection that has ended."""
        self._open.pop(connection.number, None)

    def refuse(self, asking: ClientConnection) -> None:
        """Close every listener and idle connection but `asking`; recorded with what a connect meets then."""
        if not any(each.is_serving() for each in self._servers):
            return
        self._close()
        for connection in tuple(self._open.values()):
            if connection is not asking and connection.open_request is None:
                connection.end()
        self._log.write("refusing", conn=asking.number, connect=try_connect(self.port, self._addresses))

    async def stop(self) -> None:
        """Close the listeners and record how every connection stood.

        Ends that are on their way arrive first, so that they count as the peer's, and acknowledgements too.
        """
        self._close()
        for _ in range(_SETTLE_ROUNDS):
            await asyncio.sleep(_SETTLE_SECONDS)
            if not any(each.sample_unacknowledged() for each in tuple(self._open.values())):
                break
        for connection in tuple(self._open.values()):
            connection.end()

    def _close(self) -> None:
        for each in self._servers:
            each.close()
