"""The one address that a supplier listens on, and whether anybody takes connections there.

Standard library only: both processes import it.
"""

import socket
import sys
from typing import Literal

HOST = "127.0.0.1"
_PROBE_SECONDS = 1.0


def bound_socket(port: int = 0) -> socket.socket:
    """Return a socket bound to `port` that does not listen; 0 takes a free one.

    Two of them may be bound to one port while none listens: the parent holds the port with one for as long as the
    attempt lasts, and the child listens with another.
    """
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "darwin":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((HOST, port))
    except BaseException:
        bound.close()
        raise
    return bound


def try_connect(port: int) -> Literal["accepted", "refused"]:
    """Say what a client meets at `port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_SECONDS)
        try:
            probe.connect((HOST, port))
        except OSError:
            return "refused"
        return "accepted"
