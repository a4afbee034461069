"""`--regcase-agent`."""

import pytest

from tests.plugin.gate_project import GateProject


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_every_case_is_run_with_that_agent(project: GateProject, parallel: tuple[str, ...]) -> None:
    project.add_case("trial-37", [])
    project.run("--regcase-agent=other", *parallel)
    project.run(*parallel)
    assert [row.agent for row in project.rows()] == ["other", "default"]


def test_an_agent_that_is_not_configured_makes_every_case_fail_and_says_which_there_are(
    project: GateProject,
) -> None:
    project.add_case("trial-37", [])
    result = project.run("--regcase-agent=nobody")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*Couldn't find the agent 'nobody': *default*other*"])
    assert project.calls() == []
