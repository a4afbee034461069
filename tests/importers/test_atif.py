"""ATIF trajectories: continuations counted once, replies told from copies, dispatches and answers of no use."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import find_trials, read_output
from pytest_regcase.records.trial import Trial

GOLD = Path(__file__).parent.parent / "gold" / "atif"
CONTINUED = GOLD / "continued" / "first.json"
Edit = Callable[[dict[str, Any]], None]


@pytest.fixture
def edited(tmp_path: Path) -> Callable[[Edit], Trial]:
    """Read the small trajectory after an edit."""

    def read(edit: Edit) -> Trial:
        document = json.loads((GOLD / "trajectory.json").read_text())
        edit(document)
        (tmp_path / "x").write_text(json.dumps(document))
        return read_output(tmp_path / "x")

    return read


def test_a_trajectory_says_neither_how_it_ended_nor_whether_it_passed() -> None:
    (ref,) = find_trials(GOLD / "trajectory.json").refs
    assert (ref.failed, ref.refusal) == (False, "no-sign-of-failure")
    trial = read_output(GOLD / "trajectory.json")
    assert (trial.termination, trial.outcome, trial.error) == (None, "undetermined", None)
    assert (trial.failing_step, trial.event_id, trial.run_id) == (2, "trajectory-1", "run-1")
    assert trial.can_show == ("max_retries", "stop_within_seconds", "no_fabricated_output")
    reply = trial.replies[0]
    assert reply.tool_calls[0].arguments == '{"command": "cat calc.py"}'
    assert reply.usage == {"prompt_tokens": 200, "completion_tokens": 20}
    assert (trial.steps[2].role, trial.steps[2].step, trial.steps[2].tool_call_id) == ("tool", 1, "call_1")


def test_a_continuation_goes_on_where_its_beginning_ends() -> None:
    trial = read_output(CONTINUED)
    assert [line.step for line in trial.replies] == [1, 2, 3, 4]
    assert [line.text for line in trial.replies] == ["Step 1.", "Step 2.", "Step 3.", "Step 4."]
    assert list(trial.source_digests) == ["first.json", "first.cont-1.json"]
    # Of the copies, the task was told already and the hand-over was not.
    assert [line.text for line in trial.steps if line.role == "user"][1:] == ["add() is fixed."]
    assert "1 reply is a copy of earlier ones for context: left out" in trial.missing
    assert "1 agent step was no model call: left out but for the result" in trial.missing


def test_a_continuation_alone_keeps_what_its_model_was_told() -> None:
    trial = read_output(CONTINUED.with_name("first.cont-1.json"))
    assert [line.text for line in trial.replies] == ["Step 3.", "Step 4."]
    assert trial.task_text is not None
    assert (trial.failing_step, trial.task_text.startswith("add()")) == (2, True)


@pytest.mark.parametrize("name", ["gone.json", "../first.json", "/etc/passwd", "x" * 300, ".."])
def test_a_continuation_that_is_not_beside_it_is_said(edited: Callable[[Edit], Trial], name: str) -> None:
    trial = edited(lambda document: document.update(continued_trajectory_ref=name))
    assert len(trial.replies) == 2
    assert f"the continuation {name!r}: no such file lies beside the trajectory" in trial.missing


def test_files_that_continue_one_another_are_read_once(tmp_path: Path) -> None:
    shutil.copytree(CONTINUED.parent, tmp_path / "t")
    second = tmp_path / "t" / "first.cont-1.json"
    document = json.loads(second.read_text())
    second.write_text(json.dumps({**document, "continued_trajectory_ref": "first.json"}))
    trial = read_output(tmp_path / "t" / "first.json")
    assert len(trial.replies) == 4
    assert "the continuation 'first.json': it was read already" in trial.missing


def test_an_empty_answer_that_the_harness_sent_back_is_no_reply(edited: Callable[[Edit], Trial]) -> None:
    def empty(document: dict[str, Any]) -> None:
        complaint = {"results": [{"content": "Previous response had parsing errors"}]}
        document["steps"].append({"step_id": 4, "source": "agent", "message": " ", "observation": complaint})

    trial = edited(empty)
    assert (len(trial.replies), trial.failing_step) == (2, 3)
    assert trial.steps[-1].error == "Previous response had parsing errors"


def test_an_empty_answer_that_nobody_complained_about_stays_a_reply(edited: Callable[[Edit], Trial]) -> None:
    trial = edited(lambda document: document["steps"].append({"step_id": 4, "source": "agent", "message": ""}))
    assert (len(trial.replies), trial.failing_step, trial.replies[-1].text) == (3, 3, "")


def test_results_without_a_call_were_a_users_message(edited: Callable[[Edit], Trial]) -> None:
    def without_id(document: dict[str, Any]) -> None:
        del document["steps"][1]["observation"]["results"][0]["source_call_id"]

    assert edited(without_id).steps[2].role == "user"


def test_parts_of_a_message_are_joined_and_pictures_counted(edited: Callable[[Edit], Trial]) -> None:
    parts = [
        {"type": "text", "text": "Look: "},
        {"type": "image", "source": {}},
        {"type": "text", "text": "this."},
    ]
    trial = edited(lambda document: document["steps"][0].update(message=parts))
    assert trial.steps[0].text == "Look: this."
    assert "1 content part of type image left out" in trial.missing


def test_model_calls_are_counted_where_every_step_says_how_many(edited: Callable[[Edit], Trial]) -> None:
    def counted(document: dict[str, Any]) -> None:
        for number, step in enumerate(document["steps"][1:], 1):
            step["llm_call_count"] = number

    assert edited(counted).model_requests == 3
    assert read_output(GOLD / "trajectory.json").model_requests is None


@pytest.mark.parametrize("minor", range(9))
def test_all_versions_from_0_to_8_are_read(edited: Callable[[Edit], Trial], minor: int) -> None:
    trial = edited(lambda document: document.update(schema_version=f"ATIF-v1.{minor}"))
    assert len(trial.replies) == 2


def test_a_newer_minor_version_is_read_with_a_note_and_a_major_one_refused(
    edited: Callable[[Edit], Trial],
) -> None:
    trial = edited(lambda document: document.update(schema_version="ATIF-v1.9"))
    assert any("ATIF-v1.9" in each for each in trial.missing)
    with pytest.raises(ImportRefused) as caught:
        edited(lambda document: document.update(schema_version="ATIF-v2.0"))
    assert caught.value.slug == "unknown-version"


def test_what_sub_agents_said_is_left_out_and_counted(edited: Callable[[Edit], Trial]) -> None:
    trial = edited(lambda document: document.update(subagent_trajectories=[{"trajectory_id": "a", "steps": []}]))
    assert "1 conversation of sub-agents left out" in trial.missing
