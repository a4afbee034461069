"""The parent's side of one supplier process: start it, hold its port, hear it, end it, complete its wire log.

Knows processes and pipes; nothing of wires, faults or what the log means. The port is held, on every address
that is listened on, by a socket that is bound and never listens: after a kill connects stay refused there and no
stranger gets the port.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pytest_regcase.errors import MachineryError
from pytest_regcase.supplier.memory import count_and_remove
from pytest_regcase.supplier.port import HOST, bound_sockets, try_connect
from pytest_regcase.supplier.reach import Reach, resolve
from pytest_regcase.supplier.spec import SupplierSpec
from pytest_regcase.supplier.wire_log import WireLog

_START_SECONDS = 30.0
_STOP_SECONDS = 5.0
_KEPT_VARIABLES = (
    *("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR"),
    *("SYSTEMROOT", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)


class SupplierProcess:
    """One running supplier. Make it with `start`, leave it with `stop` (or as a context manager).

    The child dies by itself when this process dies: its stdin ends then.
    """

    def __init__(
        self, spec: SupplierSpec, reach: Reach, child: "subprocess.Popen[bytes]", holders: Sequence[socket.socket]
    ) -> None:
        self.spec = spec
        self.port = spec.port
        self.container = reach.placeholders(spec.port, spec.token)
        """The placeholders for an agent in a container; none where no container reaches us."""
        self.exit_code: int | None = None
        """Set once the child is reaped; negative: the signal that ended it."""
        self._child = child
        self._holders = holders
        self._unread = b""
        self._messages: list[dict[str, Any]] = []
        self._stopping = False
        self._killed_by_us = False
        self._may_die = False
        self._memory_group: Path | None = None

    @classmethod
    def start(cls, spec: SupplierSpec, *, env_key: str | None = None) -> Self:
        """Start a supplier and return once it listens.

        `env_key` is the name of our own variable that holds the upstream's key. Its value goes into the child's
        variable that `spec.pass_through` names and nowhere else; where it is not set, none is sent upstream.
        The specification is written as ``supplier.json`` beside the wire log.

        Raises:
            MachineryError: it did not come up; its own words are in the text.
            UsageRefused: `spec.reach` means no address of this machine.
            OSError: `spec.port` cannot be had.
        """
        reach = resolve(spec.reach)
        holders = bound_sockets(reach.addresses, spec.port)
        port = holders[0].getsockname()[1]
        log = str(Path(spec.wire_log).absolute())
        spec = replace(spec, addresses=reach.addresses, port=port, wire_log=log)
        folder = Path(spec.wire_log).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _write_private(folder / "supplier.json", spec.to_json())
            with (folder / "supplier.stderr").open("wb") as stderr:
                child = subprocess.Popen(
                    # -P: nothing in the current folder may stand in for one of our modules.
                    [sys.executable, "-P", "-m", "pytest_regcase.supplier.server", str(folder / "supplier.json")],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    env=_environment(spec, os.environ, env_key),
                    close_fds=True,
                    # Ctrl-C in a terminal reaches pytest, which ends us in its own order.
                    start_new_session=True,
                )
        except OSError as error:
            for each in holders:
                each.close()
            raise MachineryError(
                f"Couldn't start the supplier: {error}.\nThe attempt proves nothing; run it again."
            ) from error
        process = cls(spec, reach, child, holders)
        try:
            process._wait_until_listening()
        except BaseException:
            process.stop()
            raise
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def openai_base_url(self) -> str:
        """The base URL for OpenAI clients; it ends in ``/v1``."""
        return f"{self.anthropic_base_url}/v1"

    @property
    def anthropic_base_url(self) -> str:
        """The base URL for clients that add ``/v1`` themselves."""
        return f"http://{HOST}:{self.port}/{self.spec.token}"

    @property
    def closed(self) -> bool:
        """Say whether the child is gone and reaped."""
        return self.exit_code is not None

    def fileno(self) -> int:
        """Return what a selector waits on: readable when there are messages, or when the child is gone.

        After the message ``exited`` it stays readable for ever: unregister it then.
        """
        assert self._child.stdout is not None
        return self._child.stdout.fileno()

    def read_messages(self) -> list[dict[str, Any]]:
        """Return what the child said since the last call, without waiting.

        `say` is ``first-fault`` (answer it with `proceed`), ``control-reached``, ``off-the-prefix`` (with
        `reasons`), ``clock-switched``, ``clock-missed`` and ``trouble`` (with `text`), and last, from us,
        ``exited`` (with `code`). Each has `t`.
        """
        while self.exit_code is None:
            try:
                data = os.read(self.fileno(), 65536)
            except BlockingIOError:
                break
            if not data:
                self._reap()
                break
            *lines, self._unread = (self._unread + data).split(b"\n")
            self._messages += [each for each in map(json.loads, lines) if not self._is_ours(each)]
        said, self._messages = self._messages, []
        return said

    def _is_ours(self, message: dict[str, Any]) -> bool:
        """Keep what only this side is to know: where the kernel counts whom it killed."""
        if message["say"] != "memory-group":
            return False
        self._memory_group = Path(message["path"])
        return True

    def proceed(self) -> None:
        """Let the supplier send the fault that it announced with ``first-fault``."""
        assert self._child.stdin is not None
        self._may_die = True
        with contextlib.suppress(OSError, ValueError):
            self._child.stdin.write(b"proceed\n")
            self._child.stdin.flush()

    def stop(self) -> None:
        """End the child and complete the wire log; afterwards nothing is added to it. May be called twice."""
        if self._stopping:
            return
        self._stopping = True
        assert self._child.stdin is not None
        with contextlib.suppress(OSError):
            self._child.stdin.close()
        if self.exit_code is None:
            try:
                self._child.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._killed_by_us = True
                self._child.kill()
            self._messages += self.read_messages()
            if self.exit_code is None:
                self._reap()
        if self._child.stdout is not None:
            self._child.stdout.close()
        for each in self._holders:
            each.close()

    def _wait_until_listening(self) -> None:
        os.set_blocking(self.fileno(), False)
        limit = time.monotonic() + _START_SECONDS
        while time.monotonic() < limit:
            said = self.read_messages()
            if any(each["say"] == "listening" for each in said):
                self._messages = [each for each in said if each["say"] != "listening"]
                return
            if self.exit_code is not None:
                break
            time.sleep(0.005)
        words = (Path(self.spec.wire_log).parent / "supplier.stderr").read_text("utf-8", "replace").strip()
        last = words.splitlines()[-1] if words else "it said nothing"
        raise MachineryError(
            f"Couldn't start the supplier: it ended with {self.exit_code} before it listened ({last}).\n"
            "The attempt proves nothing; run it again."
        )

    def _oom_kills(self) -> int | None:
        group, self._memory_group = self._memory_group, None
        return None if group is None else count_and_remove(group, self._child.pid)

    def _reap(self) -> None:
        self.exit_code = self._child.wait()
        killed = self.exit_code == -signal.SIGKILL
        log = WireLog(self.spec.wire_log, self.spec.t0)
        try:
            if killed:
                # Only a fault that was let go may kill; a kernel short of memory is somebody else.
                by = "us" if self._killed_by_us else "fault" if self._may_die else "other"
                # Seen after the fact: a connect tells whether the port is really dead.
                connect = try_connect(self.port, self.spec.addresses)
                log.write("killed", by=by, connect=connect, oom_kills=self._oom_kills())
            t = log.write("exited", code=self.exit_code)
        finally:
            log.close()
        if not self._stopping and not (killed and self._may_die):
            text = f"the supplier ended with {self.exit_code} in the middle of the attempt"
            self._messages.append({"say": "trouble", "t": t, "text": text})
        self._messages.append({"say": "exited", "t": t, "code": self.exit_code})


def _write_private(path: Path, text: str) -> None:
    """Write what nobody else on this machine is to read: the token opens the supplier."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(text)


def _environment(spec: SupplierSpec, ours: Mapping[str, str], key_name: str | None) -> dict[str, str]:
    kept = {name: ours[name] for name in _KEPT_VARIABLES if name in ours}
    through = spec.pass_through
    if through is not None and through.api_key_env is not None and key_name is not None and key_name in ours:
        kept[through.api_key_env] = ours[key_name]
    return kept
