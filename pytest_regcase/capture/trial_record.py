"""One recorded trial as its runner sees it: what was handed in, which steps failed, what was cleaned up.

Read from the lines of `trial.jsonl` alone, so that the process that ran the trial and one that comes later see the
same. `importers.trial_jsonl` reads the same lines as a `Trial`; neither knows the other.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import Field, ValidationError

from pytest_regcase.capture.plain_data import as_text
from pytest_regcase.capture.raised import failure_text
from pytest_regcase.capture.trial_file import TRIAL_FILE, records_in
from pytest_regcase.causes import classify_failure
from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.trial import Submission, TrialError
from pytest_regcase.records.words import FailureCauseWord, Outcome, StepRole, Termination


class FailedStep(Record):
    """A step of a task that failed: what was lost, and what its own words say about why."""

    step_id: str
    type: str
    error: str
    """The exception's name and message."""
    fatal: bool
    """Whether it failed the trial; False where the task says ``fail_task_on_error = false``."""
    step_role: StepRole
    cause: FailureCauseWord = "unknown"
    """A diagnostic label; it never touches a case's cause status."""

    @classmethod
    def from_exception(
        cls, error: BaseException, *, step_id: str, step_type: str, step_role: StepRole, fatal: bool = True
    ) -> Self:
        """Return the record of a step that raised `error`, with the cause of its whole chain."""
        return cls(
            step_id=step_id,
            type=step_type,
            error=failure_text(error),
            fatal=fatal,
            step_role=step_role,
            cause=classify_failure(error).cause,
        )

    @property
    def leaves_work_unfinished(self) -> bool:
        """Whether the agent, or what it needs, failed here: then nothing of the trial is a submitted solution.

        A failed `prompt_agent` is the agent's failure, tolerated or not, whatever role it was given.
        """
        return (
            self.type == "prompt_agent"
            or self.step_role == "agent"
            or (self.fatal and self.step_role not in ("grader", "evidence"))
        )


class CleanupStep(Record):
    """One thing that was put away after a trial."""

    what: str
    status: Literal["done", "failed", "kept"]
    """Kept: left in place on purpose, since it holds work that is nowhere else."""
    error: str | None = None


class Verification(Record):
    """What a grader says about the agent's work."""

    name: str
    passed: bool
    step_id: str
    details: dict[str, Any] = Field(default_factory=dict)


class PatchCapture(Record):
    """Whether the agent's work could be read from its work tree, against the task's base commit."""

    status: Literal["captured", "failed"]
    reason: str | None = None
    base_commit: str | None = None
    start_commit: str | None = None
    """Where the work tree stood when the environment had started."""


class TrialRecord(Record):
    """A recorded trial. Without an end line its process was killed, and `termination` is ``cut-off``."""

    folder: Path
    task_id: str
    identity: dict[str, Any]
    """The first line: run_id, attempt, model, started_at, conditions, ..."""
    ended: bool = False
    termination: Termination = "cut-off"
    outcome: Outcome = "undetermined"
    error: TrialError | None = None
    failed_steps: Many[FailedStep] = ()
    verifications: Many[Verification] = ()
    patch_capture: PatchCapture | None = None
    submission: Submission | None = None
    partial_patch: str | None = None
    cleanup: Many[CleanupStep] = ()
    task_steps: dict[str, str] = Field(default_factory=dict)
    """By id: started, done, failed or skipped."""
    graders: Many[str] = ()
    """Ids of the steps that were to grade."""
    replies: int = 0
    model_requests: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def agent_failed(self) -> bool:
        """Whether nothing of this trial is a submitted solution: the agent failed, was interrupted or killed."""
        by_step = any(each.leaves_work_unfinished for each in self.failed_steps)
        # In a loop of one's own there are no steps: what was raised there is the agent's, or ours.
        raised = self.error is not None or self.termination == "error"
        ours = self.error is not None and self.error.raised_by == "harness"
        in_its_loop = raised and not self.failed_steps and not ours
        return by_step or in_its_loop or self.termination in ("cancelled", "cut-off")

    @property
    def patch_capture_failed(self) -> bool:
        """Whether the agent's work could not be read."""
        return self.patch_capture is not None and self.patch_capture.status == "failed"

    @property
    def scored(self) -> bool:
        """Whether every step that was to grade did, and said something."""
        return bool(self.verifications) and all(self.task_steps.get(each) == "done" for each in self.graders)


def read_record(folder: Path) -> TrialRecord:
    """Return what is recorded in `folder`. A line that cannot be used is left out.

    Raises:
        UsageRefused: there is no record of a trial, or none that can be read (slug ``no-trial``).
    """
    path = folder / TRIAL_FILE
    try:
        return _read(folder, path)
    except OSError as error:
        raise _refused(path, (error.strerror or str(error)).lower()) from error


def _read(folder: Path, path: Path) -> TrialRecord:
    fields: dict[str, Any] = {"folder": folder}
    many: dict[str, list[Any]] = {"failed_steps": [], "verifications": [], "cleanup": [], "graders": []}
    steps: dict[str, str] = {}
    replies = requests = 0
    for record in records_in(path):
        kind = record.pop("kind", None)
        if "identity" not in fields:
            if kind != "trial" or not isinstance(record.get("task_id"), str):
                raise _refused(path, "its first line is none of ours")
            fields.update(identity=record, task_id=record["task_id"], started_at=_moment(record.get("started_at")))
        elif kind == "step":
            replies += record.get("role") == "assistant" and record.get("error") is None
        elif kind == "model_call":
            requests += 1
        elif kind == "task_step":
            steps[as_text(record.get("id"))] = as_text(record.get("status"))
            if record.get("step_role") == "grader" and record.get("id") not in many["graders"]:
                many["graders"].append(as_text(record.get("id")))
        elif kind == "partial_patch":
            patch = record.get("patch")
            fields["partial_patch"] = patch if isinstance(patch, str) else None
        elif kind == "end":
            fields.update(_end(record))
        elif kind in _ONE:
            _take(record, _ONE[kind], lambda found, key=kind: fields.update({key: found}))
        elif kind in _MANY:
            key, model = _MANY[kind]
            _take(record, model, many[key].append)
    if "identity" not in fields:
        raise _refused(path, "its first line is cut off")
    return TrialRecord.model_validate(
        {**fields, **many, "task_steps": steps, "replies": replies, "model_requests": requests}
    )


_ONE: Mapping[str, type[Record]] = {"error": TrialError, "submission": Submission, "patch_capture": PatchCapture}
_MANY: Mapping[str, tuple[str, type[Record]]] = {
    "failed_step": ("failed_steps", FailedStep),
    "verification": ("verifications", Verification),
    "cleanup": ("cleanup", CleanupStep),
}


def _take(record: Mapping[str, Any], model: type[Record], keep: Any) -> None:
    try:
        keep(model.model_validate_json(json.dumps(record)))
    except ValidationError:
        return  # written by hand, or by a later version


def _end(record: Mapping[str, Any]) -> dict[str, Any]:
    termination, outcome = record.get("termination"), record.get("outcome")
    return {
        "ended": True,
        "termination": termination if termination in get_args(Termination) else "cut-off",
        "outcome": outcome if outcome in get_args(Outcome) else "undetermined",
        "ended_at": _moment(record.get("at")),
    }


def _moment(value: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _refused(path: Path, why: str) -> UsageRefused:
    return UsageRefused(f"Couldn't read the trial {path}: {why}.\nCheck the folder.", slug="no-trial")
