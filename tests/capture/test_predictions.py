"""One line a task, whole at any moment; unfinished work never stands in one."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.capture import (
    FailedStep,
    PatchCapture,
    Prediction,
    TrialRecord,
    prediction_of,
    write_prediction,
)
from pytest_regcase.errors import WriteError
from pytest_regcase.records.trial import Submission, TrialError
from tests.capture.conftest import predictions_of

PATCH = "diff --git a/a b/a\n"


def record(**fields: Any) -> TrialRecord:
    known = {"folder": Path(), "task_id": "t", "identity": {}, "ended": True, "termination": "finished"}
    return TrialRecord.model_validate({**known, **fields})


def failed(step_type: str, role: str, *, fatal: bool = True) -> FailedStep:
    return FailedStep.model_validate(
        {"step_id": "s", "type": step_type, "error": "e", "fatal": fatal, "step_role": role, "cause": "unknown"}
    )


SUBMITTED = Submission(patch=PATCH, by="harness")
CODE = failed("run_code", "other", fatal=False)
SNAPSHOT = failed("snapshot_environment", "evidence")
ERROR = TrialError(type="E")
OURS = TrialError(type="PatchNotCaptured", raised_by="harness")
NONE = PatchCapture(status="failed")


@pytest.mark.parametrize(
    ("fields", "patch", "status"),
    [
        ({"submission": SUBMITTED}, PATCH, "submitted"),
        ({"submission": Submission(patch="")}, "", "submitted"),
        ({"submission": Submission(text="42")}, None, "submitted"),
        ({"termination": "limit", "submission": SUBMITTED}, PATCH, "submitted"),
        ({"termination": "cut-off", "submission": SUBMITTED}, None, "agent_error"),
        ({"termination": "cancelled", "submission": SUBMITTED}, None, "agent_error"),
        ({"termination": "error", "error": ERROR, "submission": SUBMITTED}, None, "agent_error"),
        ({"failed_steps": (failed("prompt_agent", "agent"),), "submission": SUBMITTED}, None, "agent_error"),
        ({"failed_steps": (failed("prompt_agent", "agent", fatal=False),)}, None, "agent_error"),
        ({"failed_steps": (failed("prompt_agent", "evidence", fatal=False),)}, None, "agent_error"),
        ({"failed_steps": (failed("start_environment", "other"),)}, None, "agent_error"),
        (
            {"failed_steps": (CODE,), "submission": SUBMITTED},
            PATCH,
            "submitted",
        ),
        (
            {"failed_steps": (failed("grade", "grader"),), "error": ERROR, "submission": SUBMITTED},
            PATCH,
            "submitted",
        ),
        (
            {"failed_steps": (SNAPSHOT,), "submission": SUBMITTED},
            PATCH,
            "submitted",
        ),
        ({"patch_capture": NONE, "error": OURS}, None, "patch_capture_failed"),
        ({"patch_capture": NONE, "error": ERROR}, None, "agent_error"),
        ({"patch_capture": NONE, "submission": SUBMITTED}, PATCH, "submitted"),
    ],
)
def test_what_a_trial_counts_as(fields: dict[str, Any], patch: str | None, status: str) -> None:
    found = prediction_of(record(**fields))
    assert (found.model_patch, found.status) == (patch, status)


def test_the_shape_that_a_scorer_reads(tmp_path: Path) -> None:
    write_prediction(
        tmp_path / "predictions.jsonl", prediction_of(record(identity={"model": "m"}, submission=SUBMITTED))
    )
    assert predictions_of(tmp_path) == [
        {"instance_id": "t", "model_name_or_path": "m", "model_patch": PATCH, "status": "submitted"}
    ]


def line(instance: str, patch: str | None = None) -> Prediction:
    return Prediction(instance_id=instance, model_name_or_path="m", model_patch=patch, status="submitted")


def test_a_rerun_takes_the_place_of_its_line_and_of_no_other(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    path.write_text('{"instance_id": "mine", "model_patch": "by hand"}\nnot json')
    for each in (line("a", "1"), line("b", "2"), line("a", "3")):
        write_prediction(path, each)
    first, broken, *rest = path.read_text().splitlines()
    assert json.loads(first)["instance_id"] == "mine"
    assert broken == "not json"
    assert [(each["instance_id"], each["model_patch"]) for each in map(json.loads, rest)] == [
        ("b", "2"),
        ("a", "3"),
    ]


def test_many_writers_lose_no_line(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    threads = [threading.Thread(target=write_prediction, args=(path, line(str(each)))) for each in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert {each["instance_id"] for each in predictions_of(tmp_path)} == {str(each) for each in range(12)}
    assert {each.name for each in tmp_path.iterdir()} == {"predictions.jsonl", ".predictions.jsonl.lock"}


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    path.mkdir()
    with pytest.raises(WriteError, match="Couldn't write the prediction of t to") as caught:
        write_prediction(path, line("t"))
    assert caught.value.exit_code == 4
    assert {each.name for each in tmp_path.iterdir()} == {"predictions.jsonl", ".predictions.jsonl.lock"}
