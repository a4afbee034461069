"""A pytest whose imports are paid once: a process that has loaded it and us, and forks for every run of a project.

Imports are nine tenths of a small gate run, and each worker of xdist pays them again; both are forks here. A fork
runs what a fresh process would run, but all have one hash seed, and a worker is no child of its controller.

    python -m tests.plugin.warm_pytest SOCKET
"""

import atexit
import gc
import importlib
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

LIMIT = 1 << 20
MANY = 3
"""Files that are handed over with every order: stdin, stdout, stderr."""
LATE = (
    "xdist.plugin",
    "xdist.dsession",
    "xdist.workermanage",
    "xdist.remote",
    "scipy.special",
    "pytest_regcase.reporters.json_report",
)
WITHOUT = [f"-pno:{name}" for name in ("cacheprovider", "randomly", "xdist")]
"""Without xdist, beside which rerunfailures starts a thread; a fork has the thread that forks and no other."""
REPOSITORY = Path(__file__).resolve().parents[2]


class Running:
    """A fork that was ordered."""

    def __init__(self, path: str, order: Mapping[str, Any], files: Sequence[int]) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.connect(path)
        told = {"env": dict(os.environ), "cwd": os.getcwd(), **order}
        socket.send_fds(self._socket, [json.dumps(told).encode()], files)
        self.pid = int(self._socket.recv(LIMIT))
        self._status: int | None = None

    def wait(self, seconds: float | None = None) -> int | None:
        """Return how it ended, as `subprocess` says it; None while it runs after so many seconds."""
        if self._status is None and select.select([self._socket], [], [], seconds)[0]:
            self._status = int(self._socket.recv(LIMIT))
            self._socket.close()
        return self._status

    def kill(self, number: int = 9) -> None:
        """Send it a signal, unless it has ended."""
        if self.wait(0) is None:
            with suppress(ProcessLookupError):  # it has ended, and is about to be told
                os.kill(self.pid, number)


_NOT_HANDED_ON = ("PYTEST_", "GITHUB_", "REGCASE_")
"""Variables that would have the warm-up write elsewhere, or make it another run; an order brings its own."""


class WarmPytest:
    """The process that forks, seen from the test that asks; it ends with the process that started it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="warm-")
        self._path = f"{self._folder.name}/socket"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.plugin.warm_pytest", self._path],
            cwd=REPOSITORY,
            env={name: value for name, value in os.environ.items() if not name.startswith(_NOT_HANDED_ON)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        atexit.register(self.close)

    @property
    def path(self) -> str:
        """Where it takes orders."""
        return self._path

    def close(self) -> None:
        """End it; what it forked goes on."""
        if self._process.poll() is None:
            self._process.communicate()
        self._folder.cleanup()

    def start(self, args: Sequence[str], *, out: int, err: int, env: Mapping[str, str] = os.environ) -> Running:
        """Run pytest in the current folder; what it prints is in the files at once."""
        with open(os.devnull, "rb") as nothing:
            order = {"args": list(args), "env": dict(env)}
            return Running(self._path, order, [nothing.fileno(), out, err])

    def run(self, args: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        """Run pytest in the current folder, and return how it ended and what it printed."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            code = self.start(args, out=out.fileno(), err=err.fileno()).wait()
            printed = []
            for file in (out, err):
                file.seek(0)
                printed.append(file.read().decode(errors="replace"))
        assert code is not None
        return subprocess.CompletedProcess(["pytest", *args], code, *printed)


_started: list[WarmPytest] = []


def warm_pytest() -> WarmPytest:
    """Return this process's one, started when it is first asked for."""
    if not _started:
        _started.append(WarmPytest())
    return _started[0]


def _serve(path: str) -> None:
    _warm_up()
    assert threading.active_count() == 1, f"a fork would lose {threading.enumerate()}"
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(32)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            asked, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _watch(asked, path)
            asked.close()
            _reap()


class _Loads:
    """Loads what a run loads late, while assertions are rewritten on loading."""

    def pytest_sessionstart(self) -> None:
        for name in LATE:
            importlib.import_module(name)


def _warm_up() -> None:
    """Load what a gate run loads, through pytest itself, which rewrites assertions as in a fresh process."""
    import pytest

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pyproject.toml").write_text("[tool.regcase]\n")
        before, output = os.getcwd(), os.dup(1)
        os.chdir(folder)
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        try:
            status = pytest.main([*WITHOUT, "-q", "--regcase"], plugins=[_Loads()])
        finally:
            os.dup2(output, 1)
            os.close(output)
            os.chdir(before)
        assert status == pytest.ExitCode.NO_TESTS_COLLECTED


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _watch(asked: socket.socket, path: str) -> NoReturn:
    """Fork once more and tell how that ends."""
    told, files, _, _ = socket.recv_fds(asked, LIMIT, MANY)
    pid = os.fork()
    if pid == 0:
        asked.close()
        _become(json.loads(told), files, path)
    for each in files:
        os.close(each)
    asked.send(str(pid).encode())
    _, status = os.waitpid(pid, 0)
    with suppress(OSError):  # nobody may wait for it
        asked.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(order: Mapping[str, Any], files: Sequence[int], path: str) -> NoReturn:
    code = 1
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.environ.clear()
        os.environ.update(order["env"])
        os.chdir(order["cwd"])
        sys.stdin = os.fdopen(0, closefd=False)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)  # type: ignore[union-attr]
        if "args" in order:
            code = _run_pytest(order["args"], path)
        elif "regcase" in order:
            code = _run_regcase(order["regcase"])
        else:  # a worker: the line by which execnet starts a Python
            exec(eval(sys.stdin.readline()))
            code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run_regcase(args: list[str]) -> int:
    from pytest_regcase.cli import main

    sys.argv = ["regcase", *args]
    # Anew: the streams of the process that forks are of another kind of file.
    sys.stdout, sys.stderr = (os.fdopen(each, "w", buffering=1, closefd=False) for each in (1, 2))
    return main(args)


def _run_pytest(args: list[str], path: str) -> int:
    import pytest
    from execnet import gateway_base, gateway_io

    class WarmIO(gateway_base.Popen2IO):
        """Stands for execnet's own, which starts a Python and speaks to it over its stdin and stdout."""

        def __init__(self, _args: object, execmodel: gateway_base.ExecModel) -> None:
            stdin, to_worker = os.pipe()
            from_worker, stdout = os.pipe()
            self._running = Running(path, {}, [stdin, stdout, 2])
            os.close(stdin)
            os.close(stdout)
            super().__init__(os.fdopen(to_worker, "wb"), os.fdopen(from_worker, "rb"), execmodel=execmodel)

        def wait(self) -> int | None:
            return self._running.wait()

        def kill(self) -> None:
            self._running.kill()

    gateway_io.Popen2IOMaster = WarmIO  # type: ignore[assignment, misc]
    sys.argv = ["pytest", *args]
    sys.path.insert(0, os.getcwd())
    return int(pytest.main(args))


if __name__ == "__main__":
    _serve(sys.argv[1])
