"""A gate run whose ledger is on a server that ends connections, or goes away: nothing lost, never green."""

from collections.abc import Iterator

import pytest

from pytest_regcase.cli import main
from pytest_regcase.ledger.store import Ledger
from tests.ledger.postgres import an_empty_schema
from tests.plugin.gate_project import GateProject

ENDS_CONNECTIONS = """
import os, sys
sys.path.insert(0, {repository!r})
from tests.ledger.postgres import run_on
def pytest_runtest_logreport(report):
    if report.when == "call" and "PYTEST_XDIST_WORKER" not in os.environ:
        {ends}
"""
ONCE = """
        ours = "FROM pg_stat_activity WHERE application_name = '" + os.environ["OURS"] + "'"
        run_on(os.environ["SERVER"], f"SELECT pg_terminate_backend(pid) {ours}")
"""
FOR_GOOD = """
        from pytest_regcase.ledger import database, engine
        def gone(self, *args, **kwargs):
            raise engine.refuse("store an attempt in", self.url, "gone", "Wait.", slug=engine.LOST)
        database.Database.write = gone
"""


@pytest.fixture
def server_url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with an_empty_schema() as url:
        # Another worker's tests are on the same server: only our own connections are to end.
        ours = url.rpartition("%3D")[2]
        monkeypatch.setenv("OURS", ours)
        monkeypatch.setenv("SERVER", url.partition("&options")[0])
        monkeypatch.setenv("REGCASE_LEDGER", f"{url}&application_name={ours}")
        yield url


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_a_run_outlives_lost_connections(
    project: GateProject, server_url: str, parallel: tuple[str, ...], pytestconfig: pytest.Config
) -> None:
    project.add_case("trial-37")
    conftest = project.root / "conftest.py"
    repository = str(pytestconfig.rootpath)
    conftest.write_text(conftest.read_text() + ENDS_CONNECTIONS.format(repository=repository, ends=ONCE))
    result = project.run(*parallel)
    assert result.ret == pytest.ExitCode.OK
    with Ledger.open(server_url) as ledger:
        assert len(ledger.rows()) == 3
        assert [each.decision for each in ledger.decisions()] == ["pass"]


def test_a_server_that_stays_away_leaves_a_spool_that_can_be_brought_in(
    project: GateProject, server_url: str, pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    project.add_case("trial-37")
    conftest = project.root / "conftest.py"
    repository = str(pytestconfig.rootpath)
    conftest.write_text(conftest.read_text() + ENDS_CONNECTIONS.format(repository=repository, ends=FOR_GOOD))
    result = project.run()
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*UNPROVEN*"])
    with Ledger.open(server_url) as ledger:
        assert len(ledger.rows()) == 1
    result.stdout.fnmatch_lines(["*regcase ledger import*"])
    (spool,) = (line for line in result.stdout.lines if line.endswith("not-in-the-ledger.jsonl"))
    assert main(["ledger", "import", spool]) == 0
    assert "1 new, 0 known" in capsys.readouterr().out.replace("\n ", "")
    with Ledger.open(server_url) as ledger:
        assert len(ledger.rows()) == 2
