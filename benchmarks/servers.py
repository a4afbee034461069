"""The two servers under measurement, each a child of ours, started alike: what they cost so far, and their end.

CPU is the process's own clock, kernel included, to the nanosecond; memory is what is resident. Both are read from
outside, so that neither server does anything for the measurement. Linux only.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pytest_regcase import registry
from pytest_regcase.supplier.port import bound_socket
from pytest_regcase.supplier.spec import FaultSpec, SupplierSpec

ROOT = Path(__file__).resolve().parent.parent
TOKEN = "benchmark"
SUPPLIER = "pytest_regcase.supplier.server"
BARE = "benchmarks.bare_server"


class Server:
    """A running server. Leave it with `stop`, or as a context manager."""

    def __init__(self, module: str, spec: dict[str, Any] | SupplierSpec, folder: Path) -> None:
        self.holder = bound_socket()
        self.port = self.holder.getsockname()[1]
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{module}.json"
        whole = json.loads(spec.to_json()) if isinstance(spec, SupplierSpec) else spec
        file.write_text(json.dumps(whole | {"port": self.port}), "utf-8")
        self.child = subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )
        assert self.child.stdout is not None
        assert json.loads(self.child.stdout.readline())["say"] == "listening"
        self.start_cpu = self.cpu()
        """CPU seconds from the exec until it listens."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def cpu(self) -> float:
        """Return the CPU seconds that the process has used."""
        # How Linux makes a process's clock of its id (clock_getcpuclockid).
        return time.clock_gettime((~self.child.pid << 3) | 2)

    def resident(self) -> int:
        """Return the bytes that the process holds in memory."""
        pages = int(Path(f"/proc/{self.child.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE")

    def stop(self) -> None:
        """End it, as its parent's end would."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()
        self.holder.close()


def supplier(folder: Path, lines: Sequence[dict[str, Any]], *, steps: int) -> Server:
    """Start the supplier as a simulation does: a recording, and a fault behind its last step."""
    fault = FaultSpec("no_answer", registry.names("faults")["no_answer"].value, at_step=steps + 2)
    spec = SupplierSpec(
        wire_log=str(folder / "wire.jsonl"),
        t0=time.monotonic(),
        token=TOKEN,
        lines=tuple(lines),
        failing_step=steps + 2,
        fault=fault if lines else None,
    )
    folder.mkdir(parents=True, exist_ok=True)
    return Server(SUPPLIER, spec, folder)


def bare(folder: Path, lines: Sequence[dict[str, Any]]) -> Server:
    """Start the bare server with the replies of the same recording."""
    replies = [{"text": each["text"], **each["tool_calls"][0]} for each in lines if each["role"] == "assistant"]
    return Server(BARE, {"replies": replies}, folder)
