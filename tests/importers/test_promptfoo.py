"""promptfoo results: a wrong answer, an error and a grader that failed are three things; repeats have a number."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.importers.promptfoo import Promptfoo
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.source import find_trials, read_one
from pytest_regcase.records.trial import Trial

GOLD = Path(__file__).parent.parent / "gold" / "promptfoo"


@pytest.fixture
def edited(tmp_path: Path) -> Callable[..., Trial]:
    def read(**changes: Any) -> Trial:
        document = json.loads((GOLD / "results.json").read_text())
        document["results"]["results"] = [{**document["results"]["results"][0], **changes}]
        path = tmp_path / "x.json"
        path.write_text(json.dumps(document))
        (ref,) = find_trials(path).refs
        return Promptfoo().read(path, ref)

    return read


def test_each_result_has_its_own_key_and_a_repeat_its_number() -> None:
    refs = find_trials(GOLD / "results.json").refs
    assert [(ref.key, ref.task_id, ref.attempt, ref.outcome, ref.termination, ref.refusal) for ref in refs] == [
        ("0.0", "0", None, "passed", "finished", "passed"),
        ("1.0#1", "1", 1, "failed", "finished", None),
        ("1.0#2", "1", 2, "undetermined", "error", None),
        ("2.0", "2", None, "undetermined", "finished", None),
    ]


def test_a_wrong_answer_raised_nothing() -> None:
    trial = read_one(GOLD / "results.json", key="1.0#1")
    assert (trial.outcome, trial.outcome_from, trial.termination, trial.error) == (
        "failed",
        "log",
        "finished",
        None,
    )
    assert (trial.failing_step, trial.final_text) == (1, "return a * b")
    assert trial.labels == ("promptfoo:failureReason:1", "promptfoo:assert:contains")


def test_an_error_is_no_wrong_answer() -> None:
    trial = read_one(GOLD / "results.json", key="1.0#2")
    assert (trial.outcome, trial.outcome_from, trial.termination, trial.failing_step) == (
        "undetermined", None, "error", 1,
    )  # fmt: skip
    assert trial.error is not None
    words = "API call error: Error: Request timed out after 60000 ms"
    assert (trial.error.type, trial.error.message, trial.error.raised_by) == (None, words, "unknown")
    assert (trial.steps[-1].error, trial.replies) == (words, ())
    assert (trial.run_id, trial.event_id, trial.harness) == ("eval-abc", "r2", "promptfoo 0.121.20")
    assert (trial.model, trial.conditions) == ("openai:chat:replay-1", {"maxConcurrency": 4, "repeat": 2})
    assert "someone@example.com" not in trial.model_dump_json()


def test_a_grader_that_failed_decided_nothing() -> None:
    trial = read_one(GOLD / "results.json", key="2.0")
    assert (trial.outcome, trial.termination, trial.failing_step, len(trial.replies)) == (
        "undetermined", "finished", 1, 1,
    )  # fmt: skip
    assert trial.error is not None
    assert trial.error.raised_by == "grader"


def test_lines_and_the_table_of_version_2_say_the_same_things() -> None:
    lines = find_trials(GOLD / "lines.jsonl").refs
    assert [(ref.key, ref.outcome) for ref in lines] == [("0.0", "passed"), ("1.0", "undetermined")]
    table = find_trials(GOLD / "table.json").refs
    assert [(ref.key, ref.outcome, ref.termination) for ref in table] == [
        ("0.0", "passed", "finished"), ("0.1", "undetermined", "error"),
    ]  # fmt: skip
    trial = read_one(GOLD / "table.json")
    assert (trial.model, trial.task_text, trial.error and trial.error.message) == (
        "replay-2", "add() in calc.py subtracts", "API error: 500",
    )  # fmt: skip
    assert (trial.event_id_from, trial.run_id, trial.harness) == ("digest", None, "promptfoo")


def test_an_older_result_without_a_reason(edited: Callable[..., Trial]) -> None:
    graded = edited(failureReason=None, success=False, error="no", gradingResult={"pass": False})
    assert (graded.outcome, graded.termination, graded.error) == ("failed", "finished", None)
    late = edited(failureReason=None, success=False, error="late", gradingResult=None, response=None)
    assert (late.outcome, late.termination) == ("undetermined", "error")


def test_a_prompt_of_messages_is_a_conversation(edited: Callable[..., Trial]) -> None:
    messages = [{"role": "system", "content": "You repair code."}, {"role": "user", "content": "repair"}]
    trial = edited(
        prompt={"raw": json.dumps(messages)}, response={"output": {"patch": "x"}, "tokenUsage": {"total": 3}}
    )
    assert [(line.role, line.text) for line in trial.steps] == [
        ("system", "You repair code."), ("user", "repair"), ("assistant", '{"patch": "x"}'),
    ]  # fmt: skip
    assert (trial.task_text, trial.steps[-1].usage) == ("repair", {"total": 3})


def test_what_was_stripped_is_absent_and_said(edited: Callable[..., Trial]) -> None:
    trial = edited(prompt={"raw": "[prompt stripped]"}, response={"output": "[output stripped]"})
    assert (trial.final_text, trial.task_text) == (None, None)
    assert "stripped" not in "".join(line.text or "" for line in trial.steps)
    assert "the prompt is not recorded" in trial.missing
    assert "the output is not recorded: replaying it gives an empty answer" in trial.missing


@pytest.mark.parametrize(
    "document",
    [
        {"results": [{"task_id": "x", "is_resolved": True}], "accuracy": 0.5},
        {"results": {"version": 3, "timestamp": "x"}, "accuracy": 1},
        {"promptIdx": 0, "testIdx": 0},
    ],
    ids=["another harness's list", "no evaluation", "half a result"],
)
def test_what_only_looks_like_it(document: Any) -> None:
    assert not Promptfoo().handles(Peek(Path("x"), "file", json.dumps(document).encode()))
