"""A case file that does not load is one failing item; the others run."""

import pytest

from tests.plugin.gate_project import GateProject


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_the_others_run_and_the_run_is_red(project: GateProject, parallel: tuple[str, ...]) -> None:
    project.add_case("trial-36")
    broken = project.add_case("trial-37")
    broken.write_text(broken.read_text().replace("failing_step = 6", "failing_step = 7\nfailing_stp = 6"))
    result = project.run("-v", *parallel)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "regcase: profile pull-request; 1 case, 3 checks, 1 invalid case file",
            "*cases/trial-37/case.toml::invalid*",
            "*= FAILURES =*",
            "*trial-37::invalid*",
            "cases/trial-37/case.toml:*: unknown key*failing_stp*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_it_is_red_even_where_pytest_does_not_see_the_file(project: GateProject) -> None:
    project.add_case("trial-36")
    project.add_case("trial-37").write_text("nonsense")
    result = project.run("--ignore", "cases/trial-37")
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*trial-37*"])


def test_an_unknown_simulation_and_an_unknown_agent_are_said(project: GateProject) -> None:
    project.add_case("trial-36", ["no-such-v1"])
    case = project.add_case("trial-37")
    case.write_text(case.read_text().replace("title =", 'agent = "nobody"\ntitle ='))
    result = project.run()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["*Couldn't find the simulation 'no-such-v1'*", "*Couldn't find the agent 'nobody'*"]
    )


def test_two_cases_of_one_id_are_both_invalid(project: GateProject) -> None:
    case = project.add_case("trial-37")
    copy = case.parent.parent / "copy"
    copy.mkdir()
    (copy / "case.toml").write_text(case.read_text())
    result = project.run()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*cases/copy/case.toml*is also that of*cases/trial-37/case.toml*"])
    assert project.calls() == []


def test_a_broken_simulation_is_a_usage_error_before_anything_runs(project: GateProject) -> None:
    project.add_case("trial-37")
    (project.root / "fixtures" / "stall-v1.toml").write_text("schema = 1\n")
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*fixtures/stall-v1.toml*"])


def test_a_wrong_setting_of_the_project_is_a_usage_error(project: GateProject) -> None:
    project.add_case("trial-37")
    path = project.root / "pyproject.toml"
    path.write_text(path.read_text().replace("[tool.regcase]\n", "[tool.regcase]\nledgr = 'x'\n"))
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*pyproject.toml:2: *ledgr*"])
