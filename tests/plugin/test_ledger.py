"""A ledger that cannot be used is said before anything runs; one that breaks under way makes the run unproven."""

import pytest

from tests.plugin.gate_project import GateProject


def test_one_that_is_no_database_is_a_usage_error(project: GateProject) -> None:
    project.add_case("trial-37")
    (project.root / ".regcase").mkdir()
    (project.root / ".regcase" / "ledger.sqlite3").write_text("garbage" * 1000)
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*Couldn't open the ledger*"])
    assert project.calls() == []


def test_one_from_the_environment_is_used_and_its_place_not_printed(
    project: GateProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.add_case("trial-37")
    monkeypatch.setenv("REGCASE_LEDGER", f"sqlite:///{project.root / 'elsewhere.sqlite3'}")
    result = project.run()
    result.stdout.fnmatch_lines(["regcase: ledger: new, empty (from REGCASE_LEDGER)"])
    assert (project.root / "elsewhere.sqlite3").exists()
    assert not (project.root / ".regcase" / "ledger.sqlite3").exists()


READS_AT_THE_REPORT = """
import pytest
from pytest_regcase.ledger.store import Ledger
def pytest_runtest_logreport(report):
    if report.when == "call" and "PYTEST_XDIST_WORKER" not in __import__("os").environ:
        with Ledger.open("sqlite:///.regcase/ledger.sqlite3") as ledger, open("seen", "a") as file:
            file.write(f"{ledger.row_count()} ")
"""


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_the_row_is_stored_when_other_plugins_see_the_result(
    project: GateProject, parallel: tuple[str, ...]
) -> None:
    project.add_case("trial-37")
    conftest = project.root / "conftest.py"
    conftest.write_text(conftest.read_text() + READS_AT_THE_REPORT)
    project.run(*parallel)
    assert (project.root / "seen").read_text() == "1 2 3 "


BREAKS = """
from pytest_regcase.errors import LedgerError
from pytest_regcase.ledger.store import Ledger
def append(self, record):
    raise LedgerError("Couldn't store an attempt in the ledger: disk full.")
Ledger.append = append
"""


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_an_attempt_that_cannot_be_stored_is_kept_beside_and_the_run_is_unproven(
    project: GateProject, parallel: tuple[str, ...]
) -> None:
    project.add_case("trial-37")
    conftest = project.root / "conftest.py"
    conftest.write_text(conftest.read_text() + BREAKS)
    result = project.run(*parallel)
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*= regcase =*", "*disk full*", "*not-in-the-ledger.jsonl*", "UNPROVEN*"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    summary = result.stdout.str().partition("= regcase =")[2].partition("\n")[2]
    assert max(map(len, summary.splitlines())) <= 80
    (session,) = (project.root / ".regcase" / "sessions").iterdir()
    assert '"verdict": "finished"' in (session / "not-in-the-ledger.jsonl").read_text()


REMOVES = """
import shutil
from pathlib import Path
def pytest_runtest_logreport(report):
    if report.when == "call" and report.nodeid.endswith("{after}::check"):
        shutil.rmtree(Path(__file__).with_name(".regcase"), ignore_errors=True)
"""


@pytest.mark.parametrize("after", ["stall-v1", "killed-v1"], ids=["under way", "after the last attempt"])
def test_one_that_is_removed_under_way_is_never_green(project: GateProject, after: str) -> None:
    project.add_case("trial-37")
    conftest = project.root / "conftest.py"
    conftest.write_text(conftest.read_text() + REMOVES.replace("{after}", after))
    result = project.run("-p", "no:cacheprovider")
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*removed or replaced*", "UNPROVEN*"])
    result.stdout.no_fnmatch_line("PASS*")
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
