"""The switch of the agent's clock, and the proof that it reaches whoever asks us.

Knows the small file that `agents/clock.c` maps into every process of the agent, and ``/proc``; nothing of models,
replies or faults. Standard library only.
"""

import os
import struct
import time

from pytest_regcase.supplier.connection import ClientConnection
from pytest_regcase.supplier.spec import ClockSpec
from pytest_regcase.supplier.wire_log import WireLog

# The layout is also in agents/clock.c: a flag, the moment of the switch, the scale.
_FLAG_AT, _MOMENT_AT = 0, 8
_NANOSECONDS = 1_000_000_000
_LOG_STEP_SECONDS = 0.001
"""The log rounds to less than that; by the agent's clock it would show a wait of 119.98 s for one of 120."""


class AgentClock:
    """The clock that the agent has: real time; with a `spec`, `spec.scale` times as fast once it was started."""

    def __init__(self, spec: ClockSpec | None) -> None:
        self._spec = spec
        self._started_at: float | None = None
        if spec is not None:
            self._file = os.open(spec.state, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            os.write(self._file, struct.pack("qqd", 0, 0, spec.scale))

    def start(self, asking: ClientConnection, log: WireLog) -> dict[str, str] | None:
        """Make it fast from now on, where that was not done; record it, or why the clock does not reach `asking`.

        Out of reach it stays real time for good. What is returned, once, is what the parent is to be told.
        """
        spec = self._spec
        # Whoever let go meanwhile has no socket that could be looked for; its next request will do.
        if spec is None or self._started_at is not None or asking.gone.is_set():
            return None
        why = _why_out_of_reach(spec.library, *asking.ends)
        if why is not None:
            self._spec = None
            log.write("clock", conn=asking.number, scale=spec.scale, missed=why)
            return {"what": "clock-missed", "text": f"time_scale = {spec.scale:g} does not reach the agent: {why}"}
        log.write("clock", t=log.t_of(self.switch()), conn=asking.number, scale=spec.scale)
        return {"what": "clock-switched"}

    def switch(self) -> float:
        """Make it fast from now on, without a further question; returns that moment on `time.monotonic`."""
        moment = time.monotonic_ns()
        # The flag last: who sees it finds the moment there.
        os.pwrite(self._file, struct.pack("q", moment), _MOMENT_AT)
        os.pwrite(self._file, struct.pack("q", 1), _FLAG_AT)
        self._started_at = moment / _NANOSECONDS
        return self._started_at

    def real_seconds(self, agent_seconds: float) -> float:
        """Return how long to wait, from now on, until so much of the agent's time is over."""
        if self._spec is None or self._started_at is None:
            return agent_seconds
        return agent_seconds / self._spec.scale + _LOG_STEP_SECONDS

    def now(self) -> float:
        """Return the agent's wall clock, in seconds since the epoch."""
        now = time.time()
        if self._spec is None or self._started_at is None:
            return now
        return now + (time.monotonic() - self._started_at) * (self._spec.scale - 1)


def _why_out_of_reach(library: str, peer: tuple[str, int], ours: tuple[str, int]) -> str | None:
    inode = _socket_inode(peer, ours)
    holders = [] if inode is None else _processes_with_socket(inode)
    if not holders:
        return "the process that asks us is not seen from here (in a container, or of another user)"
    # A child may have inherited the socket: one that has the clock is enough.
    if any(library in _text(f"/proc/{pid}/maps") for pid in holders):
        return None
    names = ", ".join(sorted({_text(f"/proc/{pid}/comm").strip() or str(pid) for pid in holders}))
    return (
        f"the process that asks us ({names}) did not load it; it is a static program, or was started without the"
        " variables LD_PRELOAD and REGCASE_CLOCK that we set"
    )


def _socket_inode(local: tuple[str, int], remote: tuple[str, int]) -> str | None:
    """Return the inode of a TCP socket of this machine by its two ends; None where it is not seen from here."""
    ends = [_hexadecimal(*local), _hexadecimal(*remote)]
    for line in _text("/proc/net/tcp").splitlines():
        fields = line.split()
        if fields[1:3] == ends:
            return fields[9]
    return None


def _processes_with_socket(inode: str) -> list[int]:
    """Return the processes that hold a socket, among those whose files we may see."""
    link = f"socket:[{inode}]"
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            folder = f"/proc/{pid}/fd"
            held = any(os.readlink(f"{folder}/{each}") == link for each in os.listdir(folder))
        except OSError:
            continue  # another user's, or it is gone
        if held:
            found.append(int(pid))
    return found


def _hexadecimal(address: str, port: int) -> str:
    # The kernel prints the four bytes of the address as one number of this machine.
    (number,) = struct.unpack("=I", bytes(int(part) for part in address.split(".")))
    return f"{number:08X}:{port:04X}"


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
