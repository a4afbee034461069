"""LangSmith runs: dotted order, an error that is repr and traceback in one, pending as cut off."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.langsmith import LangSmith
from pytest_regcase.importers.source import find_trials, read_one
from pytest_regcase.records.trial import Trial, TrialRef

GOLD = Path(__file__).parent.parent / "gold" / "langsmith"
Runs = list[dict[str, Any]]


@pytest.fixture
def edited(tmp_path: Path) -> Callable[..., tuple[TrialRef, Trial]]:
    def read(edit: Callable[[Runs], Any]) -> tuple[TrialRef, Trial]:
        runs = json.loads((GOLD / "call_failed.json").read_text())
        path = tmp_path / "x.json"
        path.write_text(json.dumps(edit(runs) or runs))
        (found,) = find_trials(path).refs
        return found, LangSmith().read(path, found)

    return read


def root(runs: Runs) -> dict[str, Any]:
    return next(run for run in runs if run.get("parent_run_id") is None)


def test_the_file_is_in_reverse_and_the_dotted_order_counts() -> None:
    trial = read_one(GOLD / "call_failed.json")
    assert [(line.step, line.role, line.error) for line in trial.steps] == [
        (0, "system", None), (0, "user", None), (1, "assistant", None), (1, "tool", None),
        (2, "assistant", "no answer within 3 s"), (2, "assistant", "no answer within 3 s"),
    ]  # fmt: skip
    assert trial.steps[2].tool_calls[0].arguments == '{"command": "cat calc.py"}'
    assert trial.steps[3].tool_call_id == "call_1"
    assert (trial.task_id, trial.attempt, trial.revision, trial.model) == ("calc-001", 2, "0123abc", "replay-1")
    assert (trial.task_text, trial.harness) == ("add() in calc.py subtracts", None)
    assert (trial.termination, trial.failing_step, trial.model_requests) == ("error", 2, 3)


def test_an_error_is_split_where_its_traceback_begins() -> None:
    error = read_one(GOLD / "call_failed.json").error
    assert error is not None
    assert (error.type, error.message, error.raised_by) == ("TimeoutError", "no answer within 3 s", "supplier")
    assert error.traceback is not None
    assert error.traceback.startswith("Traceback (most recent call last):")
    assert [link.type for link in error.chain] == ["TimeoutError"]


@pytest.mark.parametrize(
    ("told", "kind", "message"),
    [
        ("ValueError('bad plan')", "ValueError", "bad plan"),
        ("openai.RateLimitError(\"Error code: 429\")", "RateLimitError", "Error code: 429"),
        ("it broke", None, "it broke"),
    ],
)  # fmt: skip
def test_an_error_without_a_traceback(edited: Callable[..., Any], told: str, kind: Any, message: str) -> None:
    def edit(runs: Runs) -> None:
        root(runs)["error"] = told

    _, trial = edited(edit)
    assert trial.error is not None
    assert (trial.error.type, trial.error.message, trial.error.traceback) == (kind, message, None)
    assert trial.error.raised_by == "unknown"


def test_feedback_of_yes_or_no_is_an_outcome_and_a_share_is_a_label() -> None:
    trial = read_one(GOLD / "call_failed.json")
    assert (trial.outcome, trial.outcome_from) == ("failed", "log")
    assert trial.labels == ("langsmith:feedback:correctness=0.2", "langsmith:feedback:resolved=0")


def test_without_feedback_nothing_says_an_outcome(edited: Callable[..., Any]) -> None:
    def edit(runs: Runs) -> None:
        del root(runs)["feedback_stats"]

    ref, trial = edited(edit)
    assert (ref.outcome, trial.outcome, trial.outcome_from, trial.termination) == (
        "undetermined", "undetermined", None, "error",
    )  # fmt: skip


def test_a_pending_root_is_cut_off_at_the_call_that_never_ended() -> None:
    trial = read_one(GOLD / "pending.jsonl")
    assert (trial.termination, trial.failing_step, trial.error, len(trial.replies)) == ("cut-off", 2, None, 1)
    assert trial.final_text is None


def test_a_child_that_failed_below_a_root_that_ended_well_was_retried(edited: Callable[..., Any]) -> None:
    def edit(runs: Runs) -> None:
        root(runs).update(error=None, status="success", feedback_stats=None, outputs={"patch": "diff --git a b"})

    ref, trial = edited(edit)
    assert (ref.failed, ref.refusal) == (False, "no-sign-of-failure")
    assert (trial.termination, trial.error, trial.final_text) == ("finished", None, "diff --git a b")
    assert sum(1 for line in trial.steps if line.error) == 2


def test_child_runs_inside_their_root_are_the_same_trial(edited: Callable[..., Any]) -> None:
    def nest(runs: Runs) -> Any:
        top = root(runs)
        return {**top, "child_runs": [run for run in runs if run is not top]}

    _, trial = edited(nest)
    assert [(line.step, line.role) for line in trial.steps] == [
        (line.step, line.role) for line in read_one(GOLD / "call_failed.json").steps
    ]
    assert trial.steps[2].origin == "line 1 child_runs[3]"


def test_chat_completions_are_replies_too(edited: Callable[..., Any]) -> None:
    def edit(runs: Runs) -> None:
        for run in runs:
            if run["run_type"] == "llm":
                run["inputs"] = {"messages": [{"role": "user", "content": "repair"}]}
                message = {"role": "assistant", "content": "done"}
                run["outputs"] = {
                    "choices": [{"message": message, "finish_reason": "stop"}],
                    "usage": {"total": 3},
                }
                run.update(error=None, status="success")

    _, trial = edited(edit)
    assert [(line.text, line.finish, line.usage) for line in trial.replies] == [("done", "stop", {"total": 3})] * 3


def test_without_a_task_id_the_reference_example_is_the_task(edited: Callable[..., Any]) -> None:
    def edit(runs: Runs) -> None:
        for run in runs:
            run["extra"] = {}
        root(runs)["reference_example_id"] = "example-7"

    _, trial = edited(edit)
    assert (trial.task_id, trial.attempt, trial.revision) == ("example-7", None, None)


def test_a_run_without_a_trace_is_not_recognised(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('[{"run_type": "llm", "name": "x"}]')
    with pytest.raises(ImportRefused) as refusal:
        find_trials(path)
    assert refusal.value.slug == "not-recognised"
