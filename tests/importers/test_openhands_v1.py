"""OpenHands V1: events that the SDK itself wrote, as lines and as a persistence folder."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import find_trials, read_one

GOLD = Path(__file__).parent.parent / "gold" / "openhands-v1"
LINES = GOLD / "call_failed.jsonl"


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    return [json.loads(line) for line in LINES.read_text().splitlines()]


def write(tmp_path: Path, *events: dict[str, Any]) -> Path:
    path = tmp_path / "x"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def status(value: str) -> dict[str, Any]:
    return {
        "id": "s",
        "timestamp": "2026-04-12T09:31:07",
        "source": "environment",
        "key": "execution_status",
        "value": value,
        "kind": "ConversationStateUpdateEvent",
    }


def test_a_failed_model_call() -> None:
    assert find_trials(LINES).importer == "openhands-v1"
    trial = read_one(LINES)
    assert trial.error is not None
    assert (trial.termination, trial.failing_step) == ("error", 2)
    assert (trial.error.type, trial.error.message) == ("LLMRateLimitError", "429 too many requests")
    assert trial.error.raised_by == "supplier"
    assert [(line.step, line.role, line.text) for line in trial.steps] == [
        (0, "system", "You are a coding agent."),
        (0, "user", "add() in calc.py subtracts"),
        (1, "assistant", "Look first."),
        (1, "tool", "Your thought has been logged."),
    ]
    reply = trial.steps[2]
    assert (reply.tool_calls[0].name, reply.offered_tools) == ("think", ("finish", "think"))
    assert reply.tool_calls[0].id == trial.steps[3].tool_call_id == "call_1"
    assert any("without a zone" in sentence for sentence in trial.missing)


def test_a_persistence_folder_knows_more() -> None:
    trial = read_one(GOLD / "persisted")
    kept = json.loads((GOLD / "persisted" / "base_state.json").read_text())
    assert (trial.event_id, trial.event_id_from) == (kept["id"], "recorded")
    assert (trial.model, trial.labels) == ("test-model", ("openhands:execution_status:error",))
    assert trial.conditions["max_iterations"] == 500
    assert (trial.termination, trial.failing_step, len(trial.steps)) == ("error", 2, 4)
    assert set(trial.source_digests) == {"events", "base_state.json"}


def test_the_status_beside_the_events_counts_where_they_do_not_say(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLD / "persisted", tmp_path / "kept"))
    (last,) = folder.glob("events/event-00004-*")
    last.unlink()
    assert (read_one(folder).termination, read_one(folder).failing_step) == ("error", 2)
    state = json.loads((folder / "base_state.json").read_text())
    (folder / "base_state.json").write_text(json.dumps({**state, "execution_status": "running"}))
    assert read_one(folder).termination == "cut-off"
    (folder / "base_state.json").write_text("{")
    trial = read_one(folder)
    assert trial.termination == "cut-off"  # the conversation stops where a reply was due
    assert any("base_state.json is left out" in sentence for sentence in trial.missing)


@pytest.mark.parametrize(
    ("value", "termination"),
    [
        ("finished", "finished"),
        ("stuck", "limit"),
        ("running", "cut-off"),
        ("paused", "cancelled"),
        ("idle", "cut-off"),
    ],
)
def test_states(events: list[dict[str, Any]], tmp_path: Path, value: str, termination: str) -> None:
    trial = read_one(write(tmp_path, *events[:-1], status(value)), failed_only=False)
    assert trial.termination == termination
    assert trial.labels == (f"openhands:execution_status:{value}",)


def test_a_run_that_went_on_has_not_failed_by_its_old_error(events: list[dict[str, Any]], tmp_path: Path) -> None:
    path = write(tmp_path, *events, status("running"), status("finished"))
    with pytest.raises(ImportRefused) as caught:
        read_one(path)
    assert caught.value.slug == "no-sign-of-failure"


@pytest.mark.parametrize(
    ("code", "termination", "raised_by", "step"),
    [("MaxIterationsReached", "limit", "harness", 1), ("OSError", "error", "unknown", 2)],
)
def test_errors_of_the_run(
    events: list[dict[str, Any]], tmp_path: Path, code: str, termination: str, raised_by: str, step: int
) -> None:
    trial = read_one(write(tmp_path, *events[:-1], {**events[-1], "code": code}))
    assert trial.error is not None
    assert (trial.termination, trial.error.raised_by, trial.failing_step) == (termination, raised_by, step)


def test_calls_of_one_reply_stay_together(events: list[dict[str, Any]], tmp_path: Path) -> None:
    second = json.loads(json.dumps(events[2]).replace("call_1", "call_2"))
    error = {**events[3], "kind": "AgentErrorEvent", "error": "No such tool.", "tool_call_id": "call_2"}
    trial = read_one(write(tmp_path, *events[:3], {**second, "thought": []}, events[3], error))
    (reply,) = trial.replies
    assert [call.id for call in reply.tool_calls] == ["call_1", "call_2"]
    assert [(line.step, line.text) for line in trial.steps[-2:]] == [
        (1, "Your thought has been logged."),
        (1, "No such tool."),
    ]


def test_a_finish_ends_it(events: list[dict[str, Any]], tmp_path: Path) -> None:
    finish = {**events[2], "tool_name": "finish", "action": {"kind": "FinishAction", "message": "It adds now."}}
    trial = read_one(write(tmp_path, *events[:2], finish), failed_only=False)
    assert (trial.termination, trial.final_text, trial.failing_step) == ("finished", "It adds now.", 1)


def test_messages_of_the_agent_are_replies(events: list[dict[str, Any]], tmp_path: Path) -> None:
    message = {"role": "assistant", "content": [{"type": "text", "text": "Which file?"}]}
    trial = read_one(
        write(tmp_path, *events[:2], {**events[1], "source": "agent", "llm_message": message}), failed_only=False
    )
    assert [(line.step, line.text) for line in trial.replies] == [(1, "Which file?")]
    assert trial.termination is None
