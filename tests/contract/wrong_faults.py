"""Faults that do something else than their kind declares. The supplier's child process loads them."""

import contextlib
import os
import select
import socket
from typing import Any, ClassVar

from pytest_regcase.supplier.protocol import Exchange, NoSettings


class _Wrong:
    kind: ClassVar[str] = "wrong"
    settings_model: ClassVar[type[Any]] = NoSettings

    def __init__(self, settings: NoSettings) -> None: ...


class Closes(_Wrong):
    """Ends the connection with FIN."""

    async def inject(self, exchange: Exchange) -> None:
        await exchange.close("fin")


class Resets(_Wrong):
    """Ends the connection with RST."""

    async def inject(self, exchange: Exchange) -> None:
        await exchange.close("rst")


class SendsAHead(_Wrong):
    """Sends a head and holds."""

    async def inject(self, exchange: Exchange) -> None:
        await exchange.send_head()
        await exchange.hold()


class Stalls(_Wrong):
    """Sends the beginning of an answer and holds."""

    async def inject(self, exchange: Exchange) -> None:
        await exchange.send_unfinished("The beginning of an answer")
        await exchange.hold()


class Answers(_Wrong):
    """Answers at once, in good health."""

    async def inject(self, exchange: Exchange) -> None:
        await exchange.send_reply("Here you are.")


class Kills(_Wrong):
    """Kills the process, with memory left and the request read."""

    async def inject(self, exchange: Exchange) -> None:
        exchange.kill_process()


class KillsAndLeavesAListener(_Wrong):
    """Leaves a process behind that has the listener too: connects go on after the kill."""

    async def inject(self, exchange: Exchange) -> None:
        _leave_a_process_behind()
        exchange.kill_process()


class RefusesAndLeavesAListener(_Wrong):
    """Closes its own listener, while another process has it too."""

    async def inject(self, exchange: Exchange) -> None:
        _leave_a_process_behind()
        exchange.refuse_connections()
        await exchange.close("rst")


def _leave_a_process_behind() -> None:
    if os.fork() == 0:
        kept = [handle for handle in range(64) if _listens(handle)]
        for handle in {*range(64)} - {*kept}:
            with contextlib.suppress(OSError):
                os.close(handle)
        # Until the connect that looks for somebody, which may come long after the end of the supplier.
        select.select(kept, [], [], 20)
        os._exit(0)


def _listens(handle: int) -> bool:
    try:
        found = socket.socket(fileno=handle)
    except OSError:
        return False
    listens = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    found.detach()
    return listens
