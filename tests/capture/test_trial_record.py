"""What a runner sees of a trial, from its lines alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.capture import FailedStep, TrialRecord, read_record
from pytest_regcase.errors import UsageRefused

FIRST = {"kind": "trial", "schema": 1, "task_id": "t", "run_id": "r"}


def record(folder: Path, *lines: Any, tail: str = "") -> TrialRecord:
    (folder / "trial.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines) + tail)
    return read_record(folder)


def test_a_failed_step_from_an_exception_reads_its_whole_chain() -> None:
    try:
        raise RuntimeError("gave up") from ConnectionResetError("reset by peer")
    except RuntimeError as error:
        failed = FailedStep.from_exception(
            error, step_id="grade", step_type="grade", step_role="grader", fatal=False
        )
    assert failed.to_plain() == {
        "step_id": "grade",
        "type": "grade",
        "error": "RuntimeError: gave up",
        "fatal": False,
        "step_role": "grader",
        "cause": "transient",
    }
    bare = FailedStep.from_exception(KeyError(), step_id="s", step_type="x", step_role="other")
    assert (bare.error, bare.cause, bare.fatal) == ("KeyError", "unknown", True)


def test_lines_that_cannot_be_used_hide_no_others(tmp_path: Path) -> None:
    found = record(
        tmp_path,
        FIRST,
        {"kind": "verification", "name": "no step"},
        {
            "kind": "failed_step",
            "step_id": "s",
            "type": "grade",
            "error": "e",
            "fatal": True,
            "step_role": "judge",
        },
        {"kind": "novelty"},
        ["a list"],
        {"kind": "cleanup", "what": "server", "status": "done"},
        {"kind": "partial_patch", "patch": 5},
        {"kind": "end", "termination": "exploded", "outcome": "great", "at": "yesterday"},
        tail='{"kind": "st',
    )
    assert (found.verifications, found.failed_steps, found.partial_patch) == ((), (), None)
    assert [each.what for each in found.cleanup] == ["server"]
    assert (found.ended, found.termination, found.outcome, found.ended_at) == (
        True,
        "cut-off",
        "undetermined",
        None,
    )
    assert found.identity == {"schema": 1, "task_id": "t", "run_id": "r"}


@pytest.mark.parametrize(
    ("statuses", "verified", "scored"),
    [
        ({"grade": "done"}, True, True),
        ({"grade": "failed"}, True, False),
        ({"grade": "skipped"}, False, False),
        ({"grade": "done"}, False, False),
        ({"grade": "done", "second": "failed"}, True, False),
    ],
)
def test_scored_is_what_every_grader_said_something_about(
    tmp_path: Path, statuses: dict[str, str], verified: bool, scored: bool
) -> None:
    lines: list[dict[str, Any]] = [
        {"kind": "task_step", "id": name, "type": "grade", "step_role": "grader", "status": status}
        for name, status in statuses.items()
    ]
    if verified:
        lines.append({"kind": "verification", "name": "n", "passed": True, "step_id": "grade"})
    found = record(tmp_path, FIRST, *lines)
    assert (found.scored, found.graders) == (scored, tuple(statuses))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no such file"),
        ("", "cut off"),
        ('{"kind": "tri', "cut off"),
        ('{"kind": "step"}\n', "none of ours"),
    ],
)
def test_what_is_no_record(tmp_path: Path, content: str | None, says: str) -> None:
    if content is not None:
        (tmp_path / "trial.jsonl").write_text(content)
    with pytest.raises(UsageRefused, match=says) as caught:
        read_record(tmp_path)
    assert caught.value.slug == "no-trial"


def test_an_error_that_cannot_be_read_is_one_all_the_same(tmp_path: Path) -> None:
    lines = [
        {"kind": "trial", "schema": 1, "task_id": "t"},
        {"kind": "error", "type": "SomeError", "raised_by": "somebody of a later version"},
        {"kind": "submission", "patch": "diff", "by": "agent"},
        {"kind": "end", "termination": "error", "outcome": "undetermined"},
    ]
    (tmp_path / "trial.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert read_record(tmp_path).agent_failed
