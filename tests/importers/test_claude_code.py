"""Claude Code sessions: a tree, replies in parts, failed calls that are no replies, and how a session ends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.claude_code import ClaudeCode
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.source import find_trials, read_one
from pytest_regcase.records.trial import Trial, TrialRef

GOLD = Path(__file__).parent.parent / "gold" / "claude-code"
Record = dict[str, Any]


def record(kind: str, uuid: str, parent: str | None, **more: Any) -> Record:
    return {
        "parentUuid": parent, "isSidechain": False, "sessionId": "s", "version": "2.0.76", "type": kind,
        "uuid": uuid, "timestamp": "2026-09-21T10:00:00.000Z", **more,
    }  # fmt: skip


def user(uuid: str, parent: str | None, content: Any, **more: Any) -> Record:
    return record("user", uuid, parent, message={"role": "user", "content": content}, **more)


def reply(uuid: str, parent: str | None, *blocks: Any, stop: str | None = "end_turn", **more: Any) -> Record:
    message: Record = {"id": uuid, "type": "message", "role": "assistant", "model": more.pop("model", "m")}
    message |= {"content": list(blocks), "stop_reason": stop, "usage": {"output_tokens": 1}}
    return record("assistant", uuid, parent, message=message, **more)


def words(said: str) -> Record:
    return {"type": "text", "text": said}


def call(name: str) -> Record:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": "ls"}}


def result(name: str) -> list[Record]:
    return [{"type": "tool_result", "tool_use_id": name, "content": "ok"}]


@pytest.fixture
def session(tmp_path: Path) -> Callable[..., tuple[TrialRef, Trial]]:
    def read(*records: Record) -> tuple[TrialRef, Trial]:
        path = tmp_path / "x.jsonl"
        path.write_text("\n".join(map(json.dumps, records)) + "\n")
        (ref,) = find_trials(path).refs
        return ref, ClaudeCode().read(path, ref)

    return read


def test_a_call_that_was_given_up_after_retries() -> None:
    trial = read_one(GOLD / "gave_up.jsonl")
    assert (trial.termination, trial.outcome, trial.failing_step) == ("error", "undetermined", 2)
    assert trial.error is not None
    assert (trial.error.type, trial.error.message, trial.error.raised_by) == (
        "server_error", "API Error: 529 Overloaded", "supplier",
    )  # fmt: skip
    assert [(line.step, line.error) for line in trial.steps if line.error and line.role == "assistant"] == [
        (2, "Overloaded"), (2, "Overloaded"), (2, "API Error: 529 Overloaded"),
    ]  # fmt: skip
    assert trial.harness == "claude-code 2.1.144"
    assert (trial.event_id, trial.run_id) == ("7f1c6a8e-0000-4000-8000-000000000001",) * 2
    assert (trial.task_id, trial.attempt) == (None, None)


def test_the_parts_of_a_reply_are_one_and_its_usage_counts_once() -> None:
    trial = read_one(GOLD / "gave_up.jsonl")
    (only,) = trial.replies
    assert (only.text, [each.id for each in only.tool_calls]) == ("I look at both files.", ["toolu_1", "toolu_2"])
    assert (only.usage, only.finish, only.model) == (
        {"input_tokens": 30, "output_tokens": 9},
        "tool_use",
        "replay-1",
    )
    results = [line for line in trial.steps if line.role == "tool"]
    assert [(line.step, line.tool_call_id) for line in results] == [(1, "toolu_1"), (1, "toolu_2")]


def test_branches_sidechains_and_thoughts_are_left_out_and_said() -> None:
    trial = read_one(GOLD / "gave_up.jsonl")
    said = trial.model_dump_json()
    for word in ("a branch that was left", "a sub-agent's word", "look first", "c2lnbmF0dXJl", "/home/someone"):
        assert word not in said
    assert "1 record of other branches or sessions left out" in trial.missing
    assert "1 model call of sub-agents left out: side calls" in trial.missing
    assert "1 content part of type thinking left out" in trial.missing


def test_a_file_that_ends_while_it_waits_to_try_again() -> None:
    trial = read_one(GOLD / "cut_off.jsonl")
    assert (trial.termination, trial.failing_step) == ("cut-off", 2)
    assert trial.error is not None
    assert (trial.error.type, trial.error.message) == ("overloaded_error", "Overloaded")
    assert "line 5, the last one, is cut off: left out" in trial.missing
    assert "1 record is no object and is left out" in trial.missing


def test_an_interruption_is_a_cancellation() -> None:
    trial = read_one(GOLD / "interrupted.jsonl")
    assert (trial.termination, trial.failing_step, trial.error) == ("cancelled", 2, None)


def test_a_compaction_is_crossed_and_said_and_a_local_command_asks_nothing() -> None:
    (ref,) = find_trials(GOLD / "finished.jsonl").refs
    assert (ref.refusal, ref.termination) == ("no-sign-of-failure", "finished")
    trial = ClaudeCode().read(GOLD / "finished.jsonl", ref)
    assert [line.text for line in trial.steps[:3]] == [
        "add() in calc.py subtracts",
        "The user asked for a repair.",
        "done",
    ]
    assert "1 compaction: the model went on from a summary" in trial.missing


@pytest.mark.parametrize(
    ("last", "termination", "step"),
    [
        (reply("a", "u", words("done")), "finished", 1),
        (reply("a", "u", words("done"), stop="max_tokens"), "limit", 1),
        (reply("a", "u", words("done"), stop=None), None, 1),
        (reply("a", "u", call("t"), stop="tool_use"), "cut-off", 1),
        (reply("a", "u", {"type": "thinking", "thinking": "x"}, stop=None), "cut-off", 1),
        (user("v", "u", "and?"), "cut-off", 1),
        (user("v", "u", "[Request interrupted by user]"), "cancelled", 1),
    ],
    ids=["end_turn", "max_tokens", "no stop reason", "a call", "only thoughts", "a question", "interrupted"],
)  # fmt: skip
def test_how_a_session_ends(session: Callable[..., Any], last: Record, termination: Any, step: int) -> None:
    ref, trial = session(user("u", None, "repair"), last)
    assert (trial.termination, trial.failing_step, trial.outcome) == (termination, step, "undetermined")
    assert ref.failed == (termination not in (None, "finished"))
    assert any(each.startswith("how it ended") for each in trial.missing) == (termination is None)


def test_a_call_that_was_answered_after_all_is_no_error(session: Callable[..., Any]) -> None:
    late = record("system", "e", "u", subtype="api_error", error={"message": "Connection error."}, retryAttempt=1)
    _, trial = session(user("u", None, "repair"), late, reply("a", "e", words("done")))
    assert (trial.termination, trial.error, trial.failing_step) == ("finished", None, 1)
    assert [line.error for line in trial.steps if line.error] == ["Connection error."]


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (
            {"status": 529, "error": {"error": {"type": "overloaded_error", "message": "Over"}}},
            "overloaded_error",
            "Over",
        ),
        ({"status": 503, "error": {"code": "busy", "message": "too many", "type": "t"}}, "t", "too many"),
        ({"cause": {"code": "FailedToOpenSocket", "path": "x"}}, "FailedToOpenSocket", "FailedToOpenSocket"),
        ({"status": 500}, None, "500"),
        (None, None, "api_error"),
    ],
)
def test_the_shapes_of_a_failed_call(
    session: Callable[..., Any], error: Any, kind: str | None, message: str
) -> None:
    _, trial = session(user("u", None, "repair"), record("system", "e", "u", subtype="api_error", error=error))
    assert trial.error is not None
    assert (trial.error.type, trial.error.message, trial.termination) == (kind, message, "cut-off")


def test_a_message_that_no_model_wrote_is_no_reply(session: Callable[..., Any]) -> None:
    synthetic = reply("a", "u", words("No response requested."), model="<synthetic>")
    _, trial = session(user("u", None, "repair"), synthetic)
    assert (trial.replies, trial.termination) == ((), "cut-off")
    assert "1 message that no model wrote left out" in trial.missing


def test_a_session_that_goes_on_from_another_file_says_so(session: Callable[..., Any]) -> None:
    _, trial = session(user("u", "gone", "repair"), reply("a", "u", words("done")))
    assert "the conversation goes on from a record that is not in the file" in trial.missing


def test_records_in_a_ring_are_read_once(session: Callable[..., Any]) -> None:
    _, trial = session(user("u", "a", "repair"), reply("a", "u", words("done")))
    assert [line.role for line in trial.steps] == ["user", "assistant"]


def test_a_sub_agents_file_is_a_side_call(tmp_path: Path) -> None:
    path = tmp_path / "agent-1.jsonl"
    side = {"isSidechain": True, "agentId": "1"}
    lines = [{**user("u", None, "look"), **side}, {**reply("a", "u", words("seen")), **side}]
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(ImportRefused) as refusal:
        read_one(path)
    assert refusal.value.slug == "side-call"


def test_a_first_record_longer_than_what_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(user("u", None, "x" * 400_000)))
    assert find_trials(path).importer == "claude-code"


@pytest.mark.parametrize(
    "line",
    [
        {"type": "assistant", "session_id": "s", "uuid": "u", "message": {}},
        {"type": "summary", "summary": "x", "leafUuid": "u"},
        {"note": '"parentUuid" "sessionId" "isSidechain"'},
    ],
    ids=["stream-json output", "a summary alone", "names in a text"],
)
def test_what_only_looks_like_it(line: Record) -> None:
    assert not ClaudeCode().handles(Peek(Path("x"), "file", json.dumps(line).encode()))
