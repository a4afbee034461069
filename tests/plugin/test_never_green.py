"""What shows nothing, or nothing good, is green in no way of running it: one process, workers, shards, release."""

import json
from collections.abc import Callable
from datetime import date, timedelta

import pytest

from pytest_regcase.cli import main
from pytest_regcase.ledger.store import Ledger
from tests.plugin.gate_project import GateProject

CASES = ("trial-1", "trial-2")
QUARANTINE = f"""
[quarantine]
owner = "team-a"
reason = "fails on Mondays"
kind = "flaky"
since = {date.today() - timedelta(days=1)}
expires = {date.today() + timedelta(days=7)}
"""


def never_succeeds(project: GateProject) -> tuple[str, ...]:
    for each in CASES:
        project.add_case(each, ["stall-v1"])
    project.script({f"{each}::stall-v1": ["not-recovered"] * 9 for each in CASES})
    return ()


def never_gets_anywhere(project: GateProject) -> tuple[str, ...]:
    for each in CASES:
        project.add_case(each, ["stall-v1"])
    project.script({f"{each}::control": ["did-not-finish"] * 9 for each in CASES})
    return ()


def no_case(project: GateProject) -> tuple[str, ...]:
    (project.root / "cases").mkdir()
    return ()


def nothing_selected(project: GateProject) -> tuple[str, ...]:
    for each in CASES:
        project.add_case(each, ["stall-v1"])
    return ("-k", "no-such-name")


def nothing_run(project: GateProject) -> tuple[str, ...]:
    """Every item is there, and a plugin skips each."""
    for each in CASES:
        project.add_case(each, ["stall-v1"])
    conftest = project.root / "conftest.py"
    conftest.write_text(conftest.read_text() + "\ndef pytest_runtest_setup(item):\n    pytest.skip('not today')\n")
    return ()


def all_quarantined(project: GateProject) -> tuple[str, ...]:
    for each in CASES:
        project.add_case(each, ["stall-v1"], more=QUARANTINE)
    return ()


Given = Callable[[GateProject], tuple[str, ...]]
SUITES: dict[Given, set[str]] = {
    never_succeeds: {"check-broken"},
    never_gets_anywhere: {"control-failed", "check-inconclusive"},
    no_case: {"nothing-selected"},
    nothing_selected: {"nothing-run", "not-run"},
    nothing_run: {"nothing-run", "not-run"},
    all_quarantined: {"all-quarantined"},
}
"""What is wrong -> codes of red reasons that say so, in one session over all of it."""


@pytest.fixture(params=SUITES, ids=lambda suite: suite.__name__)
def suite(
    request: pytest.FixtureRequest,
    project: GateProject,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> "Suite":
    for name in ("REGCASE_LEDGER", "REGCASE_RUN_ID", "GITHUB_RUN_ID", "CI_PIPELINE_ID", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    options = request.param(project)
    return Suite(project, options, SUITES[request.param], capsys)


class Suite:
    """A project in which something is never green."""

    def __init__(
        self,
        project: GateProject,
        options: tuple[str, ...],
        codes: set[str],
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.project = project
        self.codes = codes
        self._options = options
        self._capsys = capsys

    def run(self, *args: str) -> set[str]:
        """Run pytest; return the codes of the red reasons that it stored."""
        result = self.project.run(*self._options, *args)
        assert result.ret not in (pytest.ExitCode.OK, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)
        with Ledger.open(f"sqlite:///{self.project.root / '.regcase' / 'ledger.sqlite3'}") as ledger:
            decision = ledger.decisions()[-1]
        assert decision.decision != "pass"
        return {each.code for each in decision.reasons if each.red}

    def gate(self, *args: str) -> set[str]:
        """Run `regcase gate`; return the codes of its red reasons."""
        self._capsys.readouterr()
        code = main(["gate", "--json", *args])
        gate = json.loads(self._capsys.readouterr().out)
        assert (gate["decision"], code) in (("fail", 1), ("unproven", 3))
        return {each["code"] for each in gate["reasons"] if each["red"]}


def test_in_one_process_and_for_the_gate_after_it(suite: Suite) -> None:
    assert suite.run() >= suite.codes
    assert suite.gate() >= suite.codes


@pytest.mark.parametrize(
    "suite",
    [never_succeeds, nothing_selected, nothing_run, all_quarantined],
    ids=lambda suite: suite.__name__,
    indirect=True,
)
def test_with_workers(suite: Suite) -> None:
    assert suite.run("-n2") >= suite.codes


def test_in_shards(suite: Suite) -> None:
    parts = [suite.run(f"--regcase-shard={each}/2") for each in (1, 2)]
    assert all(each >= suite.codes for each in parts)
    assert suite.gate() >= suite.codes


def test_in_a_nightly_and_a_release_after_it(suite: Suite) -> None:
    suite.run("--regcase-profile=nightly")
    ran = suite.codes & {"check-broken", "control-failed", "check-inconclusive", "all-quarantined"}
    assert suite.run("--regcase-profile=release") >= ran
    assert suite.gate("--profile=release") >= ran


def test_in_a_release_before_anything_ran(suite: Suite) -> None:
    assert "nothing-selected" in suite.run("--regcase-profile=release")
    assert "nothing-selected" in suite.gate("--profile=release")
    assert {"no-session", "nothing-selected"} <= suite.gate()
