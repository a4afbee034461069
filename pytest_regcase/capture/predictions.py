"""`predictions.jsonl`: what each task's agent handed in, in the shape that SWE-bench's scorer reads.

A trial in which the agent failed has no patch here, whatever lay in its work tree: that is for diagnosis and stays
in the trial. Knows the file and the rule; reads no work tree.
"""

import fcntl
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from pytest_regcase.capture.trial_file import sync_folder
from pytest_regcase.capture.trial_record import TrialRecord
from pytest_regcase.errors import WriteError
from pytest_regcase.records.base import Record

PREDICTIONS_FILE: Final = "predictions.jsonl"
NO_MODEL: Final = "unnamed"
"""SWE-bench's scorer wants a name; a trial whose model is not said has none."""


class Prediction(Record):
    """One line of ``predictions.jsonl``."""

    instance_id: str
    model_name_or_path: str
    model_patch: str | None
    status: Literal["submitted", "agent_error", "patch_capture_failed"]


def prediction_of(record: TrialRecord) -> Prediction:
    """Return what `record` counts as: a submitted patch, or none and why."""
    model = record.identity.get("model")
    patch = record.submission.patch if record.submission is not None else None
    status: Literal["submitted", "agent_error", "patch_capture_failed"] = "submitted"
    if record.agent_failed:
        patch, status = None, "agent_error"
    elif patch is None and record.patch_capture_failed:
        status = "patch_capture_failed"
    return Prediction(
        instance_id=record.task_id,
        model_name_or_path=model if isinstance(model, str) and model else NO_MODEL,
        model_patch=patch,
        status=status,
    )


def write_prediction(path: Path, prediction: Prediction) -> None:
    """Put one line into `path`, in the place of an older one of the same instance.

    Readers see the old file or the new one; writers in other threads and processes wait for their turn.

    Raises:
        WriteError: the file system refuses; the file is as it was.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The lock is a file of its own: the other one is replaced while it is held.
        with path.with_name(f".{path.name}.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _replace(path, _with(path, prediction))
    except OSError as error:
        raise WriteError(
            f"Couldn't write the prediction of {prediction.instance_id} to {path}:"
            f" {(error.strerror or str(error)).lower()}.\n"
            "The lines that it holds are as they were. Make room, then run the task again."
        ) from error


def _with(path: Path, prediction: Prediction) -> bytes:
    new = json.dumps(prediction.to_plain(), ensure_ascii=False).encode("utf-8") + b"\n"
    try:
        old = path.read_bytes()
    except FileNotFoundError:
        return new
    named = json.dumps(prediction.instance_id, ensure_ascii=False).encode("utf-8")
    lines = [line + b"\n" for line in old.split(b"\n") if line]
    # Only a line that has the name in it is parsed: patches are long, and each trial of a run comes here.
    kept = [each for each in lines if named not in each or _instance(each) != prediction.instance_id]
    return b"".join([*kept, new])


def _instance(line: bytes) -> str | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found.get("instance_id") if isinstance(found, dict) else None


def _replace(path: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    sync_folder(path.parent)
