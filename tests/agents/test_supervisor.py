"""The supervisor as a program: by path, alone, over its pipes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.agents import supervisor
from pytest_regcase.agents.process import SUPERVISOR


def spec(folder: Path, *argv: str) -> dict[str, Any]:
    return {
        "argv": list(argv),
        "env": {"PATH": "/usr/bin:/bin"},
        "cwd": str(folder),
        "stdout": str(folder / "stdout"),
        "stderr": str(folder / "stderr"),
    }


def run(*lines: dict[str, Any]) -> list[dict[str, Any]]:
    """Give it the lines, then the end of file; return what it says."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(SUPERVISOR)],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=60,
        env={},
        check=False,
    )
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_needs_no_package_of_ours_nor_site() -> None:
    probe = (
        "import runpy, sys\n"
        f"sys.argv = ['supervisor']; runpy.run_path({str(SUPERVISOR)!r}, run_name='probe')\n"
        "print([name for name in sys.modules if name.startswith(('pytest_regcase', 'pydantic', 'site'))])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", probe], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_end_of_file_kills_at_once(tmp_path: Path) -> None:
    said = run(spec(tmp_path, "sh", "-c", "trap '' TERM; sleep 600"))
    assert [each["say"] for each in said] == ["started", "exited", "done"]
    assert (said[1]["signal"], said[1]["asked"]) == (9, True)
    assert said[0]["t"] <= said[1]["t"]


def test_end_of_file_before_the_first_line_starts_nothing() -> None:
    assert run() == []


def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    said = run(spec(tmp_path, "/no/such/program"))
    assert [each["say"] for each in said] == ["failed"]
    assert said[0]["errno"] == 2


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    said = run({**spec(tmp_path, "true"), "cwd": str(tmp_path / "none")})
    assert [each["say"] for each in said] == ["failed"]
    assert str(tmp_path / "none") in said[0]["text"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_finds_a_process_whose_name_looks_like_fields() -> None:
    name = "a) S 1 (b"
    program = (
        "import ctypes, time\n"
        f"ctypes.CDLL(None).prctl(15, {name.encode()!r}, 0, 0, 0)\n"  # PR_SET_NAME
        "print('named', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        here = int(Path("/proc/self").readlink().name)
        try:
            assert supervisor.parent_and_name(child.pid) == (here, name)
            assert supervisor.descendants(here)[child.pid] == name
        finally:
            child.kill()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_process_that_is_not_there_has_no_parent() -> None:
    assert supervisor.parent_and_name(2**22 + 1) is None


def test_without_a_subreaper_the_process_group_is_ended(tmp_path: Path) -> None:
    # As on systems other than Linux; run in a process of its own, since it waits for all its children.
    program = f"""
import runpy, sys
module = runpy.run_path({str(SUPERVISOR)!r}, run_name="probe")
module["main"].__globals__["become_subreaper"] = lambda: False
sys.exit(module["main"]())
"""
    order = spec(tmp_path, "sh", "-c", "sleep 600 & echo $!")
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        input=json.dumps(order) + "\n" + json.dumps({"do": "end", "grace_seconds": 5}) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.stderr == ""
    assert said[0]["reach"] == "process-group"
    assert said[-1] == {"say": "done", "left": 0}
    with pytest.raises(ProcessLookupError):
        os.killpg(said[0]["pid"], 0)
