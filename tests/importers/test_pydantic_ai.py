"""pydantic-ai messages: what the library itself wrote, and states that it can write."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import find_trials, read_one

GOLD = Path(__file__).parent.parent / "gold" / "pydantic-ai"
FAILED = GOLD / "call_failed.json"


@pytest.fixture(scope="module")
def messages() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(FAILED.read_text())
    return found


def write(tmp_path: Path, *messages: dict[str, Any]) -> Path:
    path = tmp_path / "x"
    path.write_text(json.dumps(messages))
    return path


def response(*parts: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return {"parts": list(parts), "kind": "response", "model_name": "m", "state": "complete", **facts}


TEXT = {"content": "It subtracts.", "part_kind": "text"}


def test_a_call_that_raised_leaves_its_request() -> None:
    assert find_trials(FAILED).importer == "pydantic-ai"
    trial = read_one(FAILED)
    assert (trial.termination, trial.outcome, trial.failing_step, trial.error) == (
        "cut-off",
        "undetermined",
        2,
        None,
    )
    assert (trial.event_id, trial.event_id_from) == (trial.run_id, "recorded")
    assert (trial.model, trial.model_requests) == ("scripted", 1)
    assert [(line.step, line.role, line.text) for line in trial.steps] == [
        (0, "system", "You can look at files."),
        (0, "user", "add() in calc.py subtracts"),
        (1, "assistant", "Look first."),
        (1, "tool", "def add(a, b):\n    return a - b\n"),
    ]
    assert trial.steps[2].tool_calls[0].arguments == '{"name": "calc.py"}'
    assert trial.steps[2].tool_calls[0].id == trial.steps[3].tool_call_id == "call_1"
    assert trial.started_at is not None
    assert any("no exception" in sentence for sentence in trial.missing)


def test_an_output_tool_ends_it() -> None:
    path = GOLD / "ended_by_output_tool.json"
    with pytest.raises(ImportRefused) as caught:
        read_one(path)
    assert caught.value.slug == "no-sign-of-failure"
    trial = read_one(path, failed_only=False)
    assert (trial.termination, trial.failing_step) == ("finished", 2)


def test_a_whole_reply_at_the_end_shows_nothing(messages: list[dict[str, Any]], tmp_path: Path) -> None:
    path = write(tmp_path, *messages, response(TEXT, finish_reason="stop"))
    with pytest.raises(ImportRefused) as caught:
        read_one(path)
    assert caught.value.slug == "no-sign-of-failure"
    trial = read_one(path, failed_only=False)
    assert (trial.termination, trial.failing_step, trial.steps[-1].finish) == (None, 2, "stop")


@pytest.mark.parametrize(
    ("last", "step"),
    [
        (response(), 2),  # the library never ends on a response without parts
        (response({"tool_name": "look", "args": None, "tool_call_id": "c", "part_kind": "tool-call"}), 2),
        (response(TEXT, state="interrupted"), 2),
        (response(TEXT, state="incomplete"), 2),
    ],
)
def test_what_is_cut_off(messages: list[dict[str, Any]], tmp_path: Path, last: dict[str, Any], step: int) -> None:
    trial = read_one(write(tmp_path, *messages, last))
    assert (trial.termination, trial.failing_step) == ("cut-off", step)
    is_whole = last["state"] == "complete"
    assert trial.steps[-1].is_reply == is_whole
    assert trial.steps[-1].error == (None if is_whole else last["state"])


def test_attempts_that_a_fallback_moved_on_from_are_failed_calls(
    messages: list[dict[str, Any]], tmp_path: Path
) -> None:
    attempts = [
        {"model_name": "first", "outcome": "error", "error": "TimeoutError: no answer"},
        {"model_name": "second", "outcome": "rejected", "error": None},
    ]
    trial = read_one(write(tmp_path, *messages, response(TEXT, failed_attempts=attempts)), failed_only=False)
    assert [(line.step, line.error, line.model) for line in trial.steps[-3:]] == [
        (2, "TimeoutError: no answer", "first"),
        (2, "rejected", "second"),
        (2, None, "m"),
    ]
    assert (trial.failing_step, trial.model_requests) == (2, 4)


def test_parts_of_requests(tmp_path: Path) -> None:
    first = {
        "kind": "request",
        "instructions": "Be brief.",
        "parts": [
            {"content": "You are a coder.", "part_kind": "system-prompt"},
            {
                "content": ["Fix this:", {"kind": "text-content", "content": "calc.py"}, {"kind": "image-url"}],
                "part_kind": "user-prompt",
            },
        ],
    }
    second = {
        "kind": "request",
        "instructions": "Be brief.",
        "parts": [
            {"content": {"a": 1}, "tool_name": "look", "tool_call_id": "c", "part_kind": "tool-return"},
            {"content": "Again.", "tool_name": "look", "tool_call_id": "c", "part_kind": "retry-prompt"},
            {"content": [{"type": "missing"}], "part_kind": "retry-feedback"},
            {"part_kind": "model-settings-delta"},
        ],
    }
    call = {"tool_name": "look", "args": "{}", "tool_call_id": "c", "part_kind": "tool-call"}
    thinking = {"content": "Hm.", "part_kind": "thinking"}
    trial = read_one(write(tmp_path, first, response(thinking, call), second, {"kind": "novelty", "parts": []}))
    assert [(line.step, line.role, line.text) for line in trial.steps] == [
        (0, "system", "Be brief."),
        (0, "system", "You are a coder."),
        (0, "user", "Fix this:\ncalc.py"),
        (1, "assistant", None),
        (1, "tool", '{"a": 1}'),
        (1, "tool", "Again."),
        (1, "user", '[{"type": "missing"}]'),
    ]
    assert trial.event_id_from == "digest"
    said = " ".join(trial.missing)
    for kind in ("image-url", "thinking", "model-settings-delta", "of an unknown message"):
        assert f"parts {kind} (1)" in said


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(FAILED.read_bytes()[:1200])
    with pytest.raises(ImportRefused) as caught:
        read_one(path)
    assert caught.value.slug == "corrupt"


def test_a_long_first_prompt_hides_nothing(messages: list[dict[str, Any]], tmp_path: Path) -> None:
    long = {**messages[0], "parts": [{"content": "x" * 300_000, "part_kind": "user-prompt"}]}
    assert find_trials(write(tmp_path, long, *messages[1:])).importer == "pydantic-ai"
