"""Every way in which attempts stay unmade: they are told as not run, and the gate is unproven and never green."""

from dataclasses import dataclass, field

import pytest

from pytest_regcase.cli import main
from tests.plugin.gate_project import GateProject

CASES = 6
SERIAL_AND_XDIST = pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])

ENDS_THE_PROCESS = "import os\ndef test_ends_it(): os._exit(0)\n"


@dataclass(frozen=True)
class Way:
    """One way to lose attempts, and how the run ends then."""

    name: str
    args: tuple[str, ...] = ()
    script: dict[str, list[str]] = field(default_factory=dict)
    ends: frozenset[int] = frozenset({pytest.ExitCode.TESTS_FAILED})
    """Exit codes; xdist makes 2 of what is 1 in a serial run with -x."""
    decision: str = "UNPROVEN"


RED = frozenset({pytest.ExitCode.TESTS_FAILED})
STOPPED = RED | {pytest.ExitCode.INTERRUPTED}
INTERRUPTED = frozenset({pytest.ExitCode.INTERRUPTED})
NOTHING_LEFT = frozenset({pytest.ExitCode.NO_TESTS_COLLECTED})
BAD_CONTROL = {"trial-0::control": ["did-not-finish"] * 2}
BAD_CHECKS = {"trial-0::stall-v1": ["not-recovered"] * 3, "trial-1::stall-v1": ["not-recovered"] * 3}

WAYS = [
    Way("-k", ("-k", "control")),
    Way("-x", ("-x",), BAD_CONTROL, STOPPED),
    Way("Ctrl-C", (), {"trial-1::control": ["interrupt"]}, INTERRUPTED),
    Way("SIGTERM", (), {"trial-1::control": ["terminate-pytest"]}, INTERRUPTED),
]
IN_A_SERIAL_RUN = [
    Way("--deselect", ("--deselect", "cases/trial-0/case.toml::stall-v1")),
    Way("--ignore", ("--ignore", "cases/trial-0")),
    Way("--maxfail=2", ("--maxfail=2",), BAD_CHECKS, STOPPED, "FAIL"),
    Way("-m", ("-m", "nothing_has_it", "-o", "markers=nothing_has_it"), {}, NOTHING_LEFT),
    Way("norecursedirs", ("-o", "norecursedirs=trial-1")),
]


def _cases(project: GateProject) -> None:
    for number in range(CASES):
        project.add_case(f"trial-{number}", ["stall-v1"])


def _lose(project: GateProject, way: Way, parallel: tuple[str, ...]) -> None:
    _cases(project)
    project.script(way.script)
    result = project.run("--regcase-report=report.json", *way.args, *parallel)
    assert int(result.ret) in way.ends
    result.stdout.fnmatch_lines(["*= regcase =*", "*planned not run*", f"{way.decision} (*"])
    if way.name.startswith("-"):
        result.stdout.fnmatch_lines([f"regcase: options in force that change what runs: {way.name}"])


@SERIAL_AND_XDIST
@pytest.mark.parametrize("way", WAYS, ids=lambda each: each.name)
def test_what_was_not_run_makes_the_gate_unproven(
    project: GateProject, way: Way, parallel: tuple[str, ...]
) -> None:
    _lose(project, way, parallel)
    if way.ends is not STOPPED:  # xdist ends a run at its first failure as if it were interrupted
        _has_an_end(project, way.ends is not INTERRUPTED)


@pytest.mark.parametrize("way", IN_A_SERIAL_RUN, ids=lambda each: each.name)
def test_what_was_not_run_makes_a_serial_run_unproven(project: GateProject, way: Way) -> None:
    _lose(project, way, ())


@SERIAL_AND_XDIST
def test_last_failed_runs_the_failed_item_and_is_unproven(project: GateProject, parallel: tuple[str, ...]) -> None:
    _cases(project)
    project.script({"trial-0::stall-v1": ["not-recovered"] * 3})
    project.run()
    result = project.run("--lf", "-v", *parallel)
    result.stdout.fnmatch_lines(["*cases/trial-0/case.toml::stall-v1::check*", "UNPROVEN*"])
    result.stdout.no_fnmatch_line("*::control::check*")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@SERIAL_AND_XDIST
def test_a_test_that_ends_its_process_leaves_a_session_without_an_end_or_a_crash(
    project: GateProject, parallel: tuple[str, ...]
) -> None:
    """Nothing inside pytest can catch `os._exit(0)`: a serial run exits 0 without a word; the ledger knows."""
    _cases(project)
    project.pytester.makepyfile(test_zz=ENDS_THE_PROCESS)
    result = project.run("--regcase-with-tests", *parallel, apart=True)
    if parallel:
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stdout.fnmatch_lines(["*crashed while running*", "*= regcase =*"])
        return
    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*= regcase =*")
    _has_an_end(project, False)


@SERIAL_AND_XDIST
def test_an_attempt_that_ends_its_process_is_not_run_or_a_crash(
    project: GateProject, parallel: tuple[str, ...]
) -> None:
    _cases(project)
    project.script({"trial-1::control": ["exit"]})
    result = project.run(*parallel)
    if parallel:
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stdout.fnmatch_lines(["*= regcase =*", "UNPROVEN (*"])
        assert "worker-crashed" in {row.reason for row in project.rows()}
        return
    _has_an_end(project, False)
    assert {(row.case_id, row.scenario) for row in project.rows()} == {
        ("trial-0", "control"),
        ("trial-0", "stall-v1"),
    }


def test_a_conftest_that_ends_the_process_leaves_a_session_without_attempts_and_end(project: GateProject) -> None:
    _cases(project)
    conftest = project.root / "conftest.py"
    conftest.write_text(conftest.read_text() + "def pytest_collection_finish(session): os._exit(0)\n")
    project.run()
    assert project.rows() == []
    _has_an_end(project, False)


@pytest.mark.parametrize("args", [("--ignore", "cases/trial-1"), ("-k", "not trial-1")], ids=" ".join)
def test_what_no_process_collected_is_said_apart_from_what_was_deselected(
    project: GateProject, args: tuple[str, ...]
) -> None:
    _cases(project)
    result = project.run(*args)
    never = [
        "Planned, never collected (pytest made no item of them):",
        "  cases/trial-1/case.toml::control::check",
        "  cases/trial-1/case.toml::stall-v1::check",
    ]
    if args[0] == "-k":
        result.stdout.no_fnmatch_line(f"{never[0]}*")
    else:
        result.stdout.fnmatch_lines(never, consecutive=True)
    result.stdout.fnmatch_lines(["*trial-1: 2 of 2 planned not run: *"])


LOSES_A_CASE_IN_THE_WORKERS = """
def pytest_ignore_collect(collection_path):
    if collection_path.name == "trial-2" and "PYTEST_XDIST_WORKER" in os.environ:
        return True
"""


def test_the_lists_of_the_workers_are_reconciled_with_the_plan(project: GateProject) -> None:
    _cases(project)
    conftest = project.root / "conftest.py"
    conftest.write_text(conftest.read_text() + LOSES_A_CASE_IN_THE_WORKERS)
    result = project.run("-n", "2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["Planned, never collected*", "  cases/trial-2/case.toml::control::check", "*", "UNPROVEN (*"]
    )


def _has_an_end(project: GateProject, has: bool) -> None:
    """Look whether the ledger's only session has one; either way `regcase gate` says later that it is unproven."""
    (folder,) = (project.root / ".regcase" / "sessions").iterdir()
    with project.ledger() as ledger:
        session = ledger.session(folder.name)
    assert session is not None
    assert len(session.planned) == 2 * CASES
    assert (session.finished_at is not None) == has
    assert main(["gate"]) == 3
