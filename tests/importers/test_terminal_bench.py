"""terminal-bench results: outcome, label and attempt kept apart; a run's folder completes its own results."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import find_trials, read_one, read_output

GOLD = Path(__file__).parent.parent / "gold" / "terminal-bench"
KEYS = [f"fix-add.{number}-of-5.run-1" for number in range(1, 6)]


def test_a_run_lists_all_its_trials_with_the_attempt_of_their_names() -> None:
    refs = find_trials(GOLD / "results.json").refs
    assert [(ref.key, ref.attempt, ref.outcome, ref.termination) for ref in refs] == [
        (KEYS[0], 1, "passed", "limit"),
        (KEYS[1], 2, "failed", "limit"),
        (KEYS[2], 3, "undetermined", "error"),
        (KEYS[3], 4, "failed", "finished"),
    ]
    assert [ref.failed for ref in refs] == [False, True, True, True]


def test_a_trial_that_is_resolved_in_spite_of_a_time_out_is_refused() -> None:
    with pytest.raises(ImportRefused) as caught:
        read_one(GOLD / "results.json", key=KEYS[0])
    assert caught.value.slug == "passed"
    assert "agent_timeout" in caught.value.text


def test_a_parse_error_is_the_graders_and_leaves_the_outcome_open() -> None:
    trial = read_one(GOLD / "results.json", key=KEYS[2])
    assert (trial.outcome, trial.outcome_from) == ("undetermined", None)
    assert trial.error is not None
    assert (trial.error.type, trial.error.message, trial.error.raised_by) == ("parse_error", None, "grader")


def test_a_trial_alone_is_the_same_trial() -> None:
    alone, of_run = read_one(GOLD / "trial.json"), read_one(GOLD / "results.json", key=KEYS[1])
    assert alone.model_copy(update={"source_digests": of_run.source_digests}) == of_run
    assert (alone.task_id, alone.attempt, alone.run_id) == ("fix-add", 2, "run-1")
    assert (alone.termination, alone.error, alone.steps, alone.failing_step) == ("limit", None, (), None)
    assert alone.labels == ("terminal-bench:failure_mode:agent_timeout",)
    assert alone.event_id_from == "recorded"


def test_a_runs_folder_adds_what_its_results_do_not_hold_yet() -> None:
    found = find_trials(GOLD / "run")
    assert [ref.key for ref in found.refs] == KEYS
    trial = read_one(GOLD / "run", key=KEYS[4])
    assert trial.error is not None
    assert (trial.error.type, trial.model, trial.revision) == ("unknown_agent_error", "test/model", "3f9c2e1")
    assert trial.conditions == {
        "agent": "terminus",
        "dataset": {"name": "terminal-bench-core", "version": "0.1.1"},
        "n_concurrent_trials": 4,
        "n_attempts": 5,
    }
    assert list(trial.source_digests) == [f"fix-add/{KEYS[4]}/results.json", "run_metadata.json"]


def test_a_run_that_was_ended_has_the_results_of_its_trials_only(tmp_path: Path) -> None:
    shutil.copytree(GOLD / "run", tmp_path / "run")
    (tmp_path / "run" / "results.json").unlink()
    assert [ref.key for ref in find_trials(tmp_path / "run").refs] == [KEYS[0], KEYS[4]]


@pytest.mark.parametrize(
    ("change", "termination", "error_type", "failed"),
    [
        ({"is_resolved": None, "failure_mode": "unset"}, None, None, False),
        ({"is_resolved": False, "failure_mode": "unknown"}, None, None, True),
        ({"is_resolved": None, "failure_mode": "unknown"}, None, None, False),
        ({"is_resolved": None, "failure_mode": "test_timeout"}, "error", "test_timeout", True),
        (
            {"is_resolved": False, "failure_mode": "context_length_exceeded"},
            "error",
            "context_length_exceeded",
            True,
        ),
        ({"is_resolved": False, "failure_mode": "none"}, "finished", None, True),
    ],
)
def test_a_label_is_no_more_than_it_says(
    tmp_path: Path, change: dict[str, Any], termination: str | None, error_type: str | None, failed: bool
) -> None:
    document = json.loads((GOLD / "trial.json").read_text())
    (tmp_path / "x").write_text(json.dumps(document | change))
    (ref,) = find_trials(tmp_path / "x").refs
    assert (ref.termination, ref.error_type, ref.failed) == (termination, error_type, failed)
    trial = read_output(tmp_path / "x")
    assert trial.error is None or trial.error.type == error_type


def test_the_shape_with_uuid_and_without_times_is_read(tmp_path: Path) -> None:
    document = json.loads((GOLD / "trial.json").read_text())
    old = {name: value for name, value in document.items() if not name.endswith("_at")}
    old["uuid"] = old.pop("id")
    (tmp_path / "x").write_text(json.dumps(old))
    trial = read_output(tmp_path / "x")
    assert (trial.event_id, trial.event_id_from) == (document["id"], "recorded")
    assert (trial.started_at, trial.ended_at) == (None, None)


def test_two_trials_of_one_name_stay_two(tmp_path: Path) -> None:
    document = json.loads((GOLD / "results.json").read_text())
    document["results"] = [document["results"][1]] * 2
    (tmp_path / "x").write_text(json.dumps(document))
    assert [ref.key for ref in find_trials(tmp_path / "x").refs] == [KEYS[1], f"{KEYS[1]}#2"]


def test_another_list_of_results_is_not_taken_for_a_run(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(json.dumps({"results": [{"failure_mode": "x"}], "accuracy": 1}))
    with pytest.raises(ImportRefused) as caught:
        find_trials(tmp_path / "x")
    assert caught.value.slug == "not-recognised"
