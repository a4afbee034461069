"""Codex rollouts: items in a row as one reply, what a turn ended on, wrapped and old records."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.importers.codex import Codex
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.source import find_trials, read_one
from pytest_regcase.records.trial import Trial, TrialRef

GOLD = Path(__file__).parent.parent / "gold" / "codex"
Record = dict[str, Any]
META = {"type": "session_meta", "payload": {"id": "s", "cli_version": "0.142.0"}}
STARTED = {"type": "event_msg", "payload": {"type": "task_started"}}


def item(kind: str, **more: Any) -> Record:
    return {"type": "response_item", "payload": {"type": kind, **more}}


def event(kind: str, **more: Any) -> Record:
    return {"type": "event_msg", "payload": {"type": kind, **more}}


ASKED = item("message", role="user", content=[{"type": "input_text", "text": "repair"}])
DONE = item("message", role="assistant", content=[{"type": "output_text", "text": "done"}])
CALL = item("function_call", call_id="c", name="exec_command", arguments="{}")


@pytest.fixture
def rollout(tmp_path: Path) -> Callable[..., tuple[TrialRef, Trial]]:
    def read(*records: Record) -> tuple[TrialRef, Trial]:
        path = tmp_path / "x.jsonl"
        path.write_text("\n".join(map(json.dumps, (META, *records))) + "\n")
        (ref,) = find_trials(path).refs
        return ref, Codex().read(path, ref)

    return read


def test_a_turn_that_ended_on_an_error_told_twice() -> None:
    trial = read_one(GOLD / "turn_failed.jsonl")
    assert (trial.termination, trial.outcome, trial.failing_step) == ("error", "undetermined", 2)
    assert trial.error is not None
    words = "exceeded retry limit, last status: 429 Too Many Requests"
    assert (trial.error.type, trial.error.message, trial.error.raised_by) == (
        "response_too_many_failed_attempts", words, "supplier",
    )  # fmt: skip
    assert [line.error for line in trial.steps if line.error] == ["stream disconnected before completion", words]
    assert (trial.harness, trial.model) == ("codex 0.142.0", "replay-1")
    assert trial.conditions == {
        "model_provider": "openai", "approval_policy": "never", "sandbox_policy": "workspace-write",
        "work_tree_commit": "0123abc",
    }  # fmt: skip
    assert (trial.event_id, trial.revision) == ("019efa28-0000-7000-8000-000000000001", None)


def test_items_in_a_row_are_one_reply_and_results_follow_their_calls() -> None:
    trial = read_one(GOLD / "turn_failed.jsonl")
    (only,) = trial.replies
    assert [(each.id, each.name) for each in only.tool_calls] == [
        ("call_1", "exec_command"),
        ("call_2", "exec_command"),
    ]
    assert [(line.step, line.tool_call_id) for line in trial.steps if line.role == "tool"] == [
        (1, "call_1"),
        (1, "call_2"),
    ]
    assert "1 content part of type reasoning left out" in trial.missing
    said = trial.model_dump_json()
    assert "Z0FBQUFB" not in said
    assert "/home/someone" not in said


def test_the_task_is_what_the_person_wrote() -> None:
    assert read_one(GOLD / "turn_failed.jsonl").task_text == "add() in calc.py subtracts"


def test_an_aborted_turn_is_cancelled() -> None:
    trial = read_one(GOLD / "aborted.jsonl")
    assert (trial.termination, trial.failing_step) == ("cancelled", 2)
    assert trial.replies[0].tool_calls[0].arguments == "*** Begin Patch"


def test_an_old_file_without_wrappers() -> None:
    trial = read_one(GOLD / "old.jsonl")
    assert (trial.termination, trial.failing_step, trial.harness) == ("cut-off", 2, "codex")
    assert trial.event_id == "5973b6c0-0000-4000-8000-000000000002"
    assert [(each.name, each.arguments) for each in trial.replies[0].tool_calls] == [
        ("local_shell", '{"type": "exec", "command": ["cat", "calc.py"]}')
    ]
    assert json.loads(trial.steps[-1].text or "")["metadata"] == {"exit_code": 0}


@pytest.mark.parametrize(
    ("records", "termination", "step"),
    [
        ([STARTED, ASKED, DONE, event("task_complete", last_agent_message="done")], "finished", 1),
        ([STARTED, ASKED, DONE], "cut-off", 1),
        ([STARTED, ASKED, CALL], "cut-off", 1),
        ([STARTED, ASKED, event("error", message="no")], "error", 1),
        ([STARTED, ASKED, DONE, event("turn_aborted", reason="budget_limited")], "limit", 1),
        ([ASKED, DONE], None, 1),
        ([ASKED, CALL], "cut-off", 1),
        ([ASKED, DONE, ASKED], "cut-off", 2),
        ([STARTED, ASKED, DONE, event("task_complete"), STARTED, ASKED], "cut-off", 2),
    ],
    ids=[
        "complete", "no end", "a call", "an error, no end", "a limit", "no turn is told", "no turn, a call",
        "no turn, a question", "the second turn has no end",
    ],
)  # fmt: skip
def test_how_a_rollout_ends(
    rollout: Callable[..., Any], records: list[Record], termination: Any, step: int
) -> None:
    ref, trial = rollout(*records)
    assert (trial.termination, trial.failing_step, trial.outcome) == (termination, step, "undetermined")
    assert ref.failed == (termination not in (None, "finished"))


def test_an_error_that_was_answered_in_the_next_turn_is_none(rollout: Callable[..., Any]) -> None:
    error = event("error", message="no", codex_error_info="server_overloaded")
    end = event("task_complete", last_agent_message="done")
    _, trial = rollout(STARTED, ASKED, error, event("task_complete"), STARTED, ASKED, DONE, end)
    assert (trial.termination, trial.error, trial.final_text) == ("finished", None, "done")
    assert [line.error for line in trial.steps if line.error] == ["no"]


@pytest.mark.parametrize(
    ("info", "kind", "by"),
    [
        ("server_overloaded", "server_overloaded", "supplier"),
        ({"http_connection_failed": {"http_status_code": 502}}, "http_connection_failed", "supplier"),
        ("sandbox_error", "sandbox_error", "environment"),
        ("other", "other", "unknown"),
        (None, None, "unknown"),
    ],
)
def test_who_raised_it_follows_from_what_codex_calls_it(
    rollout: Callable[..., Any], info: Any, kind: str | None, by: str
) -> None:
    end = event("task_complete", error={"message": "no", "codex_error_info": info})
    _, trial = rollout(STARTED, ASKED, end)
    assert trial.error is not None
    assert (trial.error.type, trial.error.message, trial.error.raised_by) == (kind, "no", by)


def test_items_of_unknown_kinds_are_counted(rollout: Callable[..., Any]) -> None:
    _, trial = rollout(ASKED, item("web_search_call"), item("token_count"), DONE)
    assert "1 item left out: no message, call or result" in trial.missing


@pytest.mark.parametrize(
    "line",
    [
        {"type": "message", "role": "user", "content": "x"},
        {"type": "deployment", "payload": {}},
        {"type": "event_msg", "payload": "x"},
        {"id": "x", "timestamp": "y", "instructions": None, "messages": []},
    ],
    ids=["an item alone", "another wrapper", "no payload", "a chat log"],
)
def test_what_only_looks_like_it(line: Record) -> None:
    assert not Codex().handles(Peek(Path("x"), "file", json.dumps(line).encode()))
