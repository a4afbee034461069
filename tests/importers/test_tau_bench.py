"""tau-bench: a trial that raised has a reward of 0 too, and was never graded."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import find_trials, read_one
from pytest_regcase.importers.tau_bench import TauBench

RESULTS = Path(__file__).parent.parent / "gold" / "tau-bench" / "results.json"


def write(tmp_path: Path, *records: Any) -> Path:
    path = tmp_path / "x"
    path.write_text(json.dumps(records))
    return path


def record(**facts: Any) -> dict[str, Any]:
    return {"task_id": 7, "reward": 0.0, "info": {}, "traj": [], "trial": 0, **facts}


def test_each_record_is_a_trial_of_its_own() -> None:
    found = find_trials(RESULTS)
    assert found.importer == "tau-bench"
    assert [(ref.key, ref.termination, ref.outcome, ref.refusal) for ref in found.refs] == [
        ("1#0", "finished", "failed", None),
        ("2#0", "finished", "passed", "passed"),
        ("1#1", "error", "undetermined", None),
        ("2#1", "limit", "failed", None),
    ]


def test_a_wrong_answer() -> None:
    trial = read_one(RESULTS, key="1#0")
    assert (trial.task_id, trial.attempt, trial.failing_step, trial.outcome_from) == ("1", 0, 2, "log")
    assert trial.error is None
    assert trial.labels == ("tau-bench:reward:0.0", "tau-bench:source:user")
    assert [(line.step, line.role) for line in trial.steps] == [
        (0, "system"),
        (0, "user"),
        (1, "assistant"),
        (1, "tool"),
        (2, "assistant"),
        (2, "user"),
    ]
    assert trial.steps[2].tool_calls[0].id == trial.steps[3].tool_call_id == "call_1"
    assert trial.steps[2].origin == "[0].traj[2]"
    assert trial.task_text == "Please cancel my booking AB12."  # not what the simulated user was told


def test_a_trial_that_raised_was_not_graded() -> None:
    trial = read_one(RESULTS, key="1#1")
    assert (trial.termination, trial.outcome, trial.outcome_from) == ("error", "undetermined", None)
    assert trial.error is not None
    assert (trial.error.type, trial.error.message) == ("RateLimitError", "litellm.RateLimitError: quota exceeded")
    assert trial.error.raised_by == "unknown"
    assert trial.labels == ("tau-bench:reward:0.0",)  # kept as it is recorded
    assert (trial.steps, trial.failing_step, trial.task_text) == ((), None, None)
    assert any("none when a trial raised" in sentence for sentence in trial.missing)


def test_without_an_end_it_ran_out_of_steps() -> None:
    trial = read_one(RESULTS, key="2#1")
    assert (trial.termination, trial.outcome, trial.failing_step) == ("limit", "failed", 2)


@pytest.mark.parametrize(
    ("reward", "outcome"), [(1, "passed"), (0.9999999, "passed"), (0.5, "failed"), (0, "failed")]
)
def test_the_reward_is_read_as_the_benchmark_does(tmp_path: Path, reward: float, outcome: str) -> None:
    (ref,) = find_trials(write(tmp_path, record(reward=reward))).refs
    assert (ref.outcome, ref.termination) == (outcome, None)


@pytest.mark.parametrize("reward", [None, "1.0", True])
def test_what_is_no_reward_leaves_it_undetermined(tmp_path: Path, reward: Any) -> None:
    with pytest.raises(ImportRefused) as caught:
        read_one(write(tmp_path, record(reward=reward)))
    assert caught.value.slug == "no-sign-of-failure"


def test_a_reward_that_is_no_number_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(json.dumps([record(reward=float("nan"))]))
    trial = read_one(path, failed_only=False)
    assert trial.outcome == "undetermined"
    assert any("NaN" in sentence for sentence in trial.missing)


def test_records_of_several_runs_keep_their_own_keys(tmp_path: Path) -> None:
    path = write(tmp_path, record(), record(), record(task_id="7", trial=None), 3)
    refs = find_trials(path).refs
    assert [ref.key for ref in refs] == ["7#0", "7#0#copy-2", "7", "record-3"]
    ids = {TauBench().read(path, ref).event_id for ref in refs}
    assert len(ids) == len(refs)


def test_a_list_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(RESULTS.read_bytes()[:3000])
    with pytest.raises(ImportRefused) as caught:
        find_trials(path)
    assert caught.value.slug == "corrupt"
