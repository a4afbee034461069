"""What notes the connects of a Python agent. `connect_audit` copies it into the attempt as ``sitecustomize.py``.

It then runs in the agent's own Python, before the agent, whatever version that is: it imports only what every
Python has loaded by then, and changes nothing that an agent could notice. A supplier that is gone cannot count who
still calls it; an audit hook (PEP 578) sees every connect that goes through Python's own sockets.
"""

import os
import sys
from time import monotonic

TYPE_CHECKING = False  # the one of `typing` costs its import
if TYPE_CHECKING:
    from collections.abc import Callable


def install(folder: str, log: str, hosts: "tuple[str, ...]", port: int, t0: float) -> None:
    """Note every connect to that port from now on; then let the ``sitecustomize`` run that stands behind ours.

    `folder` is where this file stands, `log` where lines are appended, `t0` what `t` counts from.
    """
    # Before CPython 3.8 there are no audit hooks: nothing is noted, so nothing is claimed.
    if hasattr(sys, "addaudithook"):
        sys.addaudithook(hook(log, hosts, port, t0))
    hand_over(folder)


def hook(log: str, hosts: "tuple[str, ...]", port: int, t0: float) -> "Callable[[str, tuple[object, ...]], None]":
    """Return the audit hook. It never raises: what a hook raises, the connect would raise."""
    # As they are now, whatever is patched later.
    open_, write, close, getpid, now = os.open, os.write, os.close, os.getpid, monotonic
    append = os.O_WRONLY | os.O_APPEND | os.O_CREAT

    def note(event: str, arguments: "tuple[object, ...]") -> None:
        if event != "socket.connect":
            return
        try:
            host, to = arguments[1][:2]  # type: ignore[index]
            if to == port and host in hosts:
                file = open_(log, append, 0o600)
                write(file, b'{"t": %.4f, "pid": %d}\n' % (now() - t0, getpid()))
                close(file)
        except Exception:
            return

    return note


def hand_over(folder: str) -> None:
    """Take our folder off the path again, and import the ``sitecustomize`` that would have been imported."""
    sys.path[:] = [each for each in sys.path if each != folder]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if ours is not None:
            # The import system wants to find what it has just loaded.
            sys.modules.setdefault("sitecustomize", ours)
