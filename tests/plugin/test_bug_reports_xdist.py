"""Public reports about pytest-xdist (see bug_reports.py): most in one run under --dist loadgroup."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest

from tests.plugin.gate_project import WITHOUT_OTHERS, GateProject

CHANGES_UNDER_WAY = """
import pytest
from pytest_regcase.ledger.store import Ledger

WORKER = os.environ.get("PYTEST_XDIST_WORKER")

@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    # A colleague's session ends just now: more live runs stand in the ledger than when this one was planned.
    serial = WORKER is None and session.config.getoption("dist") == "no"
    if Path("again").exists() and (serial or WORKER == "gw1"):
        with Ledger.open("sqlite:///.regcase/ledger.sqlite3") as ledger:
            for number, row in enumerate(ledger.rows(scenario="live")):
                other = {"session_id": "colleague", "run": 90 + number, "attempt_id": f"colleague-{number}"}
                ledger.append(row.record.model_copy(update=other))

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.xdist_group("port-8000"))
"""
BAD, GOOD = "not-recovered", "recovered"
NIGHTLY = ("--regcase-profile=nightly", "--regcase-live=3")


class Runs(NamedTuple):
    """One project and its copy, each run twice: first serially and then, the copy alone, in parallel."""

    serial: GateProject
    parallel: GateProject
    statuses: tuple[int, int]

    def gates(self) -> list[dict[str, Any]]:
        """Return the two decisions of the second runs."""
        return [
            json.loads((each.root / "report.json").read_text())["gate"] for each in (self.serial, self.parallel)
        ]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    root = tmp_path_factory.mktemp("runs")
    (root / "serial").mkdir()
    serial = GateProject(cast("pytest.Pytester", SimpleNamespace(path=root / "serial")))
    for number in range(3):
        serial.add_case(f"trial-{number}", ["stall-v1"])
    serial.claim_fix("trial-0")
    conftest = serial.root / "conftest.py"
    conftest.write_text(conftest.read_text() + CHANGES_UNDER_WAY)
    assert _pytest(serial.root, *NIGHTLY) == 0
    (serial.root / "again").touch()
    (serial.root / "calls.jsonl").unlink()
    serial.script({"trial-1::stall-v1": [BAD, GOOD, GOOD]})
    shutil.copytree(serial.root, root / "parallel")
    parallel = GateProject.__new__(GateProject)
    parallel.root = root / "parallel"
    report = "--regcase-report=report.json"
    statuses = (
        _pytest(serial.root, *NIGHTLY, report),
        _pytest(parallel.root, *NIGHTLY, report, "-n", "2", "--dist", "loadgroup"),
    )
    return Runs(serial, parallel, statuses)


def _pytest(root: Path, *args: str) -> int:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", *WITHOUT_OTHERS, "--regcase", *args]
    with (root / "output").open("wb") as file:
        return subprocess.run(command, cwd=root, env=env, stdout=file, stderr=subprocess.STDOUT).returncode


def test_rerunfailures_287_a_flaky_check_ends_a_parallel_run_as_it_ends_a_serial_one(runs: Runs) -> None:
    """What the status and the decision are made of are the reports that reach the controller."""
    assert runs.statuses == (0, 0)
    serial, parallel = runs.gates()
    assert serial == parallel
    assert [each["code"] for each in serial["reasons"]].count("flaky") == 1


def test_xdist_432_the_number_of_runs_is_the_controllers_though_the_ledger_changes_while_workers_collect(
    runs: Runs,
) -> None:
    """One snapshot plans for all; "different tests were collected" would be the end of the session."""
    lists = sorted((runs.parallel.root / ".regcase" / "sessions").glob("*/collected/gw*.json"))
    assert len(lists) == 2
    first, second = (json.loads(path.read_text()) for path in lists)
    assert first == second
    live = [re.fullmatch(r".*::live::run-(\d+)", each) for each in first]
    assert [int(each[1]) for each in live if each] == [4, 5, 6]


def test_xdist_1386_no_result_depends_on_what_runs_in_one_group(runs: Runs) -> None:
    """A group may run on both workers: attempts share no port, folder or order."""
    serial, parallel = ({row.attempt_id: row for row in each.rows()} for each in (runs.serial, runs.parallel))
    assert Counter((row.key, row.try_number, row.verdict) for row in serial.values()) == Counter(
        (row.key, row.try_number, row.verdict) for row in parallel.values()
    )


def test_xdist_1045_a_parallel_run_is_written_once(runs: Runs) -> None:
    """Only the controller writes: one row an attempt, one session, one decision."""
    rows = runs.parallel.rows()
    assert len(rows) == len(runs.serial.rows()) == len({row.attempt_id for row in rows})
    with runs.parallel.ledger() as ledger:
        assert len(ledger.decisions()) == 2
    assert len(list((runs.parallel.root / ".regcase" / "sessions").iterdir())) == 2


LOSES_A_REPORT = """
def pytest_sessionstart(session):
    for worker in session.config.pluginmanager.get_plugins():
        if type(worker).__name__ == "WorkerInteractor":
            sends = worker.sendevent
            def loses(name, **event):
                if name != "testreport" or "trial-1/case.toml::stall-v1" not in event["data"]["nodeid"]:
                    sends(name, **event)
            worker.sendevent = loses
"""


def test_salesagent_2091_a_report_that_is_lost_on_its_way_is_a_check_that_was_not_run(
    project: GateProject,
) -> None:
    """What was planned is compared with what came, so a loss is red though nothing failed."""
    for number in range(3):
        project.add_case(f"trial-{number}", ["stall-v1"])
    conftest = project.root / "conftest.py"
    conftest.write_text(conftest.read_text() + LOSES_A_REPORT)
    result = project.run("-n", "2")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["*trial-1: 1 of 2 planned not run: stall-v1", "UNPROVEN (*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_pytest_6423_two_sessions_at_once_keep_the_rows_of_both(project: GateProject) -> None:
    """The ledger is appended to, never written as a whole, and made by one of two first sessions."""
    project.add_case("trial-37")
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", *WITHOUT_OTHERS, "--regcase", "-q", "-p", "no:cacheprovider"]
    both = [
        subprocess.Popen(command, cwd=project.root, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(2)
    ]
    outputs = [each.communicate()[0].decode() for each in both]
    assert [each.returncode for each in both] == [0, 0], outputs
    rows = project.rows()
    assert Counter(row.session_id for row in rows).total() == 6
    assert set(Counter(row.session_id for row in rows).values()) == {3}
