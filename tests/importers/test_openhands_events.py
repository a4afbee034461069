"""OpenHands V0 event streams: a list, lines, or a folder of numbered files."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import find_trials, read_one

LIST = Path(__file__).parent.parent / "gold" / "openhands-events" / "agent_error.json"


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(LIST.read_text())
    return found


def write(tmp_path: Path, events: list[Any]) -> Path:
    path = tmp_path / "x"
    path.write_text(json.dumps(events))
    return path


def test_an_agent_that_ended_in_the_state_error() -> None:
    found = find_trials(LIST)
    assert (found.importer, found.refs[0].error_type) == ("openhands-events", "InternalServerError")
    trial = read_one(LIST)
    assert trial.error is not None
    assert (trial.termination, trial.error.raised_by, trial.failing_step) == ("error", "supplier", 3)
    assert trial.error.message == "InternalServerError: litellm.InternalServerError: no answer"
    assert trial.labels == ("openhands:agent_state:error",)
    assert (trial.task_text, trial.model, trial.outcome) == (
        "add() in calc.py subtracts",
        "test-model",
        "undetermined",
    )


def test_a_folder_is_read_in_the_order_of_its_numbers(events: list[dict[str, Any]], tmp_path: Path) -> None:
    whole = read_one(LIST)
    folder = tmp_path / "conversation" / "events"
    folder.mkdir(parents=True)
    for number, event in enumerate(events):
        (folder / f"{number + 5}.json").write_text(json.dumps(event))  # 10 comes behind 9
    (folder / "4.json").write_text("{")
    for path in (folder, folder.parent):
        trial = read_one(path)
        assert [(line.step, line.text) for line in trial.steps] == [(line.step, line.text) for line in whole.steps]
        assert any("4.json is left out" in sentence for sentence in trial.missing)
        assert list(trial.source_digests) == ["events"]
    before = read_one(folder).source_digests
    (folder / "5.json").write_text(json.dumps(events[0]) + " ")
    assert read_one(folder).source_digests != before


def test_lines_of_events(events: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert read_one(path).failing_step == 3


def test_without_a_state_it_is_cut_off_where_a_reply_was_due(events: list[dict[str, Any]], tmp_path: Path) -> None:
    trial = read_one(write(tmp_path, events[:-1]))
    assert (trial.termination, trial.failing_step, trial.error) == ("cut-off", 3, None)


@pytest.mark.parametrize(
    ("state", "termination"),
    [
        ("finished", "finished"),
        ("stopped", "cancelled"),
        ("running", "cut-off"),
        ("awaiting_user_input", "cut-off"),
    ],
)
def test_states(events: list[dict[str, Any]], tmp_path: Path, state: str, termination: str) -> None:
    last = {**events[-1], "extras": {"agent_state": state, "reason": ""}}
    trial = read_one(write(tmp_path, [*events[:-1], last]), failed_only=False)
    assert trial.termination == termination
    assert trial.error is None


def test_an_error_without_a_reason_is_an_error_all_the_same(events: list[dict[str, Any]], tmp_path: Path) -> None:
    trial = read_one(write(tmp_path, [*events[:-1], {**events[-1], "extras": {"agent_state": "error"}}]))
    assert trial.termination == "error"
    assert trial.error is not None
    assert (trial.error.type, trial.error.message) == (None, None)


def test_a_reply_that_could_not_be_parsed_is_said(events: list[dict[str, Any]], tmp_path: Path) -> None:
    orphan = {
        "id": 9,
        "timestamp": "",
        "source": "agent",
        "message": "",
        "observation": "error",
        "content": "No such tool.",
    }
    trial = read_one(write(tmp_path, [*events[:-1], orphan]))
    assert (trial.steps[-1].role, trial.steps[-1].text) == ("user", "No such tool.")
    assert any("could not be parsed" in sentence for sentence in trial.missing)


def test_a_clean_end_is_no_sign_of_failure(events: list[dict[str, Any]], tmp_path: Path) -> None:
    finish = {
        "id": 9,
        "timestamp": "",
        "source": "agent",
        "message": "",
        "action": "finish",
        "args": {"thought": "Done."},
    }
    with pytest.raises(ImportRefused) as caught:
        read_one(write(tmp_path, [*events[:-1], finish]))
    assert caught.value.slug == "no-sign-of-failure"
    assert read_one(write(tmp_path, [*events[:-1], finish]), failed_only=False).final_text == "Done."


def test_what_a_person_ran_is_no_reply(events: list[dict[str, Any]], tmp_path: Path) -> None:
    own = {**events[4], "source": "user"}
    trial = read_one(write(tmp_path, [*events[:4], own]))
    assert trial.replies == ()
    assert any("user's run" in sentence for sentence in trial.missing)
