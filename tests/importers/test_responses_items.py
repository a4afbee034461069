"""Responses items: a reply is several items in a row, and a list never says how its run ended."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import find_trials, read_one

GOLD = Path(__file__).parent.parent / "gold" / "responses-items"


def write(tmp_path: Path, *items: Any) -> Path:
    path = tmp_path / "x"
    path.write_text(json.dumps(items))
    return path


def call(number: int, **facts: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": f"call_{number}", "name": "look", "arguments": "{}", **facts}


def output(number: int) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": "text"}


USER = {"role": "user", "content": "Fix it."}


def test_a_call_that_raised() -> None:
    assert find_trials(GOLD / "call_failed.json").importer == "responses-items"
    trial = read_one(GOLD / "call_failed.json")
    assert (trial.termination, trial.outcome, trial.failing_step, trial.error) == (
        "cut-off",
        "undetermined",
        2,
        None,
    )
    assert [(line.step, line.role, line.text) for line in trial.steps] == [
        (0, "user", "add() in calc.py subtracts"),
        (1, "assistant", "Look first."),
        (1, "tool", "def add(a, b):\n    return a - b\n"),
    ]
    assert trial.steps[1].tool_calls[0].id == trial.steps[2].tool_call_id == "call_1"
    assert (trial.task_text, trial.harness) == ("add() in calc.py subtracts", None)
    assert any("does not say" in sentence for sentence in trial.missing)


def test_an_answer_at_the_end_shows_nothing() -> None:
    with pytest.raises(ImportRefused) as caught:
        read_one(GOLD / "answered.json")
    assert caught.value.slug == "no-sign-of-failure"
    trial = read_one(GOLD / "answered.json", failed_only=False)
    assert (trial.termination, trial.failing_step, trial.outcome) == (None, 2, "undetermined")


def test_calls_without_their_results_are_cut_off_at_that_step(tmp_path: Path) -> None:
    trial = read_one(write(tmp_path, USER, call(1), call(2)))
    assert (trial.termination, trial.failing_step, len(trial.replies)) == ("cut-off", 1, 1)


def test_items_of_two_responses_are_two_replies(tmp_path: Path) -> None:
    first, second = ({"provider_data": {"response_id": name, "model": "m"}} for name in ("a", "b"))
    trial = read_one(write(tmp_path, USER, call(1, **first), call(2, **second), output(1), output(2)))
    assert [[each.id for each in line.tool_calls] for line in trial.replies] == [["call_1"], ["call_2"]]
    assert trial.model == "m"


def test_reasoning_is_left_out_and_said(tmp_path: Path) -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    trial = read_one(write(tmp_path, USER, reasoning, call(1), output(1)))
    assert len(trial.steps) == 3
    assert any("reasoning" in sentence for sentence in trial.missing)


@pytest.mark.parametrize(
    ("items", "importer"),
    [
        ((USER, call(1)), "responses-items"),
        (
            (USER, {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}),
            "responses-items",
        ),
        ((USER, {"role": "assistant", "content": [{"type": "text", "text": "Hi."}]}), "message-list"),
    ],
)
def test_it_takes_items_and_leaves_messages_alone(tmp_path: Path, items: tuple[Any, ...], importer: str) -> None:
    assert find_trials(write(tmp_path, *items)).importer == importer


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes((GOLD / "answered.json").read_bytes()[:600])
    with pytest.raises(ImportRefused) as caught:
        read_one(path)
    assert caught.value.slug == "corrupt"
