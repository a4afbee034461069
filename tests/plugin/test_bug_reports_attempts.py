"""Public reports about reruns, repeating and masked failures (see bug_reports.py): the right behaviour of ours."""

from collections import Counter

import pytest

from pytest_regcase.causes import classify_failure
from tests.plugin.gate_project import GateProject
from tests.plugin.real_project import RealProject

BAD, GOOD = "not-recovered", "recovered"
NIGHTLY = "--regcase-profile=nightly"

WAITS_FOR_EVER = """
import json, os, sys, urllib.request
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Make number two."}]}).encode()
headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers))
"""
SHORT_DEADLINE = """\
[tool.regcase]
[tool.regcase.agents.default]
command = ["python", "waits.py"]
env = { OPENAI_BASE_URL = "{openai_base_url}", OPENAI_API_KEY = "{api_key}" }
deadline_seconds = 0.5
"""


def test_rerunfailures_99_each_attempt_has_its_own_time_out(pytester: pytest.Pytester) -> None:
    """A hang that pytest-timeout ends in attempt 1 only is ended in every later one by the agent's deadline."""
    project = RealProject(pytester)
    (project.root / "pyproject.toml").write_text(
        SHORT_DEADLINE.replace("waits.py", str(project.root / "waits.py"))
    )
    (project.root / "waits.py").write_text(WAITS_FOR_EVER)
    project.add_case(
        "trial-37", ["deadline-no-answer-v1"], "[expected_recovery]\nstop_within_seconds = 0.4\n", failing_step=1
    )
    result = project.run("-p", "timeout", "--timeout=1.2", "-k", "deadline", "--reruns", "1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    rows = [row for row in project.rows() if row.scenario == "deadline-no-answer-v1"]
    assert BAD in {row.verdict for row in rows}
    assert {(row.verdict, row.reason) for row in rows} <= {(BAD, None), ("inconclusive", "machinery-broke")}
    # On a slow machine the plugin's one timer may run out between two attempts.
    assert {row.exit.ended_by for row in rows if row.verdict == BAD} == {"deadline"}


def test_rerunfailures_364_filters_on_exceptions_add_no_attempt_and_take_none_away(project: GateProject) -> None:
    """--only-rerun and --rerun-except say nothing about a check; its policy alone does."""
    project.add_case("trial-37", ["stall-v1", "killed-v1"])
    script = {"trial-37::stall-v1": [BAD, GOOD, GOOD], "trial-37::killed-v1": ["raise", BAD, GOOD, GOOD]}
    project.script(script)
    options = "--reruns 7 --only-rerun Never --rerun-except ShownFailure --rerun-except RuntimeError"
    assert project.run("-o", f"addopts={options}").ret == pytest.ExitCode.OK
    assert [len(project.verdicts()[each]) for each in script] == [3, 4]


def test_rerunfailures_364_a_wrapped_error_is_classified_by_what_was_wrapped() -> None:
    """Of `raise X from Y` the link that names a cause decides, not whichever comes first."""
    caught = AssertionError("the agent failed")
    caught.__cause__ = PermissionError("Error code: 401 - invalid_api_key: Incorrect API key provided")
    assert classify_failure(caught).cause == "key_auth"


def test_rerunfailures_32_and_249_a_check_that_passes_in_the_end_does_not_stop_a_run_with_x(
    project: GateProject,
) -> None:
    """-x ends the session when a check is red for good, not at a try that another one follows."""
    project.add_case("trial-36", ["stall-v1"])
    project.add_case("trial-37", ["stall-v1"])
    project.script({"trial-36::stall-v1": [BAD, GOOD, GOOD]})
    assert project.run("-x").ret == pytest.ExitCode.OK
    assert len(project.rows()) == 6
    project.script({"trial-36::stall-v1": [BAD, GOOD, GOOD, BAD, BAD, GOOD]})
    assert project.run("-x").ret == pytest.ExitCode.TESTS_FAILED
    assert Counter(row.case_id for row in project.rows()) == {"trial-36": 8, "trial-37": 2}


BREAKS_IN_TEARDOWN = """
def pytest_runtest_teardown(item):
    if item.nodeid.endswith("stall-v1::check"):
        raise RuntimeError("a fixture of the project")
"""


def test_rerunfailures_76_an_error_in_teardown_is_no_second_attempt(project: GateProject) -> None:
    """One row an attempt; a foreign teardown that fails is red in pytest, and says nothing about the agent."""
    project.add_case("trial-37", ["stall-v1"])
    project.pytester.makepyfile(breaks=BREAKS_IN_TEARDOWN)
    project.pytester.syspathinsert()
    result = project.run("-p", "breaks", "--reruns", "2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=2, errors=1)
    assert project.verdicts() == {"trial-37::control": ["finished"], "trial-37::stall-v1": [GOOD]}


SESSION_FIXTURE = """
import pathlib, pytest
log = pathlib.Path(__file__).with_name("log")

@pytest.fixture(scope="session", autouse=True)
def shared():
    log.open("a").write("up ")
    yield
    log.open("a").write("down ")

def test_ordinary(shared): pass
"""


def test_rerunfailures_234_and_51_session_fixtures_beside_repeated_checks(project: GateProject) -> None:
    """Set up and closed once, also where the repeated item is the last of the session."""
    project.add_case("trial-37", ["stall-v1"])
    (project.root / "a_tests").mkdir()
    (project.root / "a_tests" / "test_a.py").write_text(SESSION_FIXTURE)
    project.script({"trial-37::stall-v1": [BAD] * 3})
    result = project.run("--regcase-with-tests", "a_tests", "cases")
    result.assert_outcomes(passed=2, failed=1)
    assert len(project.verdicts()["trial-37::stall-v1"]) == 3
    assert (project.root / "a_tests" / "log").read_text() == "up down "


def test_rerunfailures_298_a_broken_supplier_does_not_make_every_case_burn_the_users_reruns(
    project: GateProject,
) -> None:
    """The number of runs is bounded by the policy, whatever --reruns says; a user's cap makes none green."""
    cases = 20
    for number in range(cases):
        project.add_case(f"trial-{number}", [])
    project.script({f"trial-{number}::control": ["did-not-finish"] * 200 for number in range(cases)})
    assert project.run("--reruns", "100").ret == pytest.ExitCode.TESTS_FAILED
    assert len(project.rows()) == 2 * cases
    assert project.run("--max-suite-reruns", "3").ret == pytest.ExitCode.TESTS_FAILED
    assert len(project.rows()) == 2 * cases + cases + 3


def test_repeat_3_a_number_of_runs_that_was_not_delivered_is_not_established(project: GateProject) -> None:
    """--count of pytest-repeat multiplies functions only; what counts is how many live runs there are."""
    pytest.importorskip("pytest_repeat")
    project.add_case("trial-37", [])
    project.claim_fix("trial-37")
    result = project.run(NIGHTLY, "--regcase-live=4", "-k", "run-001 or run-003 or control", "--count=50")
    assert [row.run for row in project.rows() if row.scenario == "live"] == [1, 3]
    result.stdout.fnmatch_lines(["*2 of 29*", "UNPROVEN (*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_librealsense_15111_case_and_run_are_data_and_no_parsed_id(project: GateProject) -> None:
    """An id that looks like a run, a scenario or a parameter is an id."""
    names = ["run-001", "live-run-001", "case-toml-control-check"]
    for name in names:
        project.add_case(name, [])
        project.claim_fix(name)
    project.run(NIGHTLY, "--regcase-live=2")
    assert sorted((row.case_id, row.scenario, row.run) for row in project.rows()) == sorted(
        (name, scenario, run) for name in names for scenario, run in [("control", 1), ("live", 1), ("live", 2)]
    )
