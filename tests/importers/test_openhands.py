"""OpenHands output: a patch beside an error is partial work, and a line without error has not passed."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers import openhands, reading
from pytest_regcase.importers.openhands_history import error_of
from pytest_regcase.importers.reading import Parsed, parse_json
from pytest_regcase.importers.source import find_trials, read_one

GOLD = Path(__file__).parent.parent / "gold"
OUTPUT = GOLD / "openhands" / "output.jsonl"
PATCH = "diff --git a/calc.py b/calc.py\n"


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in OUTPUT.read_text().splitlines()]


def write(tmp_path: Path, *records: dict[str, Any], end: str = "\n") -> Path:
    path = tmp_path / "x"
    path.write_text("\n".join(map(json.dumps, records)) + end)
    return path


def test_each_line_is_a_trial_and_a_rerun_keeps_a_key_of_its_own() -> None:
    found = find_trials(OUTPUT)
    assert found.importer == "openhands"
    assert [(ref.key, ref.termination, ref.outcome, ref.error_type, ref.refusal) for ref in found.refs] == [
        ("calc-1", "limit", "undetermined", "RuntimeError", None),
        ("calc-2", "error", "undetermined", "RateLimitError", None),
        ("calc-3", "finished", "passed", None, "passed"),
        ("calc-3#line-4", "finished", "failed", None, None),
        ("calc-4", "finished", "undetermined", None, "no-sign-of-failure"),
    ]


def test_a_line_that_is_too_long_is_listed_as_lost(
    tmp_path: Path, records: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, records[0], {**records[1], "more": "x" * 60_000}, records[2])
    monkeypatch.setattr(reading, "LINE_LIMIT_BYTES", 50_000)
    found = find_trials(path)
    assert [(ref.key, ref.refusal) for ref in found.refs][1] == ("line-2", "corrupt")
    assert len(found.refs) == 3
    with pytest.raises(ImportRefused, match="line 2 is lost: it is longer than"):
        read_one(path, key="line-2")


def test_a_limit_of_its_own_keeps_its_partial_patch() -> None:
    trial = read_one(OUTPUT, key="calc-1")
    assert trial.error is not None
    assert trial.error.raised_by == "harness"
    assert trial.partial_patch is not None
    assert trial.partial_patch.startswith(PATCH)
    assert trial.submission is None
    assert (trial.failing_step, trial.model_requests) == (2, 2)
    assert (trial.model, trial.revision) == ("openai/test-model", "b5338c69")
    assert trial.conditions["max_iterations"] == 2
    assert "api_key" not in trial.conditions["llm"]
    assert [(line.step, line.role, line.text) for line in trial.steps[:4]] == [
        (0, "system", "You are a coding agent."),
        (0, "user", "add() in calc.py subtracts"),
        (1, "assistant", "Look first."),
        (1, "tool", "def add(a, b):\n    return a - b"),
    ]
    reply = trial.steps[2]
    assert (reply.finish, reply.model, reply.offered_tools) == (
        "tool_calls",
        "test-model",
        ("execute_bash", "finish"),
    )
    assert reply.tool_calls[0].id == trial.steps[3].tool_call_id == "call_1"
    assert any("recall" in sentence for sentence in trial.missing)


def test_a_failed_model_call_is_the_next_step() -> None:
    trial = read_one(OUTPUT, key="calc-2")
    assert trial.error is not None
    assert (trial.failing_step, trial.error.raised_by) == (2, "supplier")


def test_a_verdict_in_the_line_is_the_logs() -> None:
    trial = read_one(OUTPUT, key="calc-3#line-4")
    assert (trial.outcome, trial.outcome_from, trial.failing_step) == ("failed", "log", 2)
    assert trial.final_text == "add() adds now."
    assert trial.submission is not None
    assert (trial.submission.by, trial.partial_patch) == ("harness", None)  # the harness took the diff itself
    assert read_one(OUTPUT, key="calc-3", failed_only=False).labels == ("openhands:report:resolved",)


def test_a_grading_that_broke_is_no_verdict(records: list[dict[str, Any]], tmp_path: Path) -> None:
    report = {"resolved": False, "test_timeout": True}
    path = write(tmp_path, {**records[3], "test_result": {"report": report}})
    trial = read_one(path, failed_only=False)
    assert (trial.outcome, trial.labels) == ("undetermined", ("openhands:report:test_timeout",))


def test_a_cut_last_line_loses_no_other(records: list[dict[str, Any]], tmp_path: Path) -> None:
    path = write(tmp_path, records[0], {}, end='\n\n{"instance_id": "calc-9", "test_re')
    refs = find_trials(path).refs
    assert [(ref.key, ref.refusal) for ref in refs] == [
        ("calc-1", None),
        ("line-2", "corrupt"),
        ("line-4", "corrupt"),
    ]
    assert "cut off" in (refs[2].why_not or "")
    assert read_one(path).task_id == "calc-1"


@pytest.mark.parametrize("name", ["line-1", "calc-7"])
def test_what_is_not_whole_or_not_there_is_refused(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, end='{"instance_id": "calc-9", "test_result": {}, "instruction": "cut')
    with pytest.raises(ImportRefused) as caught:
        read_one(path, key=name)
    assert caught.value.slug == ("corrupt" if name == "line-1" else "no-such-trial")


def test_pairs_of_2024_keep_what_was_made_of_a_reply(records: list[dict[str, Any]], tmp_path: Path) -> None:
    pairs = [
        [{"action": "message", "source": "user", "args": {"content": "Fix it."}}, {}],
        [
            {"action": "run", "source": "agent", "args": {"command": "ls", "thought": "Look."}},
            {"observation": "run", "content": "calc.py", "extras": {}},
        ],
        [{"action": "finish", "source": "agent", "args": {"outputs": {}, "thought": "Done."}}, {}],
    ]
    path = write(tmp_path, {**records[0], "history": pairs, "error": "ValueError: what"})
    trial = read_one(path)
    assert [(line.step, line.role, line.text) for line in trial.steps] == [
        (0, "user", "Fix it."),
        (1, "assistant", "Look."),
        (1, "tool", "calc.py"),
        (2, "assistant", "Done."),
    ]
    assert (trial.steps[1].tool_calls[0].name, trial.steps[1].tool_calls[0].arguments) == (
        "run",
        '{"command": "ls"}',
    )
    assert any("thought and action (2)" in sentence for sentence in trial.missing)


def test_calls_of_one_reply_stay_together(records: list[dict[str, Any]], tmp_path: Path) -> None:
    first, result = records[0]["history"][4:6]
    history = [*records[0]["history"][:4], first, {**first, "id": 99}, result]
    trial = read_one(write(tmp_path, {**records[0], "history": history}))
    assert [line.step for line in trial.replies] == [1]


def test_a_line_without_history_says_so(records: list[dict[str, Any]], tmp_path: Path) -> None:
    error = "Maximum retries (5) reached: AgentRuntimeBuildError: no image"
    path = write(
        tmp_path, {"instance_id": 4, "test_result": {}, "instruction": None, "history": None, "error": error}
    )
    trial = read_one(path)
    assert (trial.task_id, trial.steps, trial.failing_step, trial.partial_patch) == ("4", (), None, None)
    assert trial.error is not None
    assert (trial.error.type, trial.error.raised_by) == ("AgentRuntimeBuildError", "environment")
    assert any("no history" in sentence for sentence in trial.missing)


@pytest.mark.parametrize(
    ("message", "kind", "termination", "raised_by"),
    [
        ("Timeout after 300 seconds", None, "limit", "harness"),
        ("RuntimeError: Agent reached maximum budget for task", "RuntimeError", "limit", "harness"),
        ("AgentStuckInLoopError: Agent got stuck in a loop", "AgentStuckInLoopError", "error", "agent"),
        ("litellm.exceptions.APIError: x", "APIError", "error", "supplier"),
        ("Note: it broke", None, "error", "unknown"),
    ],
)
def test_error_texts(message: str, kind: str | None, termination: str, raised_by: str) -> None:
    error, ended = error_of(message)
    assert (error.type, ended, error.raised_by, error.message) == (kind, termination, raised_by, message)


@pytest.mark.parametrize(("success", "outcome"), [(True, "passed"), (False, "failed"), (None, "undetermined")])
def test_resolver_output(tmp_path: Path, success: bool | None, outcome: str) -> None:
    issue = {"owner": "someone", "repo": "calc", "number": 5}
    history = [
        {"action": "message", "content": "Fix it."},
        {"action": "run", "command": "ls", "thought": "Look."},
        {"observation": "run", "content": "calc.py"},
        {"action": "finish", "thought": "Done.", "outputs": {}},
    ]
    path = write(
        tmp_path,
        {
            "issue": issue,
            "issue_type": "issue",
            "instruction": "Please fix.",
            "base_commit": "abc",
            "git_patch": PATCH,
            "history": history,
            "metrics": {"costs": [0.1, 0.2]},
            "success": success,
            "error": None,
        },
    )
    trial = read_one(path, failed_only=False)
    assert (trial.task_id, trial.outcome, trial.termination) == ("someone/calc/5", outcome, "finished")
    assert (trial.failing_step, trial.model_requests, trial.final_text) == (2, 2, "Done.")
    assert trial.submission is not None
    assert trial.submission.patch == PATCH


def test_a_v1_history_is_read_as_one(records: list[dict[str, Any]], tmp_path: Path) -> None:
    lines = (GOLD / "openhands-v1" / "call_failed.jsonl").read_text().splitlines()
    path = write(tmp_path, {**records[4], "attempt": 2, "history": [json.loads(line) for line in lines]})
    trial = read_one(path)
    assert (trial.format, trial.attempt, trial.termination, trial.failing_step) == ("openhands", 2, "error", 2)
    assert trial.error is not None
    assert trial.error.type == "LLMRateLimitError"
    assert trial.partial_patch is not None


def test_each_trial_is_found_again_without_parsing_the_others(
    records: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, *records, end="\n{")
    refs = find_trials(path).refs
    parsed: list[bytes] = []

    def spy(content: bytes) -> Parsed:
        parsed.append(content)
        return parse_json(content)

    monkeypatch.setattr(openhands, "parse_json", spy)
    for ref in refs[:-1]:
        parsed.clear()
        assert openhands.OpenHands().read(path, ref).task_id == ref.task_id
        assert len(parsed) == 1
    with pytest.raises(ImportRefused):
        openhands.OpenHands().read(path, refs[-1])
