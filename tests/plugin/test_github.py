"""Under GitHub Actions pytest itself annotates and adds to the step's summary; elsewhere it does not."""

import pytest

from tests.plugin.gate_project import GateProject


@pytest.mark.parametrize("options", [("-q",), ("-n", "2", "-q"), ("-s", "--color=yes")], ids=str)
def test_annotations_start_a_line_and_the_summary_is_added(
    project: GateProject, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.root.parent))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.root / "summary.md"))
    project.add_case("trial-1", ["stall-v1", "killed-v1"])
    project.script(
        {
            "trial-1::killed-v1": ["not-recovered"] * 3,
            "trial-1::stall-v1": ["not-recovered", "recovered", "recovered"],
        }
    )
    result = project.run(*options)
    file = f"{project.root.name}/cases/trial-1/case.toml"
    title = "title=regcase check-broken%3A trial-1"
    assert [each for each in result.outlines if each.startswith("::")] == [
        f"::error file={file},line=17,{title}::killed-v1: max_retries broken in 3 of 3 attempts",
        f"::warning file={file},line=13,title=regcase flaky%3A trial-1::stall-v1: FLAKY, failed in 1 of 3"
        " attempts, which confirm:2 does not call red",
    ]
    assert (project.root / "summary.md").read_text().startswith("## regcase: FAIL\n")


def test_the_case_of_a_function_is_annotated_in_its_file_though_no_case_was_asked_for(
    project: GateProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.root))
    project.add_case("trial-1", ["stall-v1"])
    project.pytester.makepyfile(
        test_mine="import pytest\n@pytest.mark.regcase('trial-1')\ndef test_mine(regcase): pass\n"
    )
    project.script({"test_mine::stall-v1": ["not-recovered"] * 3})
    result = project.run("test_mine.py", "-q")
    (line,) = [each for each in result.outlines if each.startswith("::")]
    assert line.startswith("::error file=cases/trial-1/case.toml,line=13,title=regcase check-broken%3A trial-1::")


def test_a_summary_that_cannot_be_written_is_said_and_decides_nothing(
    project: GateProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.root / "no" / "summary.md"))
    project.add_case("trial-1", [])
    result = project.run()
    result.stdout.fnmatch_lines(
        ["regcase: Couldn't add to the step summary *summary.md: No such file or directory."]
    )
    assert result.ret == pytest.ExitCode.OK


def test_elsewhere_nothing_is_annotated(project: GateProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.root / "summary.md"))
    project.add_case("trial-1", [])
    project.script({"trial-1::control": ["inconclusive"] * 2})
    result = project.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.no_fnmatch_line("::*")
    assert not (project.root / "summary.md").exists()
