"""Public agents and clients with their own, unchanged time-outs: hours of silence in compressed time."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_regcase.case_files import load_case, seal_case
from pytest_regcase.config import load_project
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.session import SessionSnapshot
from tests.conftest import need_harness
from tests.harness.mini_project import make_mini_project
from tests.session.attempt_project import AttemptProject, make_project

pytestmark = pytest.mark.harness
NO_ANSWER = "deadline-no-answer-v1"
HOUR = 3600.0


def with_library(root: Path, library: Path) -> None:
    """Lay the library where it would be built."""
    (root / ".regcase" / "clock").mkdir(parents=True)
    shutil.copy(library, root / ".regcase" / "clock")


@pytest.mark.slow
def test_the_mini_swe_agent_command_line_as_it_is(
    tmp_path: Path, harness_python: str, clock_library: Path
) -> None:
    settings = "time_scale = 500\ndeadline_seconds = 90000\ncap_seconds = 100000"
    case = make_mini_project(tmp_path, [NO_ANSWER], settings=settings)
    seal_case(case)
    with_library(tmp_path, clock_library)
    snapshot = SessionSnapshot(
        session_id="s", folder=str(tmp_path / "session"), ledger_id="none", agent_digests={"default": "sha256:0"}
    )
    record = AttemptProject(load_project(tmp_path), load_case(case), snapshot).run(NO_ANSWER)
    show(record)
    # Ten tries of the harness, three requests of the client library each.
    assert (record.wire.delivered, record.wire.faulted_requests, record.wire.retries) == (True, 30, 29)
    assert record.verdict == "not-recovered"
    broken = {each.expectation: each for each in record.broken}
    assert set(broken) == {"max_retries", "stop_within_seconds"}
    assert broken["stop_within_seconds"].facts["stopped_seconds"] > 4.5 * HOUR
    assert " h " in broken["stop_within_seconds"].says


def silent(root: Path, library: Path, words: Sequence[str], *, stop: float, scale: float) -> AttemptRecord:
    """What an agent on a public client does whose first request is never answered."""
    agent = Path(__file__).with_name("timing_agent.py")
    command = ("python", str(agent), *words)
    made = make_project(root, command, stop_within_seconds=stop, deadline_seconds=1, work_tree=False)
    path = root / "pyproject.toml"
    budgets = f"deadline_seconds = 40000\ncap_seconds = 60000\ntime_scale = {scale}\n"
    path.write_text(path.read_text().replace("deadline_seconds = 1\ncap_seconds = 60\n", budgets))
    case = made.loaded.path
    lines = case.read_text().splitlines()
    # Nothing is replayed: the fault meets the first request.
    replies = lines.index("[replies]")
    case.write_text("\n".join([*lines[:replies], *lines[replies + 3 :], ""]))
    with_library(root, library)
    record = AttemptProject(load_project(root), load_case(case), made.snapshot).run(NO_ANSWER)
    show(record)
    return record


def test_a_time_out_of_600_s_and_no_retry_is_recovered_where_700_s_are_allowed(
    tmp_path: Path, harness_python: str, clock_library: Path
) -> None:
    record = silent(tmp_path, clock_library, ("openai", "0"), stop=700, scale=200)
    assert record.verdict == "recovered", record.to_plain()
    assert (record.wire.delivered, record.wire.faulted_requests, record.wire.retries) == (True, 1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("client", ["openai", "openai-async", "anthropic", "anthropic-async"])
def test_a_client_with_its_defaults_waits_ten_minutes_thrice(
    tmp_path: Path, clock_library: Path, client: str
) -> None:
    need_harness(client.partition("-")[0])
    # A timer of five of the agent's seconds for the connect: where a coroutine waits for it, whoever is out of the
    # processor for as long in real time meets it.
    scale = 200 if client.endswith("async") else 400
    record = silent(tmp_path, clock_library, (client, "default"), stop=20000, scale=scale)
    assert record.verdict == "recovered", record.to_plain()
    assert (record.wire.delivered, record.wire.faulted_requests, record.wire.retries) == (True, 3, 2)
    assert record.wire.stopped_seconds is not None
    assert record.wire.stopped_seconds > 0.4 * HOUR


def show(record: AttemptRecord) -> None:
    """Print both clocks; `pytest -s` shows them."""
    stopped = record.wire.stopped_seconds
    agent = "it did not stop" if stopped is None else f"stopped after {stopped:.0f} s of its own time"
    print(f"{agent}; the attempt took {record.duration_seconds:.1f} s")
