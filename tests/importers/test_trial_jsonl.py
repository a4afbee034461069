"""Our own format: a killed agent loses half a line, and no more."""

import contextlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers import reading
from pytest_regcase.importers.collection import collect
from pytest_regcase.importers.source import find_trials, read_one, read_output
from pytest_regcase.records.trial import Trial
from pytest_regcase.records.words import EXPECTATIONS

GOLD = Path(__file__).parent.parent / "gold" / "trial-jsonl"
FIRST = {"kind": "trial", "schema": 1, "task_id": "calc"}


def read(tmp_path: Path, *lines: Any, first: Any = FIRST) -> Trial:
    path = tmp_path / "trial.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (first, *lines)))
    return read_output(path)


def test_a_failed_trial() -> None:
    trial = read_one(GOLD / "failed.jsonl")
    assert (trial.harness, trial.run_id, trial.task_id, trial.attempt) == ("a small agent 1.0", "run-7", "calc", 2)
    assert (trial.event_id, trial.event_id_from) == ("run-7-calc-2", "recorded")
    assert (trial.termination, trial.outcome, trial.failing_step) == ("error", "undetermined", 2)
    assert trial.error is not None
    assert (trial.error.type, trial.error.raised_by) == ("timeout", "supplier")
    assert [(line.step, line.role, line.error is not None) for line in trial.steps] == [
        (0, "user", False),
        (1, "assistant", False),
        (1, "tool", False),
        (2, "assistant", True),
        (2, "assistant", True),
    ]
    assert (len(trial.replies), trial.model_requests) == (1, 3)
    assert trial.steps[1].offered_tools == ("bash", "submit")
    assert trial.partial_patch == "diff --git a/calc.py b/calc.py\n"
    assert trial.submission is None
    assert trial.started_at == datetime(2026, 4, 12, 9, 31, 7, tzinfo=UTC)
    assert trial.ended_at == datetime(2026, 4, 12, 9, 31, 15, tzinfo=UTC)
    assert trial.can_show == EXPECTATIONS
    assert trial.missing == ()


def test_half_a_last_line_is_dropped_and_said() -> None:
    trial = read_one(GOLD / "cut_off.jsonl")
    assert (trial.termination, trial.failing_step, len(trial.steps)) == ("cut-off", 2, 3)
    assert any("line 5" in sentence and "cut off" in sentence for sentence in trial.missing)
    assert any("no end line" in sentence for sentence in trial.missing)


@given(st.integers(min_value=0))
def test_cut_anywhere_it_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    content = (GOLD / "failed.jsonl").read_bytes()
    kept = content[: cut % len(content)]
    path = tmp_path_factory.mktemp("cut") / "trial.jsonl"
    path.write_bytes(kept)
    records = []
    for line in kept.splitlines():
        with contextlib.suppress(ValueError):
            records.append(json.loads(line))
    if not records:
        with pytest.raises(ImportRefused):
            find_trials(path)
        return
    trial = read_one(path)
    assert len(trial.steps) == sum(
        each["kind"] == "step" or (each["kind"] == "model_call" and "error" in each) for each in records
    )
    assert trial.termination == ("error" if records[-1]["kind"] == "end" else "cut-off")


@pytest.mark.parametrize(
    ("end", "slug"),
    [
        ({"kind": "end", "termination": "finished", "outcome": "passed"}, "passed"),
        ({"kind": "end", "termination": "finished", "outcome": "undetermined"}, "no-sign-of-failure"),
        ({"kind": "end", "termination": "never-started"}, "never-ran"),
    ],
)
def test_what_is_no_failed_trial_is_refused(tmp_path: Path, end: Any, slug: str) -> None:
    read(tmp_path, end)
    with pytest.raises(ImportRefused) as caught:
        read_one(tmp_path / "trial.jsonl")
    assert caught.value.slug == slug


@pytest.mark.parametrize("outcome", ["passed", "failed"])
def test_a_recorded_outcome_is_the_logs(tmp_path: Path, outcome: str) -> None:
    trial = read(tmp_path, {"kind": "end", "termination": "finished", "outcome": outcome, "final_text": ""})
    assert (trial.outcome, trial.outcome_from, trial.final_text) == (outcome, "log", "")


def test_words_that_are_not_ours_are_absent(tmp_path: Path) -> None:
    trial = read(tmp_path, {"kind": "end", "termination": "exploded", "outcome": "great"})
    assert (trial.termination, trial.outcome, trial.outcome_from) == (None, "undetermined", None)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"kind": "step", "step": -1, "role": "user"}, "step"),
        ({"kind": "step", "step": 2**63, "role": "user"}, "step"),
        ({"kind": "step", "step": 0, "role": "user", "colour": "red"}, "colour"),
        ({"kind": "novelty"}, "none of ours"),
        ([1], "none of ours"),
        ({"kind": "step", "step": 0, "role": "user", "text": "x", "at": "2026-04-12T09:31:07"}, "offset"),
    ],
)
def test_a_line_that_cannot_be_used_is_said_with_its_number(tmp_path: Path, line: Any, says: str) -> None:
    trial = read(tmp_path, {"kind": "step", "step": 0, "role": "user", "text": "before"}, line)
    assert any("line 3" in sentence and says in sentence for sentence in trial.missing)
    assert trial.steps[0].text == "before"


def test_a_line_that_is_too_long_is_said_with_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LINE_LIMIT_BYTES", 2_000)
    step = {"kind": "step", "step": 1, "role": "assistant", "text": "x" * 3_000}
    assert f"line 2 is left out: {reading.TOO_LONG}" in read(tmp_path, step).missing


def test_many_bad_lines_are_counted_not_listed(tmp_path: Path) -> None:
    trial = read(tmp_path, *[{"kind": "x"}] * 50)
    assert any(sentence.startswith("45 further") for sentence in trial.missing)
    assert len(trial.missing) < 10


def test_a_failed_side_call_is_no_step(tmp_path: Path) -> None:
    trial = read(
        tmp_path,
        {"kind": "model_call", "step": 0, "error": "refused"},
        {"kind": "step", "step": 0, "role": "user", "text": "task"},
        {"kind": "step", "step": 1, "role": "assistant", "text": "done"},
        {"kind": "end", "termination": "error"},
    )
    assert trial.failing_step == 1
    assert trial.steps[0].error == "refused"


def test_a_recorded_failed_step_wins(tmp_path: Path) -> None:
    assert read(tmp_path, {"kind": "failed_step", "step": 4}).failing_step == 4


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused) as caught:
        read(tmp_path, first={"kind": "trial", "schema": 2})
    assert caught.value.slug == "unknown-version"


@pytest.mark.parametrize("first", [{"kind": "trial"}, {"kind": "step", "schema": 1}, [1], 42])
def test_another_first_line_is_another_format(tmp_path: Path, first: Any) -> None:
    with pytest.raises(ImportRefused) as caught:
        read(tmp_path, first=first)
    assert caught.value.slug == "not-recognised"


def test_the_same_file_gives_the_same_event(tmp_path: Path) -> None:
    lines: Sequence[Any] = [{"kind": "step", "step": 0, "role": "user", "text": "x"}]
    first, second = read(tmp_path, *lines), read(tmp_path, *lines)
    assert first.event_id == second.event_id
    assert first.event_id != read(tmp_path).event_id


def test_a_reply_of_a_step_that_has_one_is_left_out_and_said(tmp_path: Path) -> None:
    reply = {"kind": "step", "step": 1, "role": "assistant", "text": "first"}
    failed = {"kind": "model_call", "step": 2, "error": "timeout"}
    trial = read(tmp_path, reply, {**reply, "text": "second"}, failed, {**reply, "step": 2}, {**reply, "step": 1})
    assert [(line.step, line.text) for line in trial.replies] == [(1, "first"), (2, "first")]
    assert [each for each in trial.missing if "left out" in each] == [
        "line 3 is left out: the reply of step 1 comes after that of step 1",
        "line 6 is left out: the reply of step 1 comes after that of step 2",
    ]


def test_a_recorders_folder_is_one_trial_whatever_its_agent_wrote_into_it(tmp_path: Path) -> None:
    lines = [{"kind": "trial", "schema": 1, "task_id": "t"}, {"kind": "end", "termination": "error"}]
    text = "".join(json.dumps(each) + "\n" for each in lines)
    for name in ("one", "two"):
        (tmp_path / name / "out").mkdir(parents=True)
        (tmp_path / name / "trial.jsonl").write_text(text)
        (tmp_path / name / "out" / "trial.jsonl").write_text(text)
    assert read_one(tmp_path / "one").task_id == "t"
    with collect(tmp_path) as found:
        assert [each.key for each in found.entries] == ["one", "two"]


def test_what_our_runner_adds_is_read_as_clues(tmp_path: Path) -> None:
    failed = {"type": "grade", "error": "E: gone", "fatal": False, "step_role": "grader"}
    trial = read(
        tmp_path,
        {"kind": "task_step", "id": "grade", "type": "grade", "step_role": "grader", "status": "started"},
        {"kind": "failed_step", "step_id": "grade", "cause": "transient", **failed},
        {"kind": "failed_step", "step_id": "again", "cause": "unknown", **failed},
        {"kind": "verification", "name": "tests", "passed": True, "step_id": "grade"},
        {"kind": "verification", "name": "lint", "passed": False, "step_id": "grade"},
        {"kind": "cleanup", "what": "server", "status": "done"},
        {"kind": "cleanup", "what": "work tree", "status": "failed", "error": "OSError: busy"},
        {"kind": "patch_capture", "status": "captured"},
        {"kind": "end", "termination": "limit", "outcome": "undetermined", "limit": "max_steps"},
    )
    assert trial.labels == (
        "failed-step:grade:grader:transient",
        "failed-step:again:grader",
        "verification:tests:passed",
        "verification:lint:failed",
        "cleanup-failed:work tree",
        "limit:max_steps",
    )
    assert trial.missing == ()


def test_a_patch_that_was_not_captured_and_a_repaired_file_are_said(tmp_path: Path) -> None:
    trial = read(
        tmp_path,
        {"kind": "patch_capture", "status": "failed", "reason": "the folder is gone.\nLook."},
        {"kind": "repaired", "dropped_bytes": 7},
        {"kind": "end", "termination": "error"},
    )
    assert trial.missing == (
        "the agent's patch was not captured: the folder is gone.",
        "half a line before line 3 was dropped, and the trial gone on with",
    )


def test_an_error_with_its_chain(tmp_path: Path) -> None:
    link = {"type": "openai.RateLimitError", "message": "m", "status_code": 429, "code": "insufficient_quota"}
    chain = [link | {"error_type": "t", "body": {"error": {}}, "request_id": "req_1"}]
    trial = read(tmp_path, {"kind": "error", "type": "RateLimitError", "message": "m", "chain": chain})
    assert trial.missing == ("no end line: the trial was cut off, and its outcome is not recorded",)
    assert trial.error is not None
    assert trial.error.chain[0].model_dump() == chain[0]
