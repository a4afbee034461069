import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_regcase.capture import read_record
from pytest_regcase.config import Project
from pytest_regcase.errors import FileError, UnknownName, UsageRefused
from pytest_regcase.session.batches.batch import BatchResult, Progress, opened
from pytest_regcase.session.batches.batch_plan import Wanted
from pytest_regcase.session.batches.run_folder import RunFolder
from pytest_regcase.session.batches.summary import summarise
from tests.session.batches.run_project import contents, make_project, run_tasks


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Three tasks, the second of which crashes its agent."""
    return make_project(tmp_path_factory.mktemp("three"), one="work", two="crash", three="nothing")


@pytest.fixture(scope="module")
def ran(three: Project) -> tuple[BatchResult, list[Progress]]:
    """The three tasks after a run."""
    seen: list[Progress] = []
    return run_tasks(three, seen=seen), seen


def test_a_crash_in_the_second_of_three_stops_no_other(
    three: Project, ran: tuple[BatchResult, list[Progress]]
) -> None:
    out = three.root / "out"
    result, seen = ran
    assert result.counts == {"unscored": 2, "agent_error": 1}
    one, two, last = (read_record(out / name) for name in ("one", "two", "three"))
    assert (one.termination, two.termination, last.termination) == ("finished", "error", "finished")
    assert one.submission is not None
    assert "+a + b" in (one.submission.patch or "")
    assert two.submission is None
    assert "+a + b" in (two.partial_patch or "")
    predictions = [json.loads(line) for line in (out / "predictions.jsonl").read_text().splitlines()]
    assert [(each["instance_id"], each["status"]) for each in predictions] == [
        ("one", "submitted"),
        ("two", "agent_error"),
        ("three", "submitted"),
    ]
    assert predictions[1]["model_patch"] is None
    assert [(each.what, each.task_id) for each in seen] == [
        ("begun", None),
        *((what, name) for name in ("one", "two", "three") for what in ("started", "finished")),
    ]
    assert seen[4].says == "AgentFailed: the agent ended with exit code 1: ConnectionError: the supplier hung up"
    assert seen[-1].left_seconds == 0.0


def test_the_work_tree_and_the_agents_home_are_put_away(
    three: Project, ran: tuple[BatchResult, list[Progress]]
) -> None:
    for name in ("one", "two", "three"):
        folder = three.root / "out" / name
        assert {each.status for each in read_record(folder).cleanup} == {"done"}
        assert not {"work", "home", "tmp"} & {each.name for each in folder.iterdir()}
    assert (three.root / "repo" / "sums.txt").read_text() == "a - b\n"


def test_run_json_says_what_was_asked_for_and_under_which_conditions(
    three: Project, ran: tuple[BatchResult, list[Progress]]
) -> None:
    manifest = RunFolder(three.root / "out").manifest()
    assert manifest.requested == ("one", "two", "three")
    assert manifest.kind == "real"
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=three.root / "repo", check=True, capture_output=True, text=True
    )
    assert {each.base_commit for each in manifest.tasks.values()} == {head.stdout.strip()}
    agent = manifest.conditions["agents"]["default"]
    assert agent["revision"].startswith("sha256:")
    assert agent["limits"] == {"cap_seconds": 120}
    assert {"pytest-regcase", "python"} <= set(manifest.conditions["versions"])
    assert isinstance(manifest.conditions["seed"], int)


def test_a_resumed_run_does_again_only_what_it_is_asked_to(
    three: Project, ran: tuple[BatchResult, list[Progress]]
) -> None:
    out = three.root / "again"
    shutil.copytree(three.root / "out", out)
    finished = contents(out, ["one", "three"])
    seen: list[Progress] = []
    run_tasks(three, out="again", resume=True, seen=seen)
    assert [each.what for each in seen] == ["begun"]
    agent = three.config.agents["default"].model_copy(
        update={"command": ("sh", "-c", "printf 'a + b\\n' > sums.txt")}
    )
    mended = Project(three.root, three.config.model_copy(update={"agents": {"default": agent}}))
    result = run_tasks(mended, out="again", resume=True, crashed=True, seen=seen)
    assert result.counts == {"unscored": 3}
    assert [each.task_id for each in seen if each.what == "started"] == ["two"]
    assert contents(out, ["one", "three"]) == finished
    earlier = read_record(out / "earlier-attempts" / "two-1")
    assert earlier.termination == "error"
    assert read_record(out / "two").identity["attempt"] == 2
    assert "agents" in RunFolder(out).manifest().resumed[-1].conditions_changed
    summed = summarise(out)
    assert summed.attempts == 4
    assert summed.tasks[1].earlier_attempts == 1
    assert any("other conditions: agents" in each for each in summed.notices)


def test_ids_are_checked_before_anything_starts_and_every_offender_is_named(three: Project) -> None:
    with pytest.raises(UsageRefused) as refused:
        run_tasks(three, "one", "", "one", "nope", "nor-this", out="never")
    assert "id 2 of 5 is empty" in refused.value.text
    assert "asked for more than once: one" in refused.value.text
    assert "unknown: nope, nor-this" in refused.value.text
    assert not (three.root / "never").exists()


def test_a_file_without_tasks_and_no_file_at_all_are_refused(tmp_path: Path, three: Project) -> None:
    (tmp_path / "none.jsonl").write_text("\n")
    with pytest.raises(UsageRefused, match="it holds none"):
        run_tasks(three, out="never", tasks_file=tmp_path / "none.jsonl")
    with pytest.raises(UsageRefused, match=r"has no tasks.toml and no tasks.jsonl"):
        run_tasks(Project(tmp_path, three.config), out="never")
    assert not (tmp_path / "never").exists()


def test_a_task_named_as_a_file_of_the_run_is_refused(tmp_path: Path, three: Project) -> None:
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text('{"id": "run.json", "text": "x"}\n')
    with pytest.raises(UsageRefused, match=r"needs for itself: run\.json"):
        run_tasks(three, out="never", tasks_file=tasks)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('repo = "nowhere"', "there is no folder"),
        ('repo = "repo"\nbase_commit = "0000000"', "has no commit 0000000"),
        ('repo = "repo"\nagent = "other"', "other"),
    ],
)
def test_a_repository_commit_or_agent_that_is_not_there_is_found_before_anything_starts(
    three: Project, more: str, says: str
) -> None:
    tasks = three.root / "wrong.toml"
    tasks.write_text(f'[[task]]\nid = "one"\ntext = "x"\n{more}\n')
    with pytest.raises((UsageRefused, UnknownName), match=says):
        run_tasks(three, out="never", tasks_file=tasks)
    assert not (three.root / "never").exists()


def test_a_text_that_cannot_be_read_is_found_before_anything_starts(three: Project) -> None:
    tasks = three.root / "texts.toml"
    tasks.write_text("".join(f'[[task]]\nid = "{name}"\ntext_file = "{name}.txt"\n' for name in ("a", "b")))
    with pytest.raises(FileError) as refused:
        run_tasks(three, out="never", tasks_file=tasks)
    assert [each.partition(":")[0].rpartition("/")[2] for each in refused.value.problems] == ["a.txt", "b.txt"]
    assert not (three.root / "never").exists()


def test_a_folder_that_is_in_use_or_of_another_kind_is_refused(three: Project, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with (
        folder.locked(),
        pytest.raises(UsageRefused, match=f"another regcase run \\(process {os.getpid()}\\) is at it"),
        opened(three, Wanted(out=tmp_path)),
    ):
        pytest.fail("two runners at once")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageRefused, match="it holds other files"), opened(three, Wanted(out=tmp_path)):
        pytest.fail("it is somebody's folder")
    with (
        pytest.raises(UsageRefused, match=r"holds no run\.json"),
        opened(three, Wanted(out=tmp_path, resume=True)),
    ):
        pytest.fail("there is no run")
    (tmp_path / ".regcase-run.lock").unlink()
    with pytest.raises(UsageRefused, match="it holds other files"), opened(three, Wanted(out=tmp_path)):
        pytest.fail("it is somebody's folder")
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]


def test_an_agent_that_wants_a_supplier_is_refused_where_there_is_none(three: Project) -> None:
    agent = three.config.agents["default"].model_copy(update={"env": {"OPENAI_BASE_URL": "{openai_base_url}"}})
    config = three.config.model_copy(update={"agents": {"default": agent}})
    with pytest.raises(UsageRefused, match=r"no \[tool.regcase.upstream\]"):
        run_tasks(Project(three.root, config), out="never")
    agent = agent.model_copy(update={"env": {}, "live_env": ("SURELY_NOT_SET",)})
    config = three.config.model_copy(update={"agents": {"default": agent}})
    with pytest.raises(UsageRefused, match="SURELY_NOT_SET"):
        run_tasks(Project(three.root, config), out="never")


@pytest.fixture
def broken(tmp_path: Path) -> Project:
    """Five tasks, and an agent whose program is not there."""
    project = make_project(tmp_path, **{f"task-{number}": "work" for number in range(1, 6)})
    (tmp_path / "tasks.toml").write_text(
        "".join(f'[[task]]\nid = "task-{number}"\ntext = "x"\n' for number in range(1, 6))
    )
    agent = project.config.agents["default"].model_copy(update={"command": ("no-such-program-at-all",)})
    return Project(project.root, project.config.model_copy(update={"agents": {"default": agent}}))


def test_three_start_ups_that_fail_alike_stop_the_run(broken: Project) -> None:
    result = run_tasks(broken)
    assert result.counts == {"agent_error": 3, "not_reached": 2}
    assert result.stopped_because is not None
    assert "3 start-ups failed in the same way" in result.stopped_because
    assert "no-such-program-at-all" in result.stopped_because
    again = run_tasks(broken, resume=True, keep_going=True)
    assert again.counts == {"agent_error": 5}
    assert again.stopped_because is None


def test_several_tasks_run_at_the_same_time(tmp_path: Path) -> None:
    project = make_project(tmp_path, one="meet", two="crash", three="meet")
    result = run_tasks(project, jobs=3)
    assert result.counts == {"unscored": 2, "agent_error": 1}
    lines = (tmp_path / "out" / "predictions.jsonl").read_text().splitlines()
    assert {json.loads(each)["instance_id"] for each in lines} == {"one", "two", "three"}


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_is_recorded_and_everything_put_away(tmp_path: Path, jobs: int) -> None:
    project = make_project(tmp_path, one=f"kill {os.getpid()}", two="sleep", three="work")
    with pytest.raises(KeyboardInterrupt):
        run_tasks(project, jobs=jobs)
    one = read_record(tmp_path / "out" / "one")
    assert one.ended
    assert one.termination == "cancelled"
    assert {each.status for each in one.cleanup} == {"done"}
    summed = summarise(tmp_path / "out")
    assert summed.counts["interrupted"] >= 1
    assert summed.counts["not_reached"] >= 1
    assert sum(summed.counts.values()) == 3
    (tmp_path / "agent.sh").write_text("true\n")
    assert run_tasks(project, resume=True).counts == {"unscored": 3}


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Path]:
    """A run of three that was killed while the second was at work."""
    make_project(tmp_path, one="work", two="wait", three="work")
    runner = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from pytest_regcase.cli import main; sys.exit(main())",
            "run",
            "--out",
            "out",
            "-q",
        ],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
    )
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "out" / "two" / "out" / "waiting").exists():
            assert runner.poll() is None, runner.communicate()[1].decode()
            assert time.monotonic() < until
            time.sleep(0.02)
    finally:
        runner.send_signal(signal.SIGKILL)
        runner.communicate()
    yield tmp_path
    (tmp_path / "go-on").touch()


def test_a_run_that_was_killed_after_one_is_completed_without_touching_that_one(killed: Path) -> None:
    from pytest_regcase.config import load_project

    out = killed / "out"
    statuses = {each.task_id: each.status for each in summarise(out).tasks}
    # Not by a scorer, not by predictions: what was asked for, and is not there.
    assert statuses == {"one": "unscored", "two": "interrupted", "three": "not_reached"}
    finished = contents(out, ["one"])
    (killed / "go-on").touch()
    result = run_tasks(load_project(killed), resume=True)
    assert result.counts == {"unscored": 3}
    assert contents(out, ["one"]) == finished
    assert [json.loads(each)["instance_id"] for each in (out / "predictions.jsonl").read_text().splitlines()] == [
        "one",
        "two",
        "three",
    ]
