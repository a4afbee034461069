"""The hook in a real child Python: what it notes, and that nothing else changes there."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_regcase.agents import connect_audit
from pytest_regcase.agents.connect_hook import hook

CONNECTS = """
import asyncio, os, socket, sys, threading
port = int(sys.argv[1])

def refused():
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5)
    except ConnectionRefusedError:
        print("refused", flush=True)

async def refused_too():
    try:
        await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        print("refused", flush=True)

refused()
asyncio.run(refused_too())
# Before the thread: one that was joined may still be counted, and a fork beside a thread is warned of.
if (child := os.fork()) == 0:
    refused()
    os._exit(0)
os.waitpid(child, 0)
thread = threading.Thread(target=refused)
thread.start()
thread.join()
socket.socket().connect_ex(("127.0.0.1", port))
try:
    socket.socket(socket.AF_UNIX).connect("/nowhere")
except FileNotFoundError:
    print("nowhere")
"""


@pytest.fixture
def dead_port() -> Iterator[int]:
    """A port that nobody listens on, and that nobody else gets meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


def kept(pythonpath: str | None = None) -> dict[str, str]:
    env = {key: os.environ[key] for key in ("PATH", "LD_LIBRARY_PATH") if key in os.environ}
    return env if pythonpath is None else env | {"PYTHONPATH": pythonpath}


def run(
    folder: Path, code: str, *words: object, options: tuple[str, ...] = (), pythonpath: str | None = None
) -> "subprocess.CompletedProcess[str]":
    env = kept(pythonpath)
    return subprocess.run(
        [sys.executable, *options, "-c", code, *map(str, words)],
        env={**env, **connect_audit.variables(folder, env)},
        cwd=folder.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


def test_every_way_to_connect_is_noted_and_fails_as_ever(tmp_path: Path, dead_port: int) -> None:
    connect_audit.lay(tmp_path / "hook", f"http://127.0.0.1:{dead_port}/v1", 0.0)
    done = run(tmp_path / "hook", CONNECTS, dead_port)
    assert done.stdout.split() == [*["refused"] * 4, "nowhere"]
    assert done.stderr == ""
    noted = connect_audit.connects(tmp_path / "hook")
    assert noted is not None
    assert len(noted) == 5
    assert noted == tuple(sorted(noted))


def test_t_counts_from_the_moment_that_is_given(tmp_path: Path, dead_port: int) -> None:
    connect_audit.lay(tmp_path / "now", f"http://127.0.0.1:{dead_port}", 0.0)
    connect_audit.lay(tmp_path / "later", f"http://127.0.0.1:{dead_port}", 1000.0)
    code = "import socket, sys; socket.socket().connect_ex(('localhost', int(sys.argv[1])))"
    times = []
    for name in ("now", "later"):
        run(tmp_path / name, code, dead_port)
        times.append((connect_audit.connects(tmp_path / name) or (0.0,))[0])
    assert -1000 < times[1] - times[0] < -900


def test_other_ports_and_hosts_are_nobodys_business(tmp_path: Path, dead_port: int) -> None:
    connect_audit.lay(tmp_path / "hook", "http://127.0.0.1:1/v1", 0.0)
    run(tmp_path / "hook", CONNECTS, dead_port)
    assert connect_audit.connects(tmp_path / "hook") is None


def test_a_python_that_ignores_its_environment_notes_nothing(tmp_path: Path, dead_port: int) -> None:
    connect_audit.lay(tmp_path / "hook", f"http://127.0.0.1:{dead_port}/v1", 0.0)
    run(tmp_path / "hook", CONNECTS, dead_port, options=("-I",))
    assert connect_audit.connects(tmp_path / "hook") is None


def test_the_agent_finds_its_path_and_its_own_sitecustomize_as_ever(tmp_path: Path) -> None:
    connect_audit.lay(tmp_path / "hook", "http://127.0.0.1:1", 0.0)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import builtins\nbuiltins.customized = __file__\n")
    shows = "import sys, builtins; print(sys.path, getattr(builtins, 'customized', None))"
    theirs = str(tmp_path / "own")
    for pythonpath in (None, theirs):
        plain = subprocess.run(
            [sys.executable, "-c", shows], env=kept(pythonpath), capture_output=True, text=True, check=True
        )
        hooked = run(tmp_path / "hook", shows, pythonpath=pythonpath)
        assert (hooked.stdout, hooked.stderr) == (plain.stdout, plain.stderr)
        assert (f"{theirs}/sitecustomize.py" in plain.stdout) == (pythonpath is not None)


def test_an_error_in_the_agents_own_sitecustomize_is_reported_as_ever(tmp_path: Path) -> None:
    connect_audit.lay(tmp_path / "hook", "http://127.0.0.1:1", 0.0)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import nothing_of_that_name\n")
    done = run(tmp_path / "hook", "print('runs')", pythonpath=str(tmp_path / "own"))
    assert done.stdout == "runs\n"
    assert "Error in sitecustomize" in done.stderr
    assert "nothing_of_that_name" in done.stderr


def test_a_log_that_takes_no_line_changes_nothing(tmp_path: Path, dead_port: int) -> None:
    connect_audit.lay(tmp_path / "hook", f"http://127.0.0.1:{dead_port}/v1", 0.0)
    (tmp_path / "hook" / connect_audit.LOG_NAME).mkdir()
    done = run(tmp_path / "hook", CONNECTS, dead_port)
    assert done.stdout.split() == [*["refused"] * 4, "nowhere"]


def test_what_is_no_line_of_ours_is_passed_over(tmp_path: Path) -> None:
    assert connect_audit.connects(tmp_path) is None
    log = tmp_path / connect_audit.LOG_NAME
    log.write_text('{"t": 2.5, "pid": 1}\nnonsense\n[]\n{"t": "x"}\n{"t": 1.5, "pid": 1}\n{"t": 3')
    assert connect_audit.connects(tmp_path) == (1.5, 2.5)
    log.write_text("")
    assert connect_audit.connects(tmp_path) is None


@pytest.mark.parametrize("arguments", [(), (None,), (None, 7), (None, ("127.0.0.1",)), (None, (["x"], 1))])
def test_whatever_the_event_holds_the_hook_does_not_raise(tmp_path: Path, arguments: tuple[object, ...]) -> None:
    note = hook(str(tmp_path / "log"), ("127.0.0.1",), 1, 0.0)
    note("socket.connect", arguments)
    assert not (tmp_path / "log").exists()
