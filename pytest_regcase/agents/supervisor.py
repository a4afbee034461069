"""The small process between us and the agent: it starts the agent and ends everything that came of it.

Run by path in an isolated interpreter (``python -I -S supervisor.py``), so it must import nothing but the standard
library, and little of that: every attempt pays for its start. It knows nothing of cases, suppliers or budgets.

The first line of its standard input says what to start (one JSON object: argv, env, cwd, stdout, stderr). It says
what happens as JSON lines on its standard output. ``t`` is `time.monotonic`, which all processes share.

- ``{"say": "started", "pid", "t", "reach"}``; reach is ``all`` (subreaper) or ``process-group``
- ``{"say": "failed", "errno", "text"}``: nothing was started
- ``{"say": "exited", "code", "signal", "t", "asked"}``; asked: we had been told to end the agent before
- ``{"say": "stragglers", "count", "names"}``: processes that outlived the agent and were ended here
- ``{"say": "done", "left"}``; left: processes that even SIGKILL did not end

``{"do": "end", "grace_seconds": 5}`` on standard input ends the agent: SIGTERM to every descendant, SIGKILL after
the grace. End of file there means that our parent is gone: SIGKILL at once. On Linux every descendant is found,
also one that left its session or wiped its environment, since orphans are handed to the nearest subreaper
(`prctl(2)`, PR_SET_CHILD_SUBREAPER); elsewhere only the agent's process group is.
"""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
SETTLE_SECONDS = 0.2
"""A process that ends by itself this soon after the agent is no straggler: it was about to go anyway."""
STRAGGLER_GRACE_SECONDS = 1.0
KILL_AGAIN_SECONDS = 0.05
GIVE_UP_SECONDS = 10.0
"""A process in an uninterruptible wait, or of another user, does not die; we say so and leave."""


def become_subreaper() -> bool:
    """Ask the kernel to hand us every orphaned descendant; False where there is no such thing."""
    if not sys.platform.startswith("linux") or not os.path.exists("/proc/self/stat"):
        return False
    try:
        return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def parent_and_name(pid: int) -> tuple[int, str] | None:
    """Read a process's parent and name; None when it is gone or only waits to be reaped."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    # A name may hold spaces and brackets: the fields start after the last one.
    before, _, after = text.rpartition(")")
    fields = after.split()
    if len(fields) < 2 or fields[0] in "ZX":
        return None
    return int(fields[1]), before.partition("(")[2]


def descendants(root: int) -> dict[int, str]:
    """Return pid and name of every living descendant of `root`, from one walk over ``/proc``.

    (``/proc/PID/task/TID/children`` would be shorter, but many kernels are built without it.)
    """
    children: dict[int, list[int]] = {}
    names: dict[int, str] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (found := parent_and_name(int(entry))) is not None:
            children.setdefault(found[0], []).append(int(entry))
            names[int(entry)] = found[1]
    living: dict[int, str] = {}
    waiting = list(children.get(root, ()))
    while waiting:
        pid = waiting.pop()
        if pid not in living:
            living[pid] = names[pid]
            waiting.extend(children.get(pid, ()))
    return living


class Supervisor:
    """Starts one agent, waits, and ends whatever is left of it."""

    def __init__(self, say: Callable[..., None]) -> None:
        self._say = say
        self._reaches_all = become_subreaper()
        self._agent = 0
        self._agent_gone_at: float | None = None
        self._asked = False
        self._stage = "running"  # then "terminating", then "killing"
        self._stage_ends_at: float | None = None
        self._killing_since: float | None = None
        self._stragglers: dict[int, str] = {}
        self._stragglers_from: float | None = None

    def start(self, spec: dict[str, Any]) -> bool:
        """Start the agent in a session of its own; say so, or why not."""
        try:
            with open(spec["stdout"], "ab") as stdout, open(spec["stderr"], "ab") as stderr:
                process = subprocess.Popen(
                    spec["argv"],
                    env=spec["env"],
                    cwd=spec["cwd"],
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
        except OSError as error:
            self._say(say="failed", errno=error.errno, text=str(error))
            return False
        self._agent = process.pid
        process.returncode = 0  # reaped here by waitpid(-1), never by subprocess
        reach = "all" if self._reaches_all else "process-group"
        self._say(say="started", pid=process.pid, t=time.monotonic(), reach=reach)
        return True

    def end(self, grace_seconds: float) -> None:
        """Begin to end the agent and everything that it started."""
        if self._agent_gone_at is None:
            self._asked = True
        if grace_seconds > 0:
            self._enter("terminating", grace_seconds)
        else:
            self._enter("killing", KILL_AGAIN_SECONDS)

    def reap(self) -> bool:
        """Collect every process that ended; False when nothing of the agent is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return self._group_lives()
            if pid == 0:
                return True
            if pid == self._agent:
                self._agent_ended(status)

    def tick(self) -> float | None:
        """Do what is due; return the seconds until something else will be, None for never."""
        now = time.monotonic()
        if self._stragglers_from is not None and now >= self._stragglers_from:
            self._stragglers.update(self._living())
        if self._stage_ends_at is not None and now >= self._stage_ends_at:
            if self._stage == "running":
                self._enter("terminating", STRAGGLER_GRACE_SECONDS)
            else:
                self._enter("killing", KILL_AGAIN_SECONDS)
        now = time.monotonic()
        due = [at for at in (self._stage_ends_at, self._stragglers_from) if at is not None and at > now]
        return min(due) - now if due else None

    def gave_up(self) -> bool:
        """Say whether SIGKILL was sent for so long that what is left cannot be ended."""
        return self._killing_since is not None and time.monotonic() > self._killing_since + GIVE_UP_SECONDS

    def finish(self) -> None:
        """Say what outlived the agent, and what outlives us."""
        if self._stragglers:
            self._say(say="stragglers", count=len(self._stragglers), names=sorted(self._stragglers.values()))
        self._say(say="done", left=len(self._living()))

    def _agent_ended(self, status: int) -> None:
        self._agent_gone_at = time.monotonic()
        self._stragglers_from = self._agent_gone_at + SETTLE_SECONDS
        code, number = (os.WEXITSTATUS(status), None) if os.WIFEXITED(status) else (None, os.WTERMSIG(status))
        self._say(say="exited", code=code, signal=number, t=self._agent_gone_at, asked=self._asked)
        if self._stage == "running":
            self._stage_ends_at = self._stragglers_from

    def _enter(self, stage: str, seconds: float) -> None:
        if stage == "killing" and self._killing_since is None:
            self._killing_since = time.monotonic()
        if stage == self._stage == "terminating" or (stage == "terminating" and self._stage == "killing"):
            return  # a second order to end changes nothing
        self._stage = stage
        self._stage_ends_at = time.monotonic() + seconds
        self._signal(signal.SIGKILL if stage == "killing" else signal.SIGTERM)

    def _signal(self, number: int) -> None:
        if not self._reaches_all:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._agent, number)
            return
        for pid in self._living():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _living(self) -> dict[int, str]:
        if self._reaches_all:
            return descendants(os.getpid())
        return {self._agent: "process-group"} if self._agent_gone_at is not None and self._group_lives() else {}

    def _group_lives(self) -> bool:
        if self._reaches_all:
            return False  # orphans come to us: no child left means no descendant left
        try:
            os.killpg(self._agent, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


def _say(**message: object) -> None:
    with suppress(BrokenPipeError):  # nobody listens any more; ending the agent matters more
        os.write(1, (json.dumps(message) + "\n").encode())


class _Orders:
    """Lines on standard input, read without waiting for a whole one."""

    def __init__(self) -> None:
        self._buffer = b""
        self.closed = False

    def fill(self) -> None:
        """Read what is there; notice the end of file."""
        chunk = os.read(0, 65536)
        self._buffer += chunk
        self.closed = not chunk

    def take(self) -> dict[str, Any] | None:
        """Return the next whole line as an object; None when there is none."""
        line, newline, rest = self._buffer.partition(b"\n")
        if not newline:
            return None
        self._buffer = rest
        order: dict[str, Any] = json.loads(line)
        return order


def main() -> int:
    """Supervise one agent; return when nothing of it is left."""
    orders = _Orders()
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    told_to_go: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _: told_to_go.append(got))

    while (spec := orders.take()) is None:
        orders.fill()
        if orders.closed:
            return 0
    supervisor = Supervisor(_say)
    if not supervisor.start(spec):
        return 1
    while supervisor.reap() and not supervisor.gave_up():
        watched = [wake_read] if orders.closed else [wake_read, 0]
        ready, _, _ = select.select(watched, [], [], supervisor.tick())
        if wake_read in ready:
            os.read(wake_read, 4096)
        if 0 in ready:
            orders.fill()
            while (order := orders.take()) is not None:
                supervisor.end(float(order["grace_seconds"]))
        if orders.closed or told_to_go:
            supervisor.end(0)
            told_to_go.clear()
    supervisor.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
