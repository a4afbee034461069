"""The error boundary: whatever happens to an agent, its record is whole, its work looked for, and all is put away.

Knows the order: the error, the patch, the clean-up, the prediction, the end. Knows no steps of a task.
"""

import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from pytest_regcase.capture.patch import PatchNotCaptured
from pytest_regcase.capture.predictions import PREDICTIONS_FILE, prediction_of, write_prediction
from pytest_regcase.capture.raised import failure_text
from pytest_regcase.capture.recorder import Recorder
from pytest_regcase.capture.trial_config import TrialConfig, check_task_id, trial_config
from pytest_regcase.capture.trial_file import TrialFile
from pytest_regcase.capture.trial_record import TrialRecord, read_record
from pytest_regcase.errors import UsageRefused, WriteError
from pytest_regcase.records.words import Outcome, Termination


def record_trial(
    folder: Path | str,
    *,
    task_id: str,
    config: TrialConfig | Mapping[str, Any] | None = None,
    reopen: bool = False,
    predictions: Path | None = None,
) -> "RecordedTrial":
    """Return a context manager that records one trial in `folder` and gives a `Recorder`.

    An exception that leaves the block becomes the trial's `error` and goes no further: look at ``trial.error``, or
    at `read_record`. `KeyboardInterrupt`, `SystemExit`, cancellation and the like are recorded and raised again.
    With `work_dir` in the config its patch is captured: handed in where the block ended well, partial where it did
    not. Then the clean-up is run, each step of it recorded, and a prediction written to `predictions`, by default
    ``predictions.jsonl`` in `folder`. `reopen` goes on with a trial whose process was killed.

    Raises:
        UsageRefused: before anything is written: the task id or the config cannot be taken; the folder holds a
            trial, or, with `reopen`, none that can be gone on with.
        WriteError: the folder cannot be written. Where the disk fills up in the block: what was recorded before
            stays, the clean-up is run, and there is no end line.
    """
    # The agent may change the working folder; the trial stays where it is.
    place = Path(folder).absolute()
    return RecordedTrial(
        place,
        check_task_id(task_id),
        trial_config(config),
        reopen=reopen,
        predictions=predictions.absolute() if predictions is not None else place / PREDICTIONS_FILE,
    )


class RecordedTrial:
    """One trial between its first line and its end. Made by `record_trial`."""

    def __init__(
        self,
        folder: Path,
        task_id: str,
        config: TrialConfig,
        *,
        reopen: bool,
        predictions: Path,
    ) -> None:
        self._folder = folder
        self._task_id = task_id
        self._config = config
        self._reopen = reopen
        self._predictions = predictions
        self._file: TrialFile | None = None
        self._trial: Recorder | None = None

    def __enter__(self) -> Recorder:
        earlier = self._earlier() if self._reopen else None
        file = TrialFile.create(self._folder) if earlier is None else TrialFile.reopen(self._folder)
        trial = Recorder(file, self._folder, self._task_id, self._config)
        try:
            if earlier is None:
                trial.begin(_identity(self._task_id, self._config))
            else:
                trial.go_on_after(earlier)
            trial.out_dir.mkdir(exist_ok=True)
            trial.watch_work_tree(self._config.work_dir, self._config.base_commit)
        except BaseException as error:
            file.close()
            if isinstance(error, OSError):
                raise WriteError(
                    f"Couldn't make {trial.out_dir}: {error.strerror}.\nCheck the folder and the disk."
                ) from error
            raise
        self._file, self._trial = file, trial
        return trial

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        assert self._trial is not None
        assert self._file is not None
        trial = self._trial
        later: BaseException | None = None
        stages: list[Callable[[], None]] = [lambda: _capture(trial), lambda: _clean_up(trial), self._finish]
        if error is not None and error is not self._file.failure:
            trial.is_unfinished = trial.is_unfinished or trial.error is None or not isinstance(error, Exception)
            stages.insert(0, lambda: trial.record_error(error))
        try:
            for stage in stages:
                try:
                    stage()
                except BaseException as raised:  # the stages behind it must happen all the same
                    later = _worse(later, raised)
        finally:
            self._file.close()
        return self._settle(error, later)

    def _settle(self, error: BaseException | None, later: BaseException | None) -> bool:
        """Say whether the block's exception goes no further, or raise what must reach the caller instead."""
        assert self._file is not None
        failure = self._file.failure
        if error is not None and not isinstance(error, Exception):
            if failure is not None:
                error.add_note(failure.text)
            return False
        if later is not None and not isinstance(later, Exception):
            raise later
        if failure is not None:
            if failure is error:
                return False
            raise failure
        if later is not None:
            raise later
        return True

    def _finish(self) -> None:
        """Write the prediction, then the end: a trial that has ended has its prediction."""
        assert self._trial is not None
        trial = self._trial
        record = read_record(self._folder)
        termination = _termination(trial)
        record = record.model_copy(update={"termination": termination})
        if self._file is not None and self._file.failure is None:
            write_prediction(self._predictions, prediction_of(record))
        trial.end(termination, _outcome(record))

    def _earlier(self) -> TrialRecord:
        earlier = read_record(self._folder)
        why_not = None
        if earlier.task_id != self._task_id:
            why_not = f"it is of task {earlier.task_id!r}, not {self._task_id!r}"
        elif earlier.ended:
            why_not = "it has ended"
        if why_not is not None:
            raise UsageRefused(
                f"Couldn't go on with the trial in {self._folder}: {why_not}.\nGive a folder of its own.",
                slug="trial-exists",
            )
        return earlier


def _identity(task_id: str, config: TrialConfig) -> dict[str, object]:
    return {
        "harness": config.harness or f"pytest-regcase {version('pytest-regcase')}",
        "run_id": config.run_id,
        "task_id": task_id,
        "attempt": config.attempt,
        "event_id": uuid.uuid4().hex,
        "revision": config.revision,
        "model": config.model,
        "started_at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "task_text": config.task_text,
        "labels": list(config.labels),
        "conditions": {
            **config.conditions,
            **({"base_commit": config.base_commit} if config.base_commit is not None else {}),
        }
        or None,
    }


def _termination(trial: Recorder) -> Termination:
    if trial.termination is not None:
        return trial.termination
    return "limit" if trial.limit_met is not None else "finished"


def _outcome(record: TrialRecord) -> Outcome:
    """Return passed where every check passed, failed where one did not; undetermined where a grader failed."""
    if not record.scored:
        return "undetermined"
    return "passed" if all(each.passed for each in record.verifications) else "failed"


def _capture(trial: Recorder) -> None:
    """Try for the patch where nobody has yet."""
    if not trial.has_work_tree():
        return
    try:
        trial.capture_patch()
    except PatchNotCaptured as error:
        # Recorded as a status of its own; it is the trial's error only where nothing went wrong before.
        trial.record_error(error, "harness")
    except BaseException as error:
        if not isinstance(error, Exception):  # nobody knows what the work is, so it is not handed in
            trial.is_unfinished = True
            trial.record_error(error)
        raise


def _clean_up(trial: Recorder) -> None:
    """Put everything away, the last thing first; none is left out because another failed.

    Raises:
        BaseException: an interruption that came meanwhile, after all was put away.
        WriteError: a report could not be written, after all was put away.
    """
    later: BaseException | None = None
    while trial.cleanups:
        what, action = trial.cleanups.pop()
        status: Literal["done", "failed", "kept"] = "done"
        words: str | None = None
        try:
            if action() == "kept":
                status = "kept"
        except BaseException as error:
            if not isinstance(error, Exception):
                later = _worse(later, error)
            status, words = "failed", failure_text(error)
        try:
            trial.cleanup_is(what, status, words)
        except BaseException as error:
            later = _worse(later, error)
    if later is not None:
        raise later


def _worse(first: BaseException | None, second: BaseException) -> BaseException:
    """Return which of two the caller must see: an interruption before anything else, else the first."""
    if first is None or (isinstance(first, Exception) and not isinstance(second, Exception)):
        return second
    return first
