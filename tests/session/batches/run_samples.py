"""Run folders made by hand: what a run leaves behind, without running anything."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_regcase.records.words import RunKind
from pytest_regcase.session.batches.run_folder import Manifest, RunFolder, TaskOfRun

PATCH = "diff --git a/x b/x\n"
WORKED = ({"kind": "submission", "patch": PATCH, "by": "harness"},)
NOTHING = ({"kind": "submission", "patch": "", "by": "harness"},)
CRASHED = (
    {
        "kind": "failed_step",
        "step_id": "prompt_agent",
        "type": "prompt_agent",
        "error": "openai.RateLimitError: slow down",
        "fatal": True,
        "step_role": "agent",
        "cause": "transient",
    },
    {"kind": "error", "type": "openai.RateLimitError", "message": "slow down", "raised_by": "supplier"},
)
NO_PATCH = (
    {
        "kind": "failed_step",
        "step_id": "capture_patch",
        "type": "capture_patch",
        "error": "gone",
        "fatal": True,
        "step_role": "evidence",
        "cause": "unknown",
    },
    {"kind": "error", "type": "PatchNotCaptured", "message": "gone", "raised_by": "harness"},
    {"kind": "patch_capture", "status": "failed", "reason": "gone"},
)
LOST_SNAPSHOT = (
    *WORKED,
    {
        "kind": "failed_step",
        "step_id": "snapshot",
        "type": "snapshot_environment",
        "error": "disk",
        "fatal": False,
        "step_role": "evidence",
        "cause": "unknown",
    },
)
FAILED_GRADER = (
    *WORKED,
    {"kind": "task_step", "id": "grade", "type": "grade", "step_role": "grader", "status": "failed"},
    {
        "kind": "failed_step",
        "step_id": "grade",
        "type": "grade",
        "error": "openai.APITimeoutError: Request timed out.",
        "fatal": False,
        "step_role": "grader",
        "cause": "transient",
    },
)


def graded(*, passed: bool) -> tuple[dict[str, Any], ...]:
    """Return the lines of a trial that our own grader scored."""
    return (
        *WORKED,
        {"kind": "task_step", "id": "grade", "type": "grade", "step_role": "grader", "status": "done"},
        {"kind": "verification", "name": "grade", "passed": passed, "step_id": "grade"},
    )


def make_run(
    folder: Path, trials: Mapping[str, tuple[dict[str, Any], ...] | None], kind: RunKind = "real"
) -> Path:
    """Make a run's folder with these trials; None: requested and never reached."""
    place = RunFolder(folder)
    place.make()
    place.write(
        Manifest(
            kind=kind,
            requested=tuple(trials),
            started_at=datetime(2026, 1, 1, tzinfo=UTC),
            tasks_file="tasks.toml",
            tasks={name: TaskOfRun(agent="default") for name in trials},
        )
    )
    for name, lines in trials.items():
        if lines is not None:
            write_trial(place.trial(name), name, lines)
    return folder


def write_trial(folder: Path, task_id: str, lines: tuple[dict[str, Any], ...], *, ended: bool = True) -> None:
    """Write one trial; its end follows from its lines."""
    termination = "error" if any(each["kind"] == "error" for each in lines) else "finished"
    scores = [each["passed"] for each in lines if each["kind"] == "verification"]
    outcome = ("passed" if all(scores) else "failed") if scores else "undetermined"
    end = {"kind": "end", "termination": termination, "outcome": outcome}
    whole = [{"kind": "trial", "schema": 1, "task_id": task_id}, *lines, *([end] if ended else [])]
    folder.mkdir()
    (folder / "trial.jsonl").write_text("".join(json.dumps(each) + "\n" for each in whole))
