"""What an agent loop records is read back by our importer, step by step."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.capture import Recorder, RoleRefused, read_record, record_trial
from pytest_regcase.capture.plain_data import TEXT_LIMIT
from pytest_regcase.errors import UsageRefused
from pytest_regcase.importers.source import read_output
from pytest_regcase.records.trial import TranscriptLine, Trial
from tests.capture.conftest import kinds


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "trial"


@pytest.fixture
def trial(folder: Path) -> Iterator[Recorder]:
    with record_trial(folder, task_id="t") as recorder:
        yield recorder


def read(folder: Path) -> Trial:
    """Read with the importer while the trial still runs: the record is on the disk."""
    found = read_output(folder / "trial.jsonl")
    assert [each for each in found.missing if "no end line" not in each] == []
    return found


def test_steps_are_counted_by_complete_replies(trial: Recorder, folder: Path) -> None:
    calls = [{"id": "c1", "name": "bash", "arguments": {"command": "ls"}}]
    steps = [
        trial.step("system", "Be brief."),
        trial.step("user", "Correct calc.py."),
        trial.step("assistant", error=TimeoutError("slow")),
        trial.step("assistant", "Looking.", tool_calls=calls, offered_tools=["bash"]),
        trial.step("tool", "calc.py", tool_call_id="c1"),
        trial.step("assistant", "Done."),
    ]
    assert steps == [0, 0, 1, 1, 1, 2]
    found = read(folder)
    assert [line.step for line in found.steps] == steps
    assert [line.text for line in found.replies] == ["Looking.", "Done."]
    assert found.steps[2].error == "TimeoutError: slow"
    assert found.replies[0].tool_calls[0].arguments == '{"command": "ls"}'
    assert found.steps[4].at is not None


def test_a_conversation_may_be_recorded_after_it_happened(trial: Recorder, folder: Path) -> None:
    trial.step("assistant", "third", step=3)
    assert trial.step("tool", "result") == 3
    assert trial.step("assistant", "fourth") == 4
    assert [line.step for line in read(folder).steps] == [3, 3, 4]


@pytest.mark.parametrize(
    ("call", "stands"),
    [
        (
            {"id": "1", "type": "function", "function": {"name": "bash", "arguments": '{"a": 1}'}},
            {"id": "1", "name": "bash", "arguments": '{"a": 1}'},
        ),
        (
            {"type": "tool_use", "id": "2", "name": "bash", "input": {"a": 1}},
            {"id": "2", "name": "bash", "arguments": '{"a": 1}'},
        ),
        ({"name": "submit"}, {"name": "submit", "arguments": "{}"}),
        ("bash", {"name": "bash"}),
    ],
)
def test_calls_of_tools_in_the_shapes_that_clients_have(
    trial: Recorder, folder: Path, call: Any, stands: dict[str, str]
) -> None:
    trial.step("assistant", tool_calls=[call])
    assert kinds(folder, "step")[0]["tool_calls"] == [stands]
    assert len(read(folder).replies[0].tool_calls) == 1


class Usage:
    def model_dump(self) -> dict[str, Any]:
        return {"tokens": 5, "cost": float("nan")}


def test_what_cannot_be_serialised_is_text_and_is_read_back(trial: Recorder, folder: Path) -> None:
    trial.step(
        "assistant",
        [{"type": "text", "text": "in parts"}],
        finish=ConnectionError,
        usage=Usage(),
        model=Path("models/m"),
        offered_tools=[len, "bash"],
    )
    trial.step("tool", b"\xff raw", raw_output=float("nan"), tool_call_id=7)
    trial.model_call(error=ConnectionError, usage=Usage(), request=object())
    trial.final_text(ValueError)
    reply, result, call = read(folder).steps
    assert (reply.text, reply.finish, reply.model) == (
        '[{"type": "text", "text": "in parts"}]',
        "ConnectionError",
        "models/m",
    )
    assert reply.usage == {"tokens": 5, "cost": "NaN"}
    assert reply.offered_tools == ("<built-in function len>", "bash")
    assert (result.text, result.raw_output, result.tool_call_id) == ("\\xff raw", "NaN", "7")
    assert call.error == "ConnectionError"


def test_tools_as_a_request_offers_them(trial: Recorder, folder: Path) -> None:
    tools = [{"type": "function", "function": {"name": "bash"}}, {"name": "edit", "input_schema": {}}, "submit"]
    trial.step("assistant", offered_tools=tools)
    assert read(folder).replies[0].offered_tools == ("bash", "edit", "submit")


def test_half_a_patch_is_none(trial: Recorder, folder: Path) -> None:
    trial.submission(patch="x" * TEXT_LIMIT)
    with pytest.raises(UsageRefused, match="more than"):
        trial.submission(patch="x" * (TEXT_LIMIT + 1))
    assert [len(each["patch"]) for each in kinds(folder, "submission")] == [TEXT_LIMIT]


@pytest.mark.parametrize("role", ["agent", "", None, 5])
def test_a_role_that_no_conversation_has(trial: Recorder, role: Any) -> None:
    with pytest.raises(UsageRefused, match="system, developer, user, assistant, tool, function"):
        trial.step(role, "hello")


def test_other_names_of_roles(trial: Recorder, folder: Path) -> None:
    trial.step("developer", "a")
    trial.step("function", "b")
    assert [line.role for line in read(folder).steps] == ["system", "tool"]


def test_model_calls_belong_to_the_reply_that_they_ask_for(trial: Recorder, folder: Path) -> None:
    trial.model_call(request_id="req_1", seconds=0.5)
    trial.step("assistant", "one")
    trial.model_call(error="timeout")
    trial.model_call(step=0, error=ConnectionError())
    first, second, third = kinds(folder, "model_call")
    assert (first["step"], first["request_id"], first["seconds"]) == (1, "req_1", 0.5)
    assert (second["step"], second["error"]) == (2, "timeout")
    assert (third["step"], third["error"]) == (0, "ConnectionError")
    assert read(folder).model_requests == 3


def test_lines_that_an_importer_read_are_taken_as_they_are(trial: Recorder, folder: Path) -> None:
    line = TranscriptLine.model_validate({"step": 2, "role": "assistant", "text": "", "from": "messages[3]"})
    trial.take_line(line)
    assert read(folder).steps == (line,)
    assert trial.step("user", "next") == 2


def test_a_verification_needs_a_grader(trial: Recorder, folder: Path) -> None:
    with pytest.raises(RoleRefused, match="no step of a task runs"):
        trial.verification("tests", True)
    with (
        trial.task_step("look", "run_code", "other"),
        pytest.raises(RoleRefused, match="'look' has the role other"),
    ):
        trial.verification("tests", True)
    with trial.task_step("grade", "grade", "grader"):
        trial.verification("tests", True, ran=5)
    assert kinds(folder, "verification") == [
        {"name": "tests", "passed": True, "step_id": "grade", "details": {"ran": 5}}
    ]


def test_threads_may_record_together(trial: Recorder, folder: Path) -> None:
    def speak(number: int) -> None:
        for _ in range(20):
            trial.step("assistant", f"thread {number}")

    threads = [threading.Thread(target=speak, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [line.step for line in read(folder).replies] == list(range(1, 81))


def test_the_identity_and_the_end(folder: Path) -> None:
    config = {
        "run_id": "run-1",
        "attempt": 2,
        "harness": "mine 1.0",
        "model": "m",
        "revision": "abc",
        "task_text": "Correct it.",
        "labels": ["nightly"],
        "conditions": {"limit": float("inf"), "seed": 7},
    }
    with record_trial(folder, task_id="t", config=config) as recorder:
        recorder.final_text("42")
        recorder.submission(text="42")
        recorder.limit("max_steps")
    found = read(folder)
    assert (found.run_id, found.attempt, found.harness, found.model) == ("run-1", 2, "mine 1.0", "m")
    assert (found.revision, found.task_text, found.task_id) == ("abc", "Correct it.", "t")
    assert found.labels == ("nightly", "limit:max_steps")
    assert found.conditions == {"limit": "Infinity", "seed": 7}
    assert (found.termination, found.outcome, found.final_text) == ("limit", "undetermined", "42")
    assert found.submission is not None
    assert (found.submission.text, found.submission.by) == ("42", "agent")
    assert found.event_id_from == "recorded"
    assert found.started_at is not None
    assert found.ended_at is not None
    record = read_record(folder)
    assert (record.started_at, record.ended_at) == (found.started_at, found.ended_at)


def test_two_trials_are_two_events(tmp_path: Path) -> None:
    ids = set()
    for name in ("a", "b"):
        with record_trial(tmp_path / name, task_id="t"):
            pass
        ids.add(json.loads((tmp_path / name / "trial.jsonl").read_text().splitlines()[0])["event_id"])
    assert len(ids) == 2
