"""The steps of a task: their order, what cannot be, and what is written back."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.capture import STEP_TYPES, Task, TaskStep, load_tasks, plan_steps, serialise_task
from pytest_regcase.errors import FileError, UsageRefused
from pytest_regcase.records.canonical import canonical_json


def step(name: str, *needs: str, **more: Any) -> TaskStep:
    return TaskStep(id=name, type=more.pop("type", "prompt_agent"), needs=needs, **more)


def test_a_task_without_steps_has_the_usual_ones() -> None:
    assert [(each.step.id, each.role) for each in plan_steps(())] == [
        ("start_environment", "other"),
        ("prompt_agent", "agent"),
        ("capture_patch", "evidence"),
    ]


def test_each_comes_behind_what_it_needs_and_else_in_the_files_order() -> None:
    planned = plan_steps([step("d", "b", "c"), step("b", "a"), step("c", "a"), step("a"), step("e")])
    assert [each.step.id for each in planned] == ["a", "e", "b", "c", "d"]


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([step("a"), step("a")], 'id = "a" is that of an earlier step'),
        ([step("a", type="fly")], 'type = "fly" is no type of step; allowed: capture_patch, '),
        ([step("a", "b")], 'needs "b", which is no step of this task; allowed: a'),
        ([step("a", "b"), step("b", "c"), step("c", "a")], "needs go in a circle: "),
        ([step("a", "a")], "needs go in a circle: a -> a"),
        ([step("a", type="run_code")], "nothing to run"),
        ([step("a", type="grade")], "nothing to run"),
        ([step("a", type="collect_artifacts")], "nothing to collect"),
    ],
)
def test_what_cannot_be_planned(steps: list[TaskStep], says: str) -> None:
    with pytest.raises(UsageRefused, match=says) as caught:
        plan_steps(steps)
    assert caught.value.slug == "invalid-steps"


def test_who_grades_in_python_needs_no_command() -> None:
    assert plan_steps([step("a", type="grade")], has_grade=True)[0].role == "grader"


def test_a_role_that_the_task_gives_wins_over_that_of_the_type() -> None:
    (planned,) = plan_steps([step("a", type="run_code", command=("true",), step_role="grader")])
    assert (planned.type.role, planned.role) == ("other", "grader")


def tasks_file(tmp_path: Path, *documents: Any) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(b"".join(canonical_json(each) + b"\n" for each in documents))
    return path


@pytest.mark.parametrize("name", sorted(STEP_TYPES))
def test_a_document_without_a_role_is_written_back_byte_by_byte(tmp_path: Path, name: str) -> None:
    document = {
        "id": "t",
        "text": "größe",
        "repo": "../repo",
        "base_commit": "abc",
        "agent": "default",
        "step": [
            {"id": "first", "type": name, "command": ["true", "{work_dir}"], "paths": ["*.txt"]},
            {"id": "second", "type": "prompt_agent", "needs": ["first"], "fail_task_on_error": False},
        ],
    }
    path = tasks_file(tmp_path, document)
    task = load_tasks(path).task("t")
    assert serialise_task(task) + b"\n" == path.read_bytes()
    assert b"step_role" not in path.read_bytes()


@pytest.mark.parametrize("name", sorted(STEP_TYPES))
@pytest.mark.parametrize("role", ["agent", "grader", "evidence", "other"])
def test_a_role_is_written_only_where_it_differs(tmp_path: Path, name: str, role: str) -> None:
    first = {"id": "first", "type": name, "command": ["true"], "paths": ["*"], "step_role": role}
    path = tasks_file(tmp_path, {"id": "t", "step": [first]})
    written = json.loads(serialise_task(load_tasks(path).task("t")))["step"][0]
    assert written.get("step_role") == (role if role != STEP_TYPES[name].role else None)


@pytest.mark.parametrize("suffix", [".jsonl", ".toml"])
def test_an_unknown_role_is_refused_when_the_task_loads(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"tasks{suffix}"
    if suffix == ".toml":
        path.write_text('[[task]]\nid = "t"\n[[task.step]]\nid = "a"\ntype = "grade"\nstep_role = "judge"\n')
    else:
        path.write_text('{"id": "t", "step": [{"id": "a", "type": "grade", "step_role": "judge"}]}\n')
    with pytest.raises(FileError, match='"agent", "grader", "evidence" or "other"') as caught:
        load_tasks(path)
    (problem,) = caught.value.problems
    assert f"tasks{suffix}:{6 if suffix == '.toml' else 1}: " in problem
    assert '"judge"' in problem


@given(st.dictionaries(st.sampled_from("abcdef"), st.sets(st.sampled_from("abcdef")), min_size=1))
def test_any_graph_is_ordered_or_refused(graph: dict[str, set[str]]) -> None:
    steps = [step(name, *sorted(needs & set(graph))) for name, needs in graph.items()]
    try:
        order = [each.step.id for each in plan_steps(steps)]
    except UsageRefused as refused:
        said = refused.text
    else:
        said = ""
    if "circle" in said:
        return
    assert sorted(order) == sorted(graph)
    for each in steps:
        assert all(order.index(need) < order.index(each.id) for need in each.needs)


def test_a_task_made_in_python_is_written_as_one_that_was_read(tmp_path: Path) -> None:
    task = Task(id="t", step=(step("a", step_role="agent"), step("b", "a", step_role="other")))
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(serialise_task(task))
    again = load_tasks(path).task("t")
    assert [(each.id, each.step_role) for each in again.steps] == [("a", None), ("b", "other")]
    assert serialise_task(again) == serialise_task(task)
