"""The agent's process as the session sees it: started, watched, ended. It holds no budget and judges nothing.

Talks to `supervisor.py` over two pipes; what it says is on that page. `t` in messages is `time.monotonic`.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from pytest_regcase.agents.launch import Launch, Places
from pytest_regcase.errors import MachineryError
from pytest_regcase.records.attempt import Exit
from pytest_regcase.records.words import EndedBy

SUPERVISOR = Path(__file__).with_name("supervisor.py")
SUPERVISOR_LOG = "supervisor.txt"
"""What the supervisor itself says, in the attempt's folder; empty where all went well."""
START_SECONDS = 60.0
"""A loaded machine may take long to start a Python; longer than this is broken machinery."""
FINISH_SECONDS = 30.0
"""Beyond the grace: above what the supervisor itself takes before it gives up on a process."""
CLEANUP_SECONDS = 120.0


class AgentProcess:
    """One agent under its supervisor. A context manager: leaving it ends whatever still runs."""

    def __init__(self, supervisor: subprocess.Popen[bytes], log: IO[bytes]) -> None:
        self._supervisor = supervisor
        self._log = log
        self._buffer = b""
        self._unread: list[dict[str, Any]] = []
        self._agent_pid: int | None = None
        self._exited: dict[str, Any] | None = None
        self._stragglers = 0
        self._ended_by: EndedBy | None = None
        self.done = False
        """Nothing of the agent is left; no further message will come."""

    @classmethod
    def start(cls, launch: Launch, places: Places) -> "AgentProcess":
        """Start the agent; raise MachineryError when it, or its supervisor, does not start."""
        log = (places.folder / SUPERVISOR_LOG).open("w+b")
        # The agent could read its supervisor's environment in /proc, so that holds no secret either.
        bare = {key: launch.env[key] for key in ("PATH", "LD_LIBRARY_PATH") if key in launch.env}
        try:
            supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", str(SUPERVISOR)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=bare,
                cwd=places.folder,
                start_new_session=True,  # Ctrl-C in the terminal is ours to act on, not the agent's
            )
        except OSError as error:
            log.close()
            raise MachineryError(f"Couldn't start the agent's supervisor: {error}.\nTry again.") from error
        process = cls(supervisor, log)
        try:
            process._tell(
                {
                    "argv": list(launch.argv),
                    "env": {**launch.env, **launch.agent_only},
                    "cwd": str(launch.cwd),
                    "stdout": str(places.stdout),
                    "stderr": str(places.stderr),
                }
            )
            process._await_start(launch)
        except BaseException:
            process.close()
            raise
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def fileno(self) -> int:
        """Return what to wait on: readable when `read_messages` has something, and at the end."""
        assert self._supervisor.stdout is not None
        return self._supervisor.stdout.fileno()

    @property
    def pid(self) -> int | None:
        """The agent's own process, for display."""
        return self._agent_pid

    @property
    def exit(self) -> Exit:
        """How it ended; raises MachineryError while it has not."""
        if self._exited is None:
            raise MachineryError(
                "Couldn't say how the agent ended: it has not ended.\nCall `end` or `wait` first."
            )
        return Exit(
            code=self._exited["code"],
            signal=self._exited["signal"],
            ended_by=self._ended_by if self._exited["asked"] else None,
            stragglers=self._stragglers,
        )

    @property
    def has_exited(self) -> bool:
        """Whether the agent's own process has ended (others that it started may not have)."""
        return self._exited is not None

    @property
    def ended_at(self) -> float | None:
        """When the agent's own process ended, on `time.monotonic`; None while it has not."""
        return None if self._exited is None else float(self._exited["t"])

    def read_messages(self) -> list[dict[str, Any]]:
        """Return what came since the last call, without waiting.

        ``{"say": "exited", "code", "signal", "t"}`` once; ``{"say": "stragglers", "count"}`` at most once; then
        ``{"say": "done"}``. Raises MachineryError when the supervisor itself is gone before that.
        """
        self._receive(0)
        messages, self._unread = self._unread, []
        return messages

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until nothing of the agent is left; False when that took longer than `seconds`."""
        until = None if seconds is None else time.monotonic() + seconds
        while not self.done:
            left = None if until is None else max(0.0, until - time.monotonic())
            self._receive(left)
            if left == 0 and not self.done:
                return False
        return True

    def end(self, grace_seconds: float = 5.0, *, ended_by: EndedBy = "cut-short") -> Exit:
        """End the agent and all that it started: SIGTERM, after the grace SIGKILL. Return how it ended.

        `ended_by` stands in the result only if the agent had not ended by itself before the order came.
        """
        if not self.done:
            self._ended_by = self._ended_by or ended_by
            self._tell({"do": "end", "grace_seconds": grace_seconds})
            if not self.wait(grace_seconds + FINISH_SECONDS):
                self._abandon()
                raise self._broken("it did not end the agent in time")
        return self.exit

    def close(self) -> None:
        """End whatever still runs, at once, and let go of pipes and files. May be called again."""
        if self._supervisor.stdin is not None and not self._supervisor.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._supervisor.stdin.close()  # the supervisor's order to kill
        if not self.done and self._supervisor.stdout is not None and not self._supervisor.stdout.closed:
            with contextlib.suppress(MachineryError):
                if not self.wait(FINISH_SECONDS):
                    self._abandon()
        if self._supervisor.stdout is not None:
            self._supervisor.stdout.close()
        try:
            self._supervisor.wait(FINISH_SECONDS)
        except subprocess.TimeoutExpired:
            self._abandon()
            self._supervisor.wait()
        self._log.close()

    def _tell(self, order: dict[str, Any]) -> None:
        assert self._supervisor.stdin is not None
        try:
            self._supervisor.stdin.write(json.dumps(order).encode() + b"\n")
            self._supervisor.stdin.flush()
        except (BrokenPipeError, ValueError):
            # Either it is done, or it broke: its last words say which.
            return

    def _await_start(self, launch: Launch) -> None:
        until = time.monotonic() + START_SECONDS
        while self._agent_pid is None:
            left = until - time.monotonic()
            if left <= 0:
                raise self._broken(f"it did not start the agent within {START_SECONDS:g} s")
            self._receive(left)
            for message in self._unread:
                if message["say"] == "failed":
                    raise MachineryError(
                        f"Couldn't start {launch.argv[0]}: {message['text']}.\n"
                        "Check that the command exists, is executable, and that its interpreter does.",
                        slug="command-not-found",
                    )
        self._unread = [each for each in self._unread if each["say"] != "started"]

    def _receive(self, seconds: float | None) -> None:
        """Take what the supervisor says, waiting at most so long for it (None: until it says something)."""
        assert self._supervisor.stdout is not None
        if self.done or not select.select([self.fileno()], [], [], seconds)[0]:
            return
        chunk = os.read(self.fileno(), 65536)
        if not chunk:
            self._abandon()
            raise self._broken("it ended before the agent did")
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        match message["say"]:
            case "started":
                self._agent_pid = message["pid"]
            case "exited":
                self._exited = message
            case "stragglers":
                self._stragglers = message["count"]
            case "done" | "failed":
                self.done = True
        self._unread.append(message)

    def _abandon(self) -> None:
        """Kill what we know of, when the supervisor cannot."""
        if self._agent_pid is not None and self._exited is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._agent_pid, signal.SIGKILL)
        self._supervisor.kill()
        self.done = True

    def _broken(self, why: str) -> MachineryError:
        self._log.seek(0)
        last_words = self._log.read(4000).decode("utf-8", errors="replace").strip()
        said = f"\nIt said: {last_words}" if last_words else "\nIt said nothing; perhaps it was killed."
        return MachineryError(f"Couldn't supervise the agent: {why}.{said}")


def run_cleanup(launch: Launch, places: Places) -> str | None:
    """Run the agent's `cleanup` command, where it has one; return what went wrong, in words, or None."""
    if not launch.cleanup:
        return None
    try:
        with (places.folder / "cleanup.txt").open("ab") as log:
            subprocess.run(
                launch.cleanup,
                env=dict(launch.env),
                cwd=places.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=CLEANUP_SECONDS,
                check=True,
                start_new_session=True,
            )
    except (OSError, subprocess.SubprocessError) as error:
        return f"cleanup failed: {error}"
    return None
