"""The controlled checks: a real work tree, real subprocesses, and in each of them all is put away."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from pytest_regcase.capture import (
    EmptyWorkTree,
    GitWorkTree,
    Recorder,
    Task,
    TaskStep,
    TrialRecord,
    read_record,
    run_trial,
)
from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import read_one, read_output
from tests.capture.conftest import git, kinds, predictions_of

Agent = Callable[[Recorder], object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "trial"


@pytest.fixture
def task(repository: Path, base_commit: str) -> Task:
    return Task(id="calc", text="Correct calc.py.", repo=str(repository), base_commit=base_commit)


def edits(trial: Recorder) -> None:
    """Change a file and make one, in a process of its own, as an agent's tool would."""
    trial.step("user", "Correct calc.py.")
    trial.step("assistant", "Editing.", tool_calls=[{"id": "c1", "name": "bash", "arguments": {"command": "..."}}])
    code = "import pathlib as p; p.Path('calc.py').write_text('half\\n'); p.Path('new.py').write_text('new\\n')"
    subprocess.run([sys.executable, "-c", code], cwd=trial.work_dir, check=True)
    trial.step("tool", "done", tool_call_id="c1")


def edits_then_fails(trial: Recorder) -> None:
    edits(trial)
    raise ConnectionError("lost")


def assert_put_away(folder: Path, repository: Path) -> None:
    """Everything was put away, that is recorded, and the repository is as it was."""
    assert kinds(folder, "cleanup") == [{"what": "work tree", "status": "done"}]
    assert not (folder / "work").exists()
    assert git(repository, "status", "--porcelain") == ""
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert git(repository, "branch", "--all").split() == ["*", "main"]


def test_an_edit_followed_by_a_connection_error(folder: Path, task: Task, repository: Path) -> None:
    record = run_trial(folder, task=task, agent=edits_then_fails, config={"model": "m", "run_id": "r"})
    assert_put_away(folder, repository)
    assert (record.termination, record.outcome, record.ended) == ("error", "undetermined", True)
    assert record.error is not None
    assert (record.error.type, record.error.message, record.error.raised_by) == (
        "ConnectionError",
        "lost",
        "agent",
    )
    assert record.partial_patch is not None
    assert "+half" in record.partial_patch
    assert "+new" in record.partial_patch
    assert record.submission is None
    (failed,) = record.failed_steps
    assert failed.to_plain() == {
        "step_id": "prompt_agent",
        "type": "prompt_agent",
        "error": "ConnectionError: lost",
        "fatal": True,
        "step_role": "agent",
        "cause": "transient",
    }
    assert predictions_of(folder) == [
        {"instance_id": "calc", "model_name_or_path": "m", "model_patch": None, "status": "agent_error"}
    ]
    trial = read_one(folder / "trial.jsonl")
    assert (trial.failing_step, trial.task_text, len(trial.replies)) == (2, "Correct calc.py.", 1)
    assert trial.partial_patch == record.partial_patch
    assert trial.missing == ()
    assert trial.labels == ("failed-step:prompt_agent:agent:transient",)
    assert read_record(folder) == record


def test_a_failed_start_up(folder: Path, task: Task, repository: Path) -> None:
    class Broken(GitWorkTree):
        def start(self, folder: Path) -> Path:
            super().start(folder)
            raise ConnectionRefusedError("no docker daemon")

    called: list[Recorder] = []
    record = run_trial(folder, task=task, agent=called.append, environment=Broken(repository, task.base_commit))
    assert called == []
    assert_put_away(folder, repository)
    assert record.termination == "error"
    assert record.error is not None
    assert (record.error.type, record.error.raised_by) == ("ConnectionRefusedError", "environment")
    assert (record.partial_patch, record.patch_capture, record.submission) == (None, None, None)
    assert record.task_steps == {
        "start_environment": "failed",
        "prompt_agent": "skipped",
        "capture_patch": "skipped",
    }
    assert record.failed_steps[0].step_role == "other"
    assert predictions_of(folder)[0]["status"] == "agent_error"
    trial = read_one(folder / "trial.jsonl")
    assert (trial.failing_step, trial.steps, trial.missing) == (None, (), ())


def test_a_normal_edit(folder: Path, task: Task, repository: Path, tmp_path: Path) -> None:
    record = run_trial(folder, task=task, agent=edits)
    assert_put_away(folder, repository)
    assert (record.termination, record.error, record.failed_steps) == ("finished", None, ())
    assert record.submission is not None
    assert record.submission.by == "harness"
    (prediction,) = predictions_of(folder)
    assert (prediction["status"], prediction["model_patch"]) == ("submitted", record.submission.patch)
    fresh = GitWorkTree(repository, task.base_commit).start(tmp_path / "fresh")
    subprocess.run(["git", "apply"], cwd=fresh, input=prediction["model_patch"].encode(), check=True)
    assert (fresh / "new.py").read_text() == "new\n"
    with pytest.raises(ImportRefused):
        read_one(folder / "trial.jsonl")


def test_a_failed_patch_capture(folder: Path, task: Task, repository: Path) -> None:
    def breaks_the_objects(trial: Recorder) -> None:
        edits(trial)
        assert trial.work_dir is not None
        subprocess.run(["rm", "-rf", ".git"], cwd=trial.work_dir, check=True)

    record = run_trial(folder, task=task, agent=breaks_the_objects)
    assert record.patch_capture is not None
    assert record.patch_capture.status == "failed"
    assert (record.agent_failed, record.patch_capture_failed, record.submission) == (False, True, None)
    assert record.error is not None
    assert (record.error.type, record.error.raised_by) == ("PatchNotCaptured", "harness")
    assert [(each.step_id, each.step_role) for each in record.failed_steps] == [("capture_patch", "evidence")]
    assert predictions_of(folder)[0] | {"model_name_or_path": ""} == {
        "instance_id": "calc",
        "model_name_or_path": "",
        "model_patch": None,
        "status": "patch_capture_failed",
    }
    # The work is nowhere else, so it is left in place, and that is said; the repository is as it was.
    assert kinds(folder, "cleanup") == [{"what": "work tree", "status": "kept"}]
    assert (folder / "work" / "calc.py").read_text() == "half\n"
    assert git(repository, "status", "--porcelain") == ""


def test_a_work_tree_at_another_commit_than_the_tasks(folder: Path, task: Task, repository: Path) -> None:
    record = run_trial(folder, task=task, agent=edits, environment=GitWorkTree(repository))
    assert record.patch_capture is not None
    assert record.patch_capture.reason is not None
    assert f"the task's base commit is {task.base_commit}" in record.patch_capture.reason
    assert record.patch_capture.start_commit == git(repository, "rev-parse", "HEAD")
    assert record.submission is None
    assert record.partial_patch is not None
    assert "+half" in record.partial_patch


@pytest.mark.parametrize("spelt", ["v1", "main~1", "short"])
def test_a_base_commit_by_any_name_is_recorded_in_full(
    folder: Path, repository: Path, base_commit: str, tmp_path: Path, spelt: str
) -> None:
    own = tmp_path / "own"
    git(tmp_path, "clone", "--quiet", str(repository), str(own))
    git(own, "tag", "v1", base_commit)
    name = base_commit[:9] if spelt == "short" else spelt
    record = run_trial(folder, task=Task(id="t", repo=str(own), base_commit=name), agent=edits)
    assert record.error is None
    assert record.patch_capture is not None
    assert record.patch_capture.base_commit == record.patch_capture.start_commit == base_commit
    assert record.identity["conditions"] == {"base_commit": base_commit}


def test_no_such_base_commit_is_a_failed_start(folder: Path, task: Task, repository: Path) -> None:
    record = run_trial(folder, task=task.model_copy(update={"base_commit": "f" * 40}), agent=edits)
    assert record.error is not None
    assert (record.error.raised_by, record.error.type) == ("environment", "UsageRefused")
    assert "has no commit ffff" in (record.error.message or "")
    assert git(repository, "status", "--porcelain") == ""


def test_an_agent_sees_the_base_commit_and_nothing_later(folder: Path, task: Task) -> None:
    def looks(trial: Recorder) -> None:
        assert trial.work_dir is not None
        assert git(trial.work_dir, "log", "--all", "--format=%s") == "one"
        assert git(trial.work_dir, "remote") == git(trial.work_dir, "tag") == ""
        assert not (trial.work_dir / "later.txt").exists()
        git(trial.work_dir, "-c", "user.name=x", "commit", "--allow-empty", "--quiet", "-m", "mine")

    assert run_trial(folder, task=task, agent=looks).error is None


def test_a_repository_whose_path_has_a_colon_and_a_quote(tmp_path: Path, task: Task) -> None:
    named = tmp_path / 'at 12:30 "x"'
    git(tmp_path, "clone", "--quiet", str(task.repo), str(named))
    folder = tmp_path / "run:1" / "trial"
    record = run_trial(folder, task=task.model_copy(update={"repo": str(named)}), agent=edits)
    assert record.submission is not None
    assert "+half" in (record.submission.patch or "")


def test_a_task_without_a_repository_starts_from_nothing(folder: Path) -> None:
    record = run_trial(folder, task=Task(id="new", text="Write it."), agent=edits)
    assert record.submission is not None
    assert "+new" in (record.submission.patch or "")
    assert not (folder / "work").exists()


def test_nothing_changed_is_an_empty_submission(folder: Path, task: Task) -> None:
    record = run_trial(folder, task=task, agent=lambda trial: trial.step("assistant", "I looked."))
    assert record.submission is not None
    assert predictions_of(folder)[0]["model_patch"] == "" == record.submission.patch


def test_an_agent_may_be_a_coroutine(folder: Path) -> None:
    async def agent(trial: Recorder) -> None:
        await asyncio.sleep(0)
        trial.step("assistant", "later")

    assert run_trial(folder, task=Task(id="t"), agent=agent).replies == 1


def test_an_agent_that_yields_is_run_to_its_end(tmp_path: Path) -> None:
    def agent(trial: Recorder) -> Iterator[int]:
        yield trial.step("assistant", "one")
        yield trial.step("assistant", "two")

    async def later(trial: Recorder) -> AsyncIterator[int]:
        yield trial.step("assistant", "one")
        await asyncio.sleep(0)
        raise ConnectionError("lost")

    assert run_trial(tmp_path / "one", task=Task(id="t"), agent=agent).replies == 2
    record = run_trial(tmp_path / "two", task=Task(id="t"), agent=later)
    assert (record.replies, record.agent_failed) == (1, True)


def test_a_stop_from_another_thread_ends_a_command_at_once(folder: Path, task: Task, repository: Path) -> None:
    stop = Event()
    # The command itself says when it is under way.
    code = "import pathlib, time; pathlib.Path('../out/begun').touch(); time.sleep(600)"
    waits = TaskStep(id="tests", type="run_code", needs=("patch",), command=(sys.executable, "-c", code))

    def watch() -> None:
        while not (folder / "out" / "begun").exists():
            time.sleep(0.02)
        stop.set()

    watcher = Thread(target=watch)
    watcher.start()
    with pytest.raises(KeyboardInterrupt):
        run_trial(folder, task=task.model_copy(update=steps(waits)), agent=edits, stop=stop)
    watcher.join()
    assert_put_away(folder, repository)
    record = read_record(folder)
    assert (record.termination, record.agent_failed) == ("cancelled", True)
    assert predictions_of(folder)[0]["model_patch"] is None


def test_a_stop_before_a_step_starts_none(folder: Path, task: Task) -> None:
    stop = Event()
    with pytest.raises(KeyboardInterrupt):
        run_trial(folder, task=task, agent=lambda _: stop.set(), stop=stop)
    assert read_record(folder).task_steps["capture_patch"] == "failed"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_is_recorded_the_work_kept_and_raised_again(
    folder: Path, task: Task, repository: Path, error: type[BaseException]
) -> None:
    def interrupted(trial: Recorder) -> None:
        edits(trial)
        raise error

    with pytest.raises(error):
        run_trial(folder, task=task, agent=interrupted)
    assert_put_away(folder, repository)
    record = read_record(folder)
    assert (record.termination, record.ended, record.agent_failed) == ("cancelled", True, True)
    assert record.partial_patch is not None
    assert "+half" in record.partial_patch
    assert predictions_of(folder)[0]["status"] == "agent_error"


def steps(*more: TaskStep) -> dict[str, Any]:
    """A task's usual steps, and more behind them."""
    return {
        "steps": (
            TaskStep(id="start", type="start_environment"),
            TaskStep(id="agent", type="prompt_agent", needs=("start",)),
            TaskStep(id="patch", type="capture_patch", needs=("agent",)),
            *more,
        )
    }


def grader(code: int, **more: Any) -> TaskStep:
    words = (sys.executable, "-c", f"import sys; print('graded'); sys.exit({code})")
    return TaskStep(id="grade", type="grade", needs=("patch",), command=words, **more)


@pytest.mark.parametrize(
    ("code", "outcome", "passed"), [(0, "passed", [True]), (1, "failed", [False]), (2, "undetermined", [])]
)
def test_what_a_graders_exit_code_says(
    folder: Path, task: Task, code: int, outcome: str, passed: list[bool]
) -> None:
    record = run_trial(folder, task=task.model_copy(update=steps(grader(code))), agent=edits)
    assert (record.outcome, [each.passed for each in record.verifications]) == (outcome, passed)
    assert record.scored == bool(passed)
    assert (folder / "artifacts" / "grade.txt").read_text() == "graded\n"
    trial = read_output(folder / "trial.jsonl")
    assert (trial.outcome, trial.missing) == (outcome, ())
    if passed:
        assert f"verification:grade:{outcome}" in trial.labels


def test_a_tolerated_grader(folder: Path, task: Task, repository: Path) -> None:
    def lost(_: Recorder) -> None:
        raise ConnectionError("the grading server is gone")

    step = TaskStep(id="grade", type="grade", needs=("patch",), fail_task_on_error=False)
    record = run_trial(folder, task=task.model_copy(update=steps(step)), agent=edits, grade=lost)
    assert_put_away(folder, repository)
    assert (record.termination, record.outcome, record.error) == ("finished", "undetermined", None)
    assert (record.scored, record.agent_failed) == (False, False)
    (failed,) = record.failed_steps
    assert (failed.step_id, failed.type, failed.fatal, failed.step_role) == ("grade", "grade", False, "grader")
    assert (failed.error, failed.cause) == ("ConnectionError: the grading server is gone", "transient")
    assert predictions_of(folder)[0]["status"] == "submitted"
    assert read_output(folder / "trial.jsonl").labels == ("failed-step:grade:grader:transient",)


def test_a_grader_that_fails_the_trial_takes_nothing_from_the_agents_work(folder: Path, task: Task) -> None:
    # Its patch is read behind the grader: the failure is the grader's all the same.
    late = TaskStep(id="patch", type="capture_patch", needs=("grade",))
    first = steps(grader(2).model_copy(update={"needs": ("agent",)}))["steps"]
    record = run_trial(folder, task=task.model_copy(update={"steps": (*first[:2], first[3], late)}), agent=edits)
    assert record.error is not None
    assert (record.termination, record.error.raised_by) == ("error", "grader")
    assert (record.agent_failed, record.partial_patch) == (False, None)
    assert record.submission is not None
    assert predictions_of(folder)[0]["model_patch"] == record.submission.patch


def test_a_tolerated_snapshot(folder: Path, task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tarfile.open", full)
    snapshot = TaskStep(id="state", type="snapshot_environment", needs=("agent",), fail_task_on_error=False)
    record = run_trial(folder, task=task.model_copy(update=steps(snapshot, grader(0))), agent=edits)
    assert (record.termination, record.outcome) == ("finished", "passed")
    (failed,) = record.failed_steps
    assert (failed.step_id, failed.fatal, failed.step_role) == ("state", False, "evidence")
    assert "No space left" in failed.error
    assert predictions_of(folder)[0]["status"] == "submitted"


def test_a_tolerated_patch_capture(folder: Path, task: Task) -> None:
    usual = steps()["steps"]
    tolerated = usual[2].model_copy(update={"fail_task_on_error": False})
    place = GitWorkTree(Path(str(task.repo)))  # not at the task's base commit
    with_it = task.model_copy(update={"steps": (*usual[:2], tolerated)})
    record = run_trial(folder, task=with_it, agent=edits, environment=place)
    assert (record.termination, record.error, record.patch_capture_failed) == ("finished", None, True)
    assert [(each.step_id, each.fatal) for each in record.failed_steps] == [("patch", False)]
    assert predictions_of(folder)[0]["status"] == "patch_capture_failed"


def test_what_a_killed_trial_left_is_not_taken_for_a_fresh_start(folder: Path, task: Task) -> None:
    (folder / "work").mkdir(parents=True)
    (folder / "work" / "half.py").write_text("half")
    record = run_trial(folder, task=task, agent=edits)
    assert record.error is not None
    assert "is there already" in (record.error.message or "")
    assert (folder / "work" / "half.py").exists()


def test_a_tolerated_agent_is_no_solution(folder: Path, task: Task) -> None:
    changed = steps(grader(0))["steps"]
    tolerated = changed[1].model_copy(update={"fail_task_on_error": False})
    record = run_trial(
        folder,
        task=task.model_copy(update={"steps": (changed[0], tolerated, *changed[2:])}),
        agent=edits_then_fails,
    )
    assert (record.termination, record.outcome) == ("finished", "passed")
    assert (record.agent_failed, record.submission) == (True, None)
    assert record.partial_patch is not None
    assert predictions_of(folder)[0]["status"] == "agent_error"


def test_evidence_is_collected_though_the_agent_crashed(folder: Path, task: Task) -> None:
    more = (
        TaskStep(id="tree", type="snapshot_environment", needs=("agent",)),
        TaskStep(id="files", type="collect_artifacts", needs=("agent",), paths=("*.py", "gone.txt")),
        grader(0),
    )
    record = run_trial(folder, task=task.model_copy(update=steps(*more)), agent=edits_then_fails)
    assert record.task_steps == {
        "start": "done",
        "agent": "failed",
        "patch": "done",
        "tree": "done",
        "files": "failed",
        "grade": "skipped",
    }
    assert record.error is not None
    assert record.error.type == "ConnectionError"
    assert [(each.step_id, each.fatal) for each in record.failed_steps] == [("agent", True), ("files", False)]
    assert (folder / "artifacts" / "files" / "new.py").read_text() == "new\n"


def record_with(folder: Path, task: Task, step: TaskStep, agent: Agent = edits) -> TrialRecord:
    return run_trial(folder, task=task.model_copy(update=steps(step)), agent=agent)


def test_a_step_role_is_overridden_and_what_it_may_do_with_it(folder: Path, task: Task) -> None:
    step = TaskStep(
        id="check",
        type="run_code",
        needs=("patch",),
        step_role="grader",
        command=(sys.executable, "-c", "exit(1)"),
    )
    record = record_with(folder, task, step)
    assert (record.outcome, record.graders) == ("failed", ("check",))
    assert kinds(folder, "verification")[0]["step_id"] == "check"


def test_a_grader_that_is_none_any_more_may_not_score(folder: Path, task: Task) -> None:
    record = record_with(folder, task, grader(0, step_role="other"))
    assert record.verifications == ()
    assert record.error is not None
    assert record.error.type == "RoleRefused"
    assert "step 'grade' has the role other" in (record.error.message or "")


def test_an_empty_work_tree_is_made_and_removed(tmp_path: Path) -> None:
    place = EmptyWorkTree()
    work = place.start(tmp_path)
    assert git(work, "log", "--format=%s") == "Nothing yet"
    assert place.stop(keep_work=True) == "kept"
    assert place.stop(keep_work=False) is None
    assert not work.exists()
    assert place.stop(keep_work=True) is None
