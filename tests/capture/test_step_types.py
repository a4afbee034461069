"""Every type of step on its own path: one that scores the agent's work and is no grader is found."""

import os
import shutil
import sys
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest

from pytest_regcase.capture import (
    STEP_TYPES,
    EmptyWorkTree,
    Recorder,
    RoleRefused,
    StepContext,
    StepFailed,
    StepType,
    TaskStep,
    record_trial,
    step_type,
)
from pytest_regcase.errors import ExtensionError
from pytest_regcase.records.words import StepRole
from tests.capture.conftest import kinds

BUILT_IN = {
    "start_environment": "other",
    "prompt_agent": "agent",
    "capture_patch": "evidence",
    "snapshot_environment": "evidence",
    "snapshot_agent_state": "evidence",
    "collect_artifacts": "evidence",
    "grade": "grader",
    "run_code": "other",
}


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Recorder]:
    with record_trial(tmp_path / "trial", task_id="t") as recorder:
        yield recorder


class Watched(Recorder):
    """A recorder that notes who tried to score the agent's work, whether they may or not."""

    scored_by: list[str]

    def verification(self, name: object, passed: bool, **details: object) -> None:
        assert self._running is not None
        self.scored_by.append(self._running[0])
        super().verification(name, passed, **details)


def context(
    trial: Recorder, kind: StepType, *, command: tuple[str, ...] = (), paths: tuple[str, ...] = ()
) -> StepContext:
    step = TaskStep(id=kind.name, type=kind.name, command=command, paths=paths)
    return StepContext(trial, step, kind.role, lambda trial: trial.step("assistant", "hello"), EmptyWorkTree())


def who_scores_without_being_a_grader(trial: Recorder, types: Mapping[str, StepType]) -> list[str]:
    """Run every type's path; return the names of those that wrote a verification and are no graders."""
    trial.__class__ = Watched
    assert isinstance(trial, Watched)
    trial.scored_by = []
    # The environment first: the others look at its work tree.
    names = sorted(types, key=lambda name: (name != "start_environment", name))
    for name in names:
        kind = types[name]
        run = context(trial, kind, command=(sys.executable, "-c", "open('made.txt', 'w')"), paths=("*",))
        with suppress(RoleRefused), trial.task_step(name, name, kind.role):
            kind.run(run)
        if trial.work_dir is not None:
            (trial.work_dir / "a.txt").write_text("a")
    return sorted({each for each in trial.scored_by if types[each].role != "grader"})


def test_no_registered_type_scores_without_being_a_grader(trial: Recorder) -> None:
    assert who_scores_without_being_a_grader(trial, STEP_TYPES) == []
    assert set(trial.scored_by) == {"grade"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("role", [each for each in get_args(StepRole) if each != "grader"])
def test_a_wrong_type_is_found(trial: Recorder, role: StepRole) -> None:
    def scores(context: StepContext) -> None:
        context.trial.verification("all is well", True)

    wrong = {**STEP_TYPES, "lenient": StepType("lenient", role, scores)}
    assert who_scores_without_being_a_grader(trial, wrong) == ["lenient"]
    # And what it said is not in the record, whichever role it has.
    assert {each["step_id"] for each in kinds(trial.folder, "verification")} == {"grade"}


def test_the_types_that_we_bring_and_their_roles() -> None:
    assert {name: STEP_TYPES[name].role for name in BUILT_IN} == BUILT_IN
    assert all(name == kind.name for name, kind in STEP_TYPES.items())


def test_a_new_type_is_one_line_over_a_function(trial: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(STEP_TYPES):
        monkeypatch.setitem(STEP_TYPES, name, STEP_TYPES[name])  # puts the table back afterwards

    @step_type("lint", role="grader")
    def lint(context: StepContext) -> None:
        context.trial.verification("lint", True)

    try:
        assert STEP_TYPES["lint"] == StepType("lint", "grader", lint)
        with pytest.raises(ExtensionError, match="has one of that name"):
            step_type("lint", role="other")(lint)
        assert "lint" not in who_scores_without_being_a_grader(trial, STEP_TYPES)
    finally:
        del STEP_TYPES["lint"]


def test_a_role_that_there_is_not() -> None:
    with pytest.raises(ExtensionError, match="agent, grader, evidence, other"):
        step_type("x", role="judge")  # type: ignore[arg-type]


@pytest.fixture
def work(trial: Recorder, tmp_path: Path) -> Path:
    kind = STEP_TYPES["start_environment"]
    kind.run(context(trial, kind))
    assert trial.work_dir is not None
    return trial.work_dir


def run(trial: Recorder, name: str, *, command: tuple[str, ...] = (), paths: tuple[str, ...] = ()) -> None:
    kind = STEP_TYPES[name]
    with trial.task_step(name, name, kind.role):
        kind.run(context(trial, kind, command=command, paths=paths))


def test_snapshots_hold_the_files_and_no_repository(trial: Recorder, work: Path) -> None:
    (work / "a").mkdir()
    (work / "a" / "b.txt").write_text("b")
    (trial.out_dir / "state.json").write_text("{}")
    run(trial, "snapshot_environment")
    run(trial, "snapshot_agent_state")
    with tarfile.open(trial.folder / "artifacts" / "snapshot_environment.tar.gz") as archive:
        assert sorted(archive.getnames()) == [".", "./a", "./a/b.txt"]
    with tarfile.open(trial.folder / "artifacts" / "snapshot_agent_state.tar.gz") as archive:
        assert "./state.json" in archive.getnames()


def test_a_command_gets_its_places_and_its_words_are_kept(trial: Recorder, work: Path) -> None:
    code = "import sys, os; print(sys.argv[1:], os.getcwd())"
    run(trial, "run_code", command=(sys.executable, "-c", code, "{work_dir}", "{out_dir}", "{task_id}", "${HOME}"))
    said = (trial.folder / "artifacts" / "run_code.txt").read_text()
    assert said == f"{[str(work), str(trial.out_dir), 't', '${HOME}']} {work}\n"


def test_a_command_that_fails_says_its_last_words(trial: Recorder, work: Path) -> None:
    with pytest.raises(StepFailed, match=r"ended with 3\.\nno such option"):
        run(trial, "run_code", command=(sys.executable, "-c", "print('no such option'); exit(3)"))
    with pytest.raises(StepFailed, match="no-such-program-anywhere"):
        run(trial, "run_code", command=("no-such-program-anywhere",))
    with pytest.raises(StepFailed, match="ended with -9"):
        run(trial, "run_code", command=("sh", "-c", "kill -9 $$"))


def test_what_a_command_leaves_running_is_ended(trial: Recorder, work: Path) -> None:
    program = "import os, subprocess as s; print(s.Popen(['sleep', '600'], start_new_session=True).pid)"
    run(trial, "run_code", command=(sys.executable, "-c", program))
    pid = int((trial.folder / "artifacts" / "run_code.txt").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert [each.name for each in (trial.folder / "artifacts").iterdir()] == ["run_code.txt"]


def test_a_command_that_takes_too_long_is_ended(
    trial: Recorder, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_regcase.capture.built_in_steps.COMMAND_SECONDS", 0.3)
    with pytest.raises(StepFailed, match=r"longer than 0\.3 s"):
        run(trial, "run_code", command=(sys.executable, "-c", "import time; time.sleep(600)"))


def test_artifacts_that_are_not_there_or_lead_out(trial: Recorder, work: Path, tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="no such file below"):
        run(trial, "collect_artifacts", paths=("*.log",))
    (tmp_path / "secret").write_text("s")
    (work / "link.log").symlink_to(tmp_path / "secret")
    with pytest.raises(StepFailed, match="points out of the work tree"):
        run(trial, "collect_artifacts", paths=("*.log",))
    assert not (trial.folder / "artifacts" / "collect_artifacts").exists()


@pytest.mark.parametrize("name", ["snapshot_environment", "collect_artifacts", "capture_patch"])
def test_evidence_without_an_environment_is_a_failure_that_says_so(trial: Recorder, name: str) -> None:
    with pytest.raises(Exception, match=r"there is n|no git work tree"):
        run(trial, name, paths=("*",))


def test_a_work_tree_that_cannot_be_removed_is_said(
    trial: Recorder, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(path: Path) -> None:
        raise OSError(16, "Device or resource busy")

    trial.capture_patch()
    (_, stop) = trial.cleanups[-1]
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", busy)
        with pytest.raises(OSError, match="busy"):
            stop()
