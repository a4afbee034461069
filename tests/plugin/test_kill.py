"""SIGKILL at seeded moments: what was printed is counted, once, and nothing that was started lives on."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kill_rounds import TARGETS, a_server, rounds
from tests.ledger.postgres import postgres_server
from tests.plugin.gate_project import WITHOUT_OTHERS
from tests.plugin.real_project import RealProject

ROUNDS = {"controller": 8, "controller with workers": 4, "worker": 4, "backend ended": 2, "backend killed": 2}
SEED = 37
ON_A_SERVER = [name for name, target in TARGETS.items() if target.on_a_server]


@pytest.mark.parametrize("name", sorted(set(TARGETS) - set(ON_A_SERVER)))
def test_every_printed_attempt_is_counted_once(tmp_path: Path, name: str) -> None:
    found = rounds(tmp_path, TARGETS[name], ROUNDS[name], SEED)
    assert not found.lost
    assert not found.twice
    assert found.printed >= found.rounds == ROUNDS[name]


def test_every_printed_attempt_is_counted_once_whatever_becomes_of_the_server(tmp_path: Path) -> None:
    postgres_server()  # skips, or fails, where there is none
    # Where one of its processes is killed, a server ends the connections of all, so it is one of our own.
    with a_server() as server:
        for name in ON_A_SERVER:
            (root := tmp_path / name).mkdir()
            found = rounds(root, TARGETS[name], ROUNDS[name], SEED, server)
            assert not found.lost
            assert not found.twice
            assert found.printed >= found.rounds == ROUNDS[name]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_a_signal_to_pytest_ends_every_agent(
    pytester: pytest.Pytester, parallel: tuple[str, ...], number: signal.Signals
) -> None:
    """With real attempts in a real process: a worker is a child of its controller, an agent one of its worker."""
    project = RealProject(pytester)
    for case in range(2):
        project.add_real_case(f"trial-{case}", ["deadline-no-answer-v1"])
    output = project.root / "output"
    with _started(project, parallel, output) as process:
        while process.poll() is None and not _agents(project.root):
            time.sleep(0.01)
        process.send_signal(number)
        status = process.wait()
    if number == signal.SIGTERM:
        assert status == pytest.ExitCode.INTERRUPTED
        assert "UNPROVEN (" in output.read_text()
    assert not _left_behind(project.root)


@contextmanager
def _started(project: RealProject, parallel: tuple[str, ...], output: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a gate run whose output goes to a file; kill it at the end."""
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *WITHOUT_OTHERS, "--regcase", *parallel],
            cwd=project.root,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _agents(root: Path) -> list[int]:
    return [pid for pid, command in _processes_of(root).items() if "pytest_regcase.demo.agent" in command]


def _left_behind(root: Path) -> dict[int, str]:
    """Return the processes of this project that are still there after some patience, by process id."""
    for _ in range(900):
        found = _processes_of(root)
        if not found:
            return {}
        time.sleep(0.1)
    return found


def _processes_of(root: Path) -> dict[int, str]:
    """Find processes that have a path below `root` in their command line, environment or current folder."""
    needle = os.fsencode(root)
    found: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            command = (folder / "cmdline").read_bytes()
            places = [command, (folder / "environ").read_bytes(), os.fsencode(os.readlink(folder / "cwd"))]
        except OSError:  # it ended, is a zombie, or is not ours
            continue
        if command and any(needle in each for each in places):
            found[int(folder.name)] = command.replace(b"\0", b" ").decode(errors="replace")
    return found
