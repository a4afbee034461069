"""The addresses that a supplier listens on, and whether anybody takes connections there.

Standard library only: both processes import it.
"""

import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Literal

HOST = "127.0.0.1"
"""Loopback: always listened on, and by default alone."""
_PROBE_SECONDS = 1.0
_TRIES = 20


def bound_socket(port: int = 0, host: str = HOST) -> socket.socket:
    """Return a socket bound to `port` that does not listen; 0 takes a free one.

    Two of them may be bound to one port while none listens: the parent holds the port with one for as long as the
    attempt lasts, and the child listens with another.
    """
    # The protocol is named, since asyncio sends small parts of an answer at once (TCP_NODELAY) only where it is.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "darwin":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((host, port))
    except BaseException:
        bound.close()
        raise
    return bound


def bound_sockets(hosts: Sequence[str], port: int = 0) -> tuple[socket.socket, ...]:
    """Return one socket an address, all bound to one port; 0 takes one that is free on every address.

    Raises:
        OSError: the port cannot be had on one of them; none is held then.
    """
    tries = _TRIES if port == 0 else 1
    while True:
        with ExitStack() as held:
            first = held.enter_context(bound_socket(port, hosts[0]))
            try:
                # What is free on the first address may be taken on the next.
                others = [held.enter_context(bound_socket(first.getsockname()[1], host)) for host in hosts[1:]]
            except OSError:
                tries -= 1
                if tries == 0:
                    raise
                continue
            held.pop_all()
            return (first, *others)


def try_connect(port: int, hosts: Sequence[str] = (HOST,)) -> Literal["accepted", "refused", "unclear"]:
    """Say what a client meets at `port` now.

    It is ``refused`` where every address said so, ``accepted`` where one of them took the connection, also one
    that was reset then, and ``unclear`` where one of them said neither (a time-out, no route).
    """
    met = {_connect(host, port) for host in hosts}
    return "accepted" if "accepted" in met else "unclear" if "unclear" in met else "refused"


def _connect(host: str, port: int) -> Literal["accepted", "refused", "unclear"]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_SECONDS)
        try:
            probe.connect((host, port))
        except ConnectionRefusedError:
            return "refused"
        except ConnectionResetError:
            # The kernel had taken it already when the listener went.
            return "accepted"
        except OSError:
            return "unclear"
        return "accepted"
