"""SWE-bench predictions: what was handed in, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.reading import HEAD_BYTES
from pytest_regcase.importers.source import find_trials, read_one
from pytest_regcase.importers.swe_bench_predictions import SweBenchPredictions
from pytest_regcase.records.trial import Submission, Trial

GOLD = Path(__file__).parent.parent / "gold" / "swe-bench-predictions"
FILES = [GOLD / "predictions.jsonl", GOLD / "preds.json"]


def read(path: Path, key: str) -> Trial:
    (ref,) = [each for each in SweBenchPredictions().list_trials(path) if each.key == key]
    return SweBenchPredictions().read(path, ref)


@pytest.mark.parametrize("path", FILES, ids=lambda each: each.name)
def test_each_instance_is_an_undetermined_trial(path: Path) -> None:
    found = find_trials(path)
    assert found.importer == "swe-bench-predictions"
    assert [(ref.key, ref.task_id, ref.joins_by, ref.failed, ref.outcome) for ref in found.refs] == [
        (name, name, name, name == "calc__calc-9", "undetermined")
        for name in (f"calc__calc-{number}" for number in range(1, 10))
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda each: each.name)
def test_a_patch_nothing_null_a_text_and_our_mark_are_five_facts(path: Path) -> None:
    def submitted(number: int) -> Submission | None:
        return read(path, f"calc__calc-{number}").submission

    patch = submitted(1)
    assert patch is not None
    assert patch.patch is not None
    assert patch.patch.startswith("diff --git a/calc.py")
    assert submitted(6) == Submission(patch="")
    assert submitted(7) == Submission(text="Request timed out. (server 2)")
    assert submitted(8) is None
    assert submitted(9) == Submission(mark="agent_error")
    assert "the patch: it is null, so none was handed in" in read(path, "calc__calc-8").missing


def test_only_what_our_recorder_marked_is_a_failed_trial() -> None:
    trial = read_one(FILES[0])
    assert (trial.task_id, trial.model, trial.termination, trial.error) == (
        "calc__calc-9",
        "small-agent",
        None,
        None,
    )
    with pytest.raises(ImportRefused, match="no pass or fail") as caught:
        read_one(FILES[0], key="calc__calc-7")
    assert caught.value.slug == "no-sign-of-failure"
    assert "a text that is no diff" in caught.value.text
    assert read_one(FILES[0], key="calc__calc-7", failed_only=False).outcome == "undetermined"


def test_a_second_prediction_of_an_instance_has_a_key_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "x"
    lines = FILES[0].read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1], lines[0].replace("a + b", "b + a"), "{cut"]))
    assert [ref.key for ref in find_trials(path).refs] == ["calc__calc-1", "calc__calc-2", "calc__calc-1#2"]
    first, second = read(path, "calc__calc-1"), read(path, "calc__calc-1#2")
    assert first.event_id != second.event_id
    assert (first.submission, second.submission) != (second.submission, first.submission)


@pytest.mark.parametrize("kind", [list, dict, None], ids=str)
def test_a_patch_longer_than_the_head_hides_nothing(tmp_path: Path, kind: Any) -> None:
    prediction = {
        "model_patch": "diff --git a b\n" + "+x\n" * HEAD_BYTES,
        "instance_id": "a",
        "status": "submitted",
    }
    shapes = {list: [prediction], dict: {"a": prediction}, None: prediction}
    path = tmp_path / "x"
    path.write_text(json.dumps(shapes[kind]) + "\n")
    assert [ref.key for ref in find_trials(path).refs] == ["a"]


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        {"instance_id": "a", "patch": "diff"},
        {"instance_id": "a", "model_patch": "", "messages": []},
        [{"instance_id": "a"}],
        {"a": {"instance_id": "a"}},
    ],
    ids=str,
)
def test_what_is_no_prediction_is_left_alone(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "x"
    path.write_text(json.dumps(value))
    with pytest.raises(ImportRefused) as caught:
        find_trials(path)
    assert caught.value.slug == "not-recognised"
