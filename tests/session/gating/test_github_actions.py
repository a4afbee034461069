"""What is told to the runner: paths from its workspace on, and a summary that never grows too large."""

from pathlib import Path

import pytest

from pytest_regcase.case_files import load_case
from pytest_regcase.session.gating import github_actions
from pytest_regcase.session.gating.github_actions import GitHubActions
from tests.plugin.gate_project import write_case
from tests.reporters.decision_samples import everything

DECISION, ATTEMPTS = everything()


def found(workspace: Path, **more: str) -> GitHubActions:
    actions = GitHubActions.found_in({"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(workspace), **more})
    assert actions is not None
    return actions


@pytest.mark.parametrize("environment", [{}, {"GITHUB_ACTIONS": "false"}, {"GITHUB_STEP_SUMMARY": "s"}])
def test_elsewhere_there_is_no_runner(environment: dict[str, str]) -> None:
    assert GitHubActions.found_in(environment) is None


def test_files_are_named_from_the_workspace_on(tmp_path: Path) -> None:
    case = load_case(write_case(tmp_path / "sub", "a-case", ["hidden-rejection-v1"]))
    (line,) = [
        each for each in found(tmp_path).annotations(DECISION, [case]) if "file=sub" in each and "hid" in each
    ]
    assert line.startswith("::error file=sub/cases/a-case/case.toml,line=13,title=")
    outside = found(tmp_path / "elsewhere").annotations(DECISION, [case])
    assert not any("case.toml,line=13" in each for each in outside)


def test_a_case_file_that_is_gone_costs_only_its_line(tmp_path: Path) -> None:
    case = load_case(write_case(tmp_path, "a-case", ["hidden-rejection-v1"]))
    case.path.unlink()
    assert any(
        "file=cases/a-case/case.toml,line=1," in each for each in found(tmp_path).annotations(DECISION, [case])
    )


def test_the_summary_is_added_behind_what_stands_there(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    actions = found(tmp_path, GITHUB_STEP_SUMMARY=str(path))
    assert actions.add_summary(DECISION, ATTEMPTS) is None
    first = path.read_text()
    assert first.startswith("## regcase: FAIL\n")
    assert actions.add_summary(DECISION, ATTEMPTS) is None
    assert path.read_text() == f"{first}\n{first}"


def test_a_summary_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    said = found(tmp_path, GITHUB_STEP_SUMMARY=str(tmp_path)).add_summary(DECISION, ATTEMPTS)
    assert said == f"Couldn't add to the step summary {tmp_path}: Is a directory."
    assert found(tmp_path).add_summary(DECISION, ATTEMPTS) is None


def test_a_summary_that_github_would_drop_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "summary.md"
    path.write_text("x" * 100)
    monkeypatch.setattr(github_actions, "SUMMARY_LIMIT_BYTES", 200)
    said = found(tmp_path, GITHUB_STEP_SUMMARY=str(path)).add_summary(DECISION, ATTEMPTS)
    assert said is not None
    assert "1 MiB" in said
    assert path.read_text() == "x" * 100
