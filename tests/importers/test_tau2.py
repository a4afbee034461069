"""tau2-bench: one document or a folder of simulations; its own greeting and the user's tools are no model's."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import find_trials, read_one

RESULTS = Path(__file__).parent.parent / "gold" / "tau2" / "results.json"


def key(number: int) -> str:
    return f"00000000-0000-4000-8000-00000000000{number}"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text())
    return found


@pytest.fixture
def folder(document: dict[str, Any], tmp_path: Path) -> Path:
    """The same run as the benchmark saves it with ``format="dir"``."""
    (tmp_path / "run" / "simulations").mkdir(parents=True)
    simulations = document["simulations"]
    index = [{"id": each["id"], "task_id": each["task_id"], "trial": each["trial"]} for each in simulations]
    head = {name: value for name, value in document.items() if name != "simulations"}
    (tmp_path / "run" / "results.json").write_text(json.dumps({**head, "simulation_index": index}))
    for each in simulations:
        (tmp_path / "run" / "simulations" / f"{each['id']}.json").write_text(json.dumps(each))
    return tmp_path / "run"


def test_each_simulation_is_a_trial() -> None:
    found = find_trials(RESULTS)
    assert found.importer == "tau2"
    assert [(ref.key[-1], ref.termination, ref.outcome, ref.error_type, ref.refusal) for ref in found.refs] == [
        ("1", "finished", "failed", None, None),
        ("2", "finished", "passed", None, "passed"),
        ("3", "error", "undetermined", "user_error", None),
        ("4", "error", "undetermined", "APIConnectionError", None),
        ("5", "limit", "failed", None, None),
        ("6", "error", "undetermined", "agent_error", None),
    ]


def test_a_failed_simulation() -> None:
    trial = read_one(RESULTS, key=key(1))
    assert (trial.event_id, trial.event_id_from) == (key(1), "recorded")
    assert (trial.task_id, trial.attempt, trial.model, trial.revision) == ("no-signal", 0, "test-model", "c0ffee1")
    assert trial.labels == ("tau2:termination_reason:user_stop", "tau2:reward:0.0")
    assert trial.conditions["limits"] == {"max_steps": 30, "max_errors": 10}
    # Neither the greeting, which the harness says, nor what the simulated user did with its own tools.
    assert [(line.step, line.role, line.text) for line in trial.steps] == [
        (0, "user", "My phone has no signal."),
        (1, "assistant", None),
        (1, "tool", '{"roaming": false}'),
        (2, "assistant", "Please toggle airplane mode."),
        (2, "user", "It works now. ###STOP###"),
    ]
    assert trial.steps[1].tool_calls[0].name == "get_line"
    assert trial.steps[1].usage == {"completion_tokens": 12, "prompt_tokens": 300}
    assert trial.failing_step == 2
    assert trial.started_at is None
    said = " ".join(trial.missing)
    assert "greeting" in said
    assert "the simulated user's own tools (2)" in said
    assert "without a zone" in said


@pytest.mark.parametrize(
    ("number", "step", "raised_by", "message"),
    [
        (3, 2, "environment", "UserError: empty message"),
        (4, None, "unknown", "Connection error."),
        (6, 2, "agent", "AgentError: neither text nor call"),
    ],
)
def test_who_failed(number: int, step: int | None, raised_by: str, message: str) -> None:
    trial = read_one(RESULTS, key=key(number))
    assert trial.error is not None
    assert (trial.failing_step, trial.error.raised_by, trial.error.message) == (step, raised_by, message)
    assert trial.outcome_from is None


def test_a_limit_fails_at_its_last_step() -> None:
    assert read_one(RESULTS, key=key(5)).failing_step == 2


@pytest.mark.parametrize("given", ["run", "run/results.json"])
def test_the_folder_form_gives_the_same_trials(folder: Path, given: str) -> None:
    path = folder.parent / given
    assert find_trials(path).refs == find_trials(RESULTS).refs
    trial = read_one(path, key=key(1))
    whole = read_one(RESULTS, key=key(1))
    assert set(trial.source_digests) == {"results.json", f"{key(1)}.json"}
    plain: dict[str, Any] = {"source_digests": {}, "steps": ()}
    assert trial.model_copy(update=plain) == whole.model_copy(update=plain)
    assert [line.text for line in trial.steps] == [line.text for line in whole.steps]


def test_what_the_index_names_and_is_not_there_is_lost_not_failed(folder: Path) -> None:
    (folder / "simulations" / f"{key(1)}.json").unlink()
    (folder / "simulations" / f"{key(2)}.json").write_text('{"id": ')
    refs = {ref.key: ref for ref in find_trials(folder).refs}
    assert (refs[key(1)].refusal, refs[key(1)].failed, refs[key(1)].task_id) == ("no-record", False, "no-signal")
    assert refs[key(2)].refusal == "corrupt"
    assert refs[key(3)].failed
    for number, slug in ((1, "no-record"), (2, "corrupt")):
        with pytest.raises(ImportRefused) as caught:
            read_one(folder, key=key(number))
        assert caught.value.slug == slug


def test_one_simulation_file_alone(folder: Path) -> None:
    trial = read_one(folder / "simulations" / f"{key(1)}.json")
    assert (trial.format, trial.outcome, trial.model) == ("tau2", "failed", None)
    assert any("results.json" in sentence for sentence in trial.missing)


def test_a_run_without_simulations_holds_no_trial(document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({name: value for name, value in document.items() if name != "simulations"}))
    with pytest.raises(ImportRefused) as caught:
        read_one(path)
    assert caught.value.slug == "no-trial"


def changed(document: dict[str, Any], tmp_path: Path, **facts: Any) -> Path:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({**document, "simulations": [{**document["simulations"][0], **facts}]}))
    return path


@pytest.mark.parametrize(
    ("reason", "termination", "due"),
    [
        ("agent_stop", "finished", False),
        ("timeout", "limit", False),
        ("too_many_errors", "limit", False),
        ("context_window_exceeded", "error", True),
        ("unexpected_error", "error", True),
        ("invented_word", None, False),
    ],
)
def test_reasons(document: dict[str, Any], tmp_path: Path, reason: str, termination: Any, due: bool) -> None:
    trial = read_one(changed(document, tmp_path, termination_reason=reason), failed_only=False)
    assert (trial.termination, trial.failing_step) == (termination, 3 if due else 2)
    assert trial.outcome == "failed"  # it was graded: there is a check


def test_a_reward_of_nobody_is_undetermined(document: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ImportRefused) as caught:
        read_one(changed(document, tmp_path, reward_info=None))
    assert caught.value.slug == "no-sign-of-failure"


def test_a_voice_run_says_that_its_ticks_are_not_read(document: dict[str, Any], tmp_path: Path) -> None:
    trial = read_one(changed(document, tmp_path, messages=None, ticks=[{"tick_id": 0}]))
    assert trial.steps == ()
    assert any("ticks" in sentence for sentence in trial.missing)


def test_results_that_came_together_are_taken_apart(document: dict[str, Any], tmp_path: Path) -> None:
    results = document["simulations"][0]["messages"]
    together = [*results[:3], {"role": "tool", "tool_messages": [results[3], {**results[3], "id": "x"}]}]
    trial = read_one(changed(document, tmp_path, messages=together, termination_reason="unexpected_error"))
    assert [line.tool_call_id for line in trial.steps if line.role == "tool"] == ["call_1", "x"]
