"""Plain message lists: a conversation, and nothing said about its end."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.message_list import MessageList
from pytest_regcase.importers.source import find_trials, read_one, read_output
from pytest_regcase.records.trial import Trial

GOLD = Path(__file__).parent.parent / "gold" / "message-list"
TASK = "add() in calc.py subtracts. Fix it."


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Any], Path]:
    def made(value: Any) -> Path:
        path = tmp_path / "x"
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    return made


def test_lines_that_stop_behind_a_result_were_cut_off() -> None:
    trial = read_one(GOLD / "cut_off.jsonl")
    assert (trial.format, trial.termination, trial.outcome, trial.failing_step) == (
        "message-list",
        "cut-off",
        "undetermined",
        3,
    )
    assert (trial.task_id, trial.attempt, trial.harness, trial.model, trial.error) == (
        None,
        None,
        None,
        None,
        None,
    )
    assert trial.task_text == TASK
    assert [(line.step, line.role, line.origin) for line in trial.steps] == [
        (0, "user", "line 1"),
        (1, "assistant", "line 2"),
        (1, "tool", "line 3"),
        (2, "assistant", "line 4"),
        (2, "tool", "line 5"),
    ]
    assert [call.id for line in trial.replies for call in line.tool_calls] == ["call_1", "call_2"]
    assert trial.replies[1].text is None


def test_a_whole_last_reply_shows_nothing(write: Callable[[Any], Path]) -> None:
    with pytest.raises(ImportRefused) as caught:
        read_one(GOLD / "ended.json")
    assert caught.value.slug == "no-sign-of-failure"
    trial = read_one(GOLD / "ended.json", failed_only=False)
    assert (trial.termination, trial.failing_step, trial.model) == (None, 2, "small-model")
    assert trial.task_text == TASK
    assert [(line.finish, line.usage) for line in trial.replies] == [
        ("tool_use", {"input_tokens": 20, "output_tokens": 4}),
        ("end_turn", None),
    ]
    assert trial.steps[3].error == "cat: calc.py: no such file"
    assert "1 content part of type thinking left out" in trial.missing


def test_langchains_dumps_are_read_as_messages() -> None:
    trial = read_one(GOLD / "langchain.jsonl")
    assert (trial.termination, trial.failing_step, trial.model, trial.task_text) == (
        "cut-off",
        2,
        "small-model",
        TASK,
    )
    (reply,) = trial.replies
    assert (reply.finish, reply.usage, reply.tool_calls[0].arguments) == (
        "tool_calls",
        {"total_tokens": 24},
        '{"command": "cat calc.py"}',
    )
    assert trial.steps[2].tool_call_id == "call_1"


def test_a_call_without_any_result_is_an_open_end(write: Callable[[Any], Path]) -> None:
    message = {"role": "assistant", "content": "x", "tool_calls": [["a", "bash", "{}"]]}
    trial = read_output(write([{"role": "user", "content": "hi"}, message]))
    assert (trial.termination, trial.failing_step) == ("cut-off", 1)


def test_lines_around_a_bad_one_are_kept_and_it_is_said(write: Callable[[Any], Path]) -> None:
    lines = (GOLD / "cut_off.jsonl").read_text().splitlines()
    trial = read_output(write("\n".join([lines[0], "{bad", "42", *lines[1:4], lines[4][:20]])))
    assert len(trial.steps) == 4
    assert [each for each in trial.missing if "left out" in each] == [
        "line 2 is left out: it is no valid JSON at line 1, column 2"
        " (Expecting property name enclosed in double quotes)",
        "line 7, the last one, is cut off: left out",
        "1 record is no object and is left out",
    ]


@pytest.mark.parametrize(
    ("value", "importer"),
    [
        ([{"role": "user", "content": "a"}], "message-list"),
        ({"role": "user", "content": "a"}, "message-list"),
        ([{"role": "user", "content": "... COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}], "mini-swe-agent"),
        (
            [
                {"role": "user", "content": "a"},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            ],
            "responses-items",
        ),
    ],
    ids=["list", "one line", "mini", "items"],
)
def test_exactly_one_format_is_told(write: Callable[[Any], Path], value: Any, importer: str) -> None:
    assert find_trials(write(value)).importer == importer


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "critic", "content": "a"}],
        [{"role": 1, "content": "a"}],
        [{"content": "a"}],
        {"messages": [{"role": "user", "content": "a"}]},
        [{"type": "ai", "content": "a"}],
        [],
        "role content",
    ],
    ids=str,
)
def test_what_is_no_message_list_is_left_alone(write: Callable[[Any], Path], value: Any) -> None:
    with pytest.raises(ImportRefused) as caught:
        find_trials(write(value))
    assert caught.value.slug == "not-recognised"


def test_a_document_that_is_cut_off_is_corrupt(write: Callable[[Any], Path]) -> None:
    with pytest.raises(ImportRefused) as caught:
        find_trials(write((GOLD / "ended.json").read_text()[:-30]))
    assert caught.value.slug == "corrupt"


def test_the_same_file_gives_the_same_trial() -> None:
    (ref,) = MessageList().list_trials(GOLD / "ended.json")
    first: Trial = MessageList().read(GOLD / "ended.json", ref)
    assert first == MessageList().read(GOLD / "ended.json", ref)
    assert first.can_show == ("no_fabricated_output",)
