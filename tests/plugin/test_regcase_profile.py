"""`--regcase-profile`."""

import json

import pytest

from tests.plugin.gate_project import GateProject


def test_pull_request_is_the_default_and_the_decision_names_it(project: GateProject) -> None:
    project.add_case("trial-37", [])
    project.run("--regcase-report=a.json")
    project.run("--regcase-report=b.json", "--regcase-profile=nightly")
    named = [json.loads((project.root / each).read_text())["gate"]["profile"] for each in ("a.json", "b.json")]
    assert named == ["pull-request", "nightly"]


def test_another_word_is_a_usage_error(project: GateProject) -> None:
    project.add_case("trial-37", [])
    result = project.run("--regcase-profile=weekly")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*invalid choice: 'weekly'*pull-request*nightly*release*"])
    assert project.calls() == []


def test_release_runs_nothing_and_decides_over_the_newest_session_of_each_case(project: GateProject) -> None:
    project.add_case("trial-37", ["stall-v1"])
    project.add_case("trial-38", ["stall-v1"])
    project.script({"trial-38::stall-v1": ["not-recovered"] * 3})
    assert project.run("cases/trial-38").ret == pytest.ExitCode.TESTS_FAILED
    assert project.run("cases/trial-37").ret == pytest.ExitCode.OK
    made = len(project.calls())
    red = project.run("--regcase-profile=release")
    assert red.ret == pytest.ExitCode.TESTS_FAILED
    red.stdout.fnmatch_lines(
        [
            "regcase: profile release; 2 cases, 0 checks",
            "regcase: nothing is run; for each case its newest session in the ledger decides",
            "*max_retries: 5 requests after the first, 3 allowed",
            "FAIL (profile release, *): 2 cases, 4 checks: 3 passed, 1 broken",
        ]
    )
    assert project.run("cases/trial-38").ret == pytest.ExitCode.OK
    green = project.run("--regcase-profile=release", "-n2")
    assert green.ret == pytest.ExitCode.OK
    green.stdout.fnmatch_lines(["PASS (profile release, *"])
    assert len(project.calls()) == made + 2


def test_release_keeps_what_pytest_says_of_ordinary_tests(project: GateProject) -> None:
    project.add_case("trial-37", [])
    project.run()
    given = ("--regcase-profile=release", "--regcase-with-tests")
    assert project.run(*given).ret == pytest.ExitCode.NO_TESTS_COLLECTED
    (project.root / "test_it.py").write_text("def test_it(): assert False")
    assert project.run(*given).ret == pytest.ExitCode.TESTS_FAILED
    assert project.run("--regcase-profile=release").ret == pytest.ExitCode.OK


def test_release_needs_what_another_agent_does_not_show(project: GateProject) -> None:
    project.add_case("trial-37", [])
    project.run("--regcase-agent=other")
    result = project.run("--regcase-profile=release")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*UNPROVEN  trial-37: none of its checks was planned"])
    assert project.run("--regcase-profile=release", "--regcase-agent=other").ret == pytest.ExitCode.OK


@pytest.mark.parametrize("option", ["--regcase-live=3", "--regcase-shard=1/2", "--regcase-max-minutes=5.0"])
def test_release_refuses_what_is_about_runs(project: GateProject, option: str) -> None:
    result = project.run("--regcase-profile=release", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{option} cannot be combined with --regcase-profile=release*"])
