"""What only a process of its own can show: killed, interrupted, out of room."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_regcase.capture import TrialRecord, read_record, record_trial
from pytest_regcase.importers.source import read_one
from tests.capture.conftest import kinds, lines_of, predictions_of

RUN = """
import os, subprocess, sys, time
from pathlib import Path
from pytest_regcase.capture import Task, run_trial, record_trial
from pytest_regcase.errors import RegcaseError

folder, repository = Path(sys.argv[1]), sys.argv[2]

def agent(trial):
    trial.step("user", "Correct calc.py.")
    trial.step("assistant", "Editing.")
    (trial.work_dir / "calc.py").write_text("half\\n")
    trial.model_call()
    {behaviour}

try:
    run_trial(folder, task=Task(id="calc", repo=repository), agent=agent)
except RegcaseError as error:
    print(f"{{type(error).__name__}}: {{error}}", file=sys.stderr)
    sys.exit(error.exit_code)
"""
WAITS = "os.write(1, b'ready'); time.sleep(600)"
FILLS = "[trial.step('assistant', 'x' * 8000) for _ in range(1000)]"


def started(folder: Path, repository: Path, behaviour: str) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-c", RUN.format(behaviour=behaviour), str(folder), str(repository)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def signalled(folder: Path, repository: Path, number: signal.Signals) -> tuple[int, bytes]:
    """Send a signal to a trial whose agent waits for its model; return its exit code and what it said."""
    with started(folder, repository, WAITS) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(5) == b"ready", process.stderr.read()
        process.send_signal(number)
        said = process.stderr.read()
    return process.returncode, said


def test_sigkill_in_mid_trial_loses_nothing_that_was_written(tmp_path: Path, repository: Path) -> None:
    folder = tmp_path / "trial"
    code, _ = signalled(folder, repository, signal.SIGKILL)
    assert code == -signal.SIGKILL
    record = read_record(folder)
    assert (record.ended, record.termination, record.replies, record.model_requests) == (False, "cut-off", 1, 1)
    assert record.task_steps == {"start_environment": "done", "prompt_agent": "started"}
    assert not (folder / "predictions.jsonl").exists()
    # Nobody could put it away: the half work is still there.
    assert (folder / "work" / "calc.py").read_text() == "half\n"
    trial = read_one(folder / "trial.jsonl")
    assert (trial.termination, trial.failing_step, len(trial.steps)) == ("cut-off", 1, 2)
    with record_trial(folder, task_id="calc", reopen=True) as again:
        assert again.step("assistant", "on") == 2
    assert read_record(folder).ended


def test_ctrl_c_is_recorded_all_is_put_away_and_it_stays_ctrl_c(tmp_path: Path, repository: Path) -> None:
    folder = tmp_path / "trial"
    code, said = signalled(folder, repository, signal.SIGINT)
    assert code == -signal.SIGINT
    assert b"KeyboardInterrupt" in said
    record = read_record(folder)
    assert (record.ended, record.termination, record.agent_failed) == (True, "cancelled", True)
    assert record.partial_patch is not None
    assert "+half" in record.partial_patch
    assert kinds(folder, "cleanup") == [{"what": "work tree", "status": "done"}]
    assert not (folder / "work").exists()
    assert predictions_of(folder)[0]["status"] == "agent_error"
    assert read_one(folder / "trial.jsonl").termination == "cancelled"


def assert_nothing_is_lost(folder: Path, code: int, said: bytes) -> TrialRecord:
    """The error is one clear sentence, and every line is whole."""
    text = said.decode()
    assert code == 4, text
    assert text.startswith("WriteError: Couldn't record the trial in ")
    assert "records before are on the disk" in text
    assert "Traceback" not in text
    lines = lines_of(folder)
    assert f"The {len(lines)} records before" in text
    assert [each["text"] for each in lines if each["kind"] == "step"][:2] == ["Correct calc.py.", "Editing."]
    record = read_record(folder)
    assert (record.ended, record.termination, record.replies) == (False, "cut-off", len(kinds(folder, "step")) - 1)
    # What cannot be recorded is left where it is: the work tree was not read.
    assert (folder / "work" / "calc.py").read_text() == "half\n"
    assert read_one(folder / "trial.jsonl").termination == "cut-off"
    return record


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one MiB; only root can make one."""
    place = tmp_path / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk(small_disk: Path, repository: Path) -> None:
    folder = small_disk / "trial"
    with started(folder, repository, FILLS) as process:
        _, said = process.communicate()
    assert b"no space left on device" in said
    assert assert_nothing_is_lost(folder, process.returncode, said).replies > 20


def test_a_file_that_may_not_grow(tmp_path: Path, repository: Path) -> None:
    folder = tmp_path / "trial"
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)); "
    with started(folder, repository, limit + FILLS) as process:
        _, said = process.communicate()
    assert b"file too large" in said
    record = assert_nothing_is_lost(folder, process.returncode, said)
    assert 10 < record.replies < 14


def test_a_disk_that_is_full_from_the_start(small_disk: Path, repository: Path) -> None:
    with pytest.raises(OSError, match="No space"):
        (small_disk / "filler").write_bytes(b"x" * 2**21)
    with started(small_disk / "trial", repository, FILLS) as process:
        _, said = process.communicate()
    assert process.returncode == 4
    assert said.startswith(b"WriteError: Couldn't ")
    assert b"Traceback" not in said


def test_a_killed_agent_process_is_an_error_like_any_other(tmp_path: Path, repository: Path) -> None:
    # The agent's own process dies; the recorder's does not.
    folder = tmp_path / "trial"
    dies = "subprocess.run(['sh', '-c', 'kill -9 $$'], check=True)"
    with started(folder, repository, dies) as process:
        process.communicate()
    record = read_record(folder)
    assert record.error is not None
    assert record.error.type == "CalledProcessError"
    assert "SIGKILL" in (record.error.message or "")
    assert json.loads((folder / "predictions.jsonl").read_text())["model_patch"] is None
    assert not (folder / "work").exists()
