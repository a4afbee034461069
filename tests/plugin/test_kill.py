"""SIGKILL of pytest at seeded moments: what was printed is counted, and nothing that was started lives on."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.plugin.gate_project import WITHOUT_OTHERS
from tests.plugin.real_project import RealProject

KILLS = 10
"""For each way to run; 20 in all."""
CASES = 4
PRINTED = re.compile(r"(?:^| )(cases/\S+/case\.toml::[\w-]+::[\w-]+) (PASSED|FAILED|RERUN)", re.MULTILINE)
PRINTED_BY_XDIST = re.compile(r"(PASSED|FAILED|RERUN) (cases/\S+/case\.toml::[\w-]+::[\w-]+)")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc"),
]


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_every_printed_attempt_has_a_row_and_no_process_is_left(
    pytester: pytest.Pytester, parallel: tuple[str, ...]
) -> None:
    project = RealProject(pytester)
    # An agent that does not recover has every check tried three times: more is printed, more can be lost.
    project.use_agent("behaviours", "swallow")
    for number in range(CASES):
        project.add_real_case(f"trial-{number}", ["auth-rejected-v1", "oom-killed-v1", "deadline-no-answer-v1"])
    luck = random.Random(37)
    printed = Counter[str]()
    for kill in range(KILLS):
        printed += _killed_run(project, parallel, kill, luck)
        assert not _left_behind(project.root), f"kill {kill}"
    rows = Counter(f"cases/{row.case_id}/case.toml::{row.key.scenario}::check" for row in project.rows())
    lost = printed - rows
    assert not lost
    assert printed.total() >= KILLS


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_sigterm_prints_the_summary_and_ends_every_agent(
    pytester: pytest.Pytester, parallel: tuple[str, ...]
) -> None:
    project = RealProject(pytester)
    for number in range(CASES):
        project.add_real_case(f"trial-{number}", ["deadline-no-answer-v1"])
    output = project.root / "output"
    with _started(project, parallel, output) as process:
        while process.poll() is None and not _printed(output):
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        status = process.wait()
    assert status == pytest.ExitCode.INTERRUPTED
    assert "UNPROVEN (" in output.read_text()
    assert not _left_behind(project.root)


def _killed_run(project: RealProject, parallel: tuple[str, ...], kill: int, luck: random.Random) -> Counter[str]:
    """Kill pytest after some printed results and a moment more; return what it printed."""
    output = project.root / f"output-{kill}"
    wanted, moment = luck.randint(0, 5), luck.uniform(0, 1.5)
    with _started(project, parallel, output) as process:
        while process.poll() is None and len(_printed(output)) < wanted:
            time.sleep(0.05)
        time.sleep(moment)
    return Counter(_printed(output))


@contextmanager
def _started(project: RealProject, parallel: tuple[str, ...], output: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a gate run whose output goes to a file; kill it at the end."""
    with output.open("wb") as file:
        # Unbuffered: what is printed is in the file even after a kill.
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "pytest", *WITHOUT_OTHERS, "--regcase", "-v", *parallel],
            cwd=project.root,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _printed(output: Path) -> list[str]:
    text = output.read_text(errors="replace")
    return [each[0] for each in PRINTED.findall(text)] + [each[1] for each in PRINTED_BY_XDIST.findall(text)]


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
