"""A trial that our own recorder wrote becomes a case, and the case runs."""

import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_regcase.capture import Recorder, Task, run_trial
from pytest_regcase.case_files import load_case
from pytest_regcase.cli import main
from tests.capture.conftest import git
from tests.plugin.real_project import EDIT, RealProject, say


def crashing_agent(trial: Recorder) -> None:
    """Answer step 1, edit, and lose the model at step 2."""
    assert trial.config.task_text is not None
    trial.step("user", trial.config.task_text)
    reply = say(1, "bash", command=EDIT)
    trial.model_call(seconds=0.1)
    trial.step("assistant", reply["text"], tool_calls=reply["tool_calls"], offered_tools=["bash", "submit"])
    done = subprocess.run(EDIT, shell=True, cwd=trial.work_dir, check=True, capture_output=True, text=True)
    trial.step("tool", done.stdout, tool_call_id="call_1")
    try:
        raise TimeoutError("no answer within 30 s")
    except TimeoutError as error:
        trial.model_call(error=error)
        raise RuntimeError("gave up") from error


def test_a_case_of_our_own_crashed_trial_runs(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = RealProject(pytester)
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "code.py").write_text("number = 1\n")
    git(repository, "init", "--quiet")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "one")
    record = run_trial(
        tmp_path / "run" / "numbers",
        task=Task(id="numbers", text="Make number two.\n", repo=str(repository)),
        agent=crashing_agent,
        config={"run_id": "run-1", "attempt": 1, "model": "m"},
    )
    assert record.error is not None
    assert record.error.raised_by == "supplier"

    shutil.rmtree(repository / ".git")
    monkeypatch.chdir(project.root)
    words = ["--owner", "me", "--id", "ours", "--work-tree", str(repository)]
    assert main(["new", "--from-trial", str(record.folder), *words]) == 0
    path = project.root / "cases" / "ours" / "case.toml"
    case = load_case(path).case
    assert case.observation.failing_step == 2
    assert (case.observation.termination, case.observation.cause_status) == ("error", "unknown")
    assert case.observation.error is not None
    assert (case.observation.error.type, case.observation.error.raised_by) == ("RuntimeError", "supplier")

    # One of the drafted simulations is enough here.
    head, *_, last = path.read_text().split("\n[[hypotheses]]")
    rest = last[last.index("\n[expected_recovery]") :]
    path.write_text(f'{head}\n[[hypotheses]]\nid = "auth"\nsimulations = ["auth-rejected-v1"]\n{rest}')
    result = project.run()
    result.assert_outcomes(passed=2)
    assert project.verdicts() == {
        "ours::control": ["finished"],
        "ours::auth-rejected-v1": ["recovered"],
    }
