"""Langfuse traces: camel and snake case, levels as errors, scores that are an outcome and scores that are none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.langfuse import Langfuse
from pytest_regcase.importers.source import find_trials, read_one
from pytest_regcase.records.trial import Trial, TrialRef

GOLD = Path(__file__).parent.parent / "gold" / "langfuse"


@pytest.fixture
def edited(tmp_path: Path) -> Callable[..., tuple[TrialRef, Trial]]:
    def read(edit: Callable[[dict[str, Any]], None]) -> tuple[TrialRef, Trial]:
        document = json.loads((GOLD / "trace.json").read_text())
        edit(document)
        path = tmp_path / "x.json"
        path.write_text(json.dumps(document))
        (found,) = find_trials(path).refs
        return found, Langfuse().read(path, found)

    return read


def test_a_trace_download_in_the_order_of_its_starts() -> None:
    trial = read_one(GOLD / "trace.json")
    assert (trial.event_id, trial.run_id, trial.task_id, trial.attempt) == ("tr-1", "sweep-7", "calc-001", 2)
    assert (trial.revision, trial.model, trial.harness) == ("0123abc", "replay-1", None)
    assert (trial.termination, trial.outcome, trial.outcome_from, trial.failing_step) == (
        "error", "failed", "log", 2,
    )  # fmt: skip
    assert trial.error is not None
    assert (trial.error.type, trial.error.message, trial.error.raised_by) == (
        None,
        "Request timed out.",
        "supplier",
    )
    assert [(line.step, line.role) for line in trial.steps] == [
        (0, "system"), (0, "user"), (1, "assistant"), (1, "tool"), (2, "assistant"),
    ]  # fmt: skip
    assert trial.steps[2].tool_calls[0].arguments == '{"command": "cat calc.py"}'
    assert trial.steps[2].usage == {"input": 30, "output": 9}
    assert trial.conditions == {"model_parameters": {"max_tokens": 512}, "environment": "ci"}
    assert trial.labels == ("langfuse:score:resolved=0", "langfuse:score:helpfulness=1")
    assert "someone" not in trial.model_dump_json()


def test_two_traces_in_a_blob_export_with_times_without_a_zone() -> None:
    refs = {ref.key: ref for ref in find_trials(GOLD / "observations.jsonl").refs}
    assert [(key, ref.failed, ref.termination) for key, ref in refs.items()] == [
        ("tr-a", False, "finished"), ("tr-b", True, "cut-off"),
    ]  # fmt: skip
    retried = Langfuse().read(GOLD / "observations.jsonl", refs["tr-a"])
    assert [line.error for line in retried.steps if line.error] == ["Connection error."]
    assert (retried.error, retried.outcome, retried.outcome_from) == (None, "undetermined", None)
    assert retried.started_at is not None
    assert retried.started_at.isoformat() == "2026-09-21T10:00:00+00:00"
    cut = Langfuse().read(GOLD / "observations.jsonl", refs["tr-b"])
    assert (cut.failing_step, len(cut.replies), cut.steps[-1].text) == (2, 1, "def add(a, b):\n    return a - b\n")


@pytest.mark.parametrize(
    ("scores", "outcome"),
    [
        ([("resolved", 1, "BOOLEAN")], "passed"),
        ([("helpfulness", 1, "BOOLEAN")], "undetermined"),
        ([("resolved", 0.4, "NUMERIC")], "undetermined"),
        ([("resolved", 1, "BOOLEAN"), ("passed", 0, "BOOLEAN")], "undetermined"),
        ([], "undetermined"),
    ],
    ids=["yes", "another name", "a share", "they disagree", "none"],
)
def test_only_an_unmistakable_score_is_an_outcome(edited: Callable[..., Any], scores: Any, outcome: str) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["scores"] = [{"name": name, "value": value, "dataType": kind} for name, value, kind in scores]

    ref, trial = edited(edit)
    assert (ref.outcome, trial.outcome) == (outcome, outcome)
    assert (trial.outcome_from is None) == (outcome == "undetermined")
    assert trial.termination == "error"


def test_a_passed_trace_is_refused_whatever_its_level(tmp_path: Path) -> None:
    document = json.loads((GOLD / "trace.json").read_text())
    document["scores"][0]["value"] = 1
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ImportRefused) as refusal:
        read_one(path)
    assert refusal.value.slug == "passed"


def test_an_export_without_the_root_does_not_say_how_it_ended(edited: Callable[..., Any]) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["observations"] = [each for each in document["observations"] if each["id"] != "o1"]
        document["scores"] = []

    ref, trial = edited(edit)
    assert (trial.termination, trial.failing_step, ref.failed) == (None, 2, True)
    assert trial.error is not None
    assert trial.error.message == "Request timed out."
    assert "how it ended: no span in the log stands for the whole run" in trial.missing


def test_an_api_answer_is_read_by_its_data(tmp_path: Path) -> None:
    document = json.loads((GOLD / "trace.json").read_text())
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"data": document["observations"], "meta": {"page": 1}}))
    trial = read_one(path)
    assert (trial.format, trial.termination, trial.failing_step, trial.outcome) == (
        "langfuse", "error", 2, "undetermined",
    )  # fmt: skip


def test_a_long_input_before_the_observations_hides_nothing(tmp_path: Path) -> None:
    document = json.loads((GOLD / "trace.json").read_text())
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"id": "tr-1", "timestamp": "x", "input": "x" * 300_000, **document}))
    assert find_trials(path).importer == "langfuse"


@pytest.mark.parametrize(
    "line", [{"traceId": "a", "level": "ERROR", "message": "x"}, {"level": "ERROR", "type": "SPAN"}]
)
def test_a_log_line_is_no_observation(tmp_path: Path, line: dict[str, Any]) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(line) + "\n")
    with pytest.raises(ImportRefused) as refusal:
        find_trials(path)
    assert refusal.value.slug == "not-recognised"
