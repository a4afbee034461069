"""One trial from its environment to its end: the steps of a task, in order, inside the error boundary.

Knows what a step's failure means for the others. What the steps do is in `built_in_steps`, what happens to an
exception in `boundary`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any, Final

from pytest_regcase.capture import built_in_steps as built_in_steps  # fills the table of types
from pytest_regcase.capture.boundary import record_trial
from pytest_regcase.capture.environments import EmptyWorkTree, Environment, GitWorkTree, commit_named
from pytest_regcase.capture.patch import PatchNotCaptured
from pytest_regcase.capture.recorder import Recorder
from pytest_regcase.capture.step_types import StepContext
from pytest_regcase.capture.task_steps import PlannedStep, plan_steps
from pytest_regcase.capture.tasks import Task
from pytest_regcase.capture.trial_config import TrialConfig, trial_config
from pytest_regcase.capture.trial_record import FailedStep, TrialRecord, read_record
from pytest_regcase.errors import MachineryError, UsageRefused, WriteError
from pytest_regcase.records.words import RaisedBy, StepRole

_RAISED_BY: Final[Mapping[StepRole, RaisedBy]] = {"agent": "agent", "grader": "grader", "evidence": "harness"}


def run_trial(
    folder: Path | str,
    *,
    task: Task,
    agent: Callable[[Recorder], object],
    environment: Environment | None = None,
    grade: Callable[[Recorder], object] | None = None,
    config: TrialConfig | Mapping[str, Any] | None = None,
    predictions: Path | None = None,
    stop: Event | None = None,
) -> TrialRecord:
    """Run one task and record it in `folder`; return what is recorded.

    The steps of the task are run one after the other, by default `start_environment`, `prompt_agent` (calls
    `agent`) and `capture_patch`. A step that fails ends the trial; steps of role evidence are run even then, where
    the environment had started, so that the partial patch is kept. One with ``fail_task_on_error = false`` ends
    nothing.
    `environment` is by default a work tree of the task's `repo`, or an empty one. `grade` is what a `grade` step
    without a command calls. Texts and base commit are the task's; the rest of `config`, and what happens to
    exceptions, `predictions` and a full disk, is as in `record_trial`. Where another thread sets `stop`, no
    step is started any more, a command is ended, and `KeyboardInterrupt` is raised as it is for Ctrl-C.

    Raises:
        UsageRefused: before anything is written: `folder` holds a trial; the config, the steps or their needs
            cannot be taken.
        FileError: before anything is written: the task's text cannot be read.
        WriteError: the disk is full; what was recorded before stays, and all is put away.
    """
    planned = plan_steps(task.steps, has_grade=grade is not None)
    settings = trial_config(config)
    if settings.work_dir is not None:
        raise UsageRefused(
            "Couldn't run the trial: its config names a work_dir, and the environment makes one.\n"
            "Leave it out, or give an environment whose `start` returns it.",
            slug="invalid-config",
        )
    text = task.read_text()
    settings = settings.model_copy(
        update={
            "task_text": text if text is not None else settings.task_text,
            "base_commit": _base_commit(task) or settings.base_commit,
        }
    )
    place = environment if environment is not None else _environment(task)
    folder = Path(folder).absolute()
    with record_trial(folder, task_id=task.id, config=settings, predictions=predictions) as trial:
        _run_steps(trial, planned, agent, place, grade, stop)
    return read_record(folder)


def _environment(task: Task) -> Environment:
    return EmptyWorkTree() if task.repository is None else GitWorkTree(task.repository, task.base_commit)


def _base_commit(task: Task) -> str | None:
    """Return the task's base commit in full: the work tree has none of the repository's branches and tags."""
    if task.base_commit is None or task.repository is None:
        return task.base_commit
    try:
        return commit_named(task.repository, task.base_commit) or task.base_commit
    except MachineryError:  # no git: that is the environment's failure, and belongs into the record
        return task.base_commit


def _run_steps(
    trial: Recorder,
    planned: Sequence[PlannedStep],
    agent: Callable[[Recorder], object],
    environment: Environment,
    grade: Callable[[Recorder], object] | None,
    stop: Event | None,
) -> None:
    ended_by: Exception | None = None
    for each in planned:
        step, name, role = each.step, each.type.name, each.role
        if ended_by is not None and not (role == "evidence" and trial.work_dir is not None):
            trial.task_step_is(step.id, name, role, "skipped")
            continue
        context = StepContext(trial, step, role, agent, environment, grade, stop)
        try:
            with trial.task_step(step.id, name, role):
                if stop is not None and stop.is_set():
                    raise KeyboardInterrupt
                each.type.run(context)
        except WriteError:
            raise  # nothing more can be recorded
        except BaseException as error:
            fatal = ended_by is None and (step.fail_task_on_error or not isinstance(error, Exception))
            trial.failed_step(
                FailedStep.from_exception(error, step_id=step.id, step_type=name, step_role=role, fatal=fatal)
            )
            if not isinstance(error, Exception):
                trial.record_error(error, _RAISED_BY.get(role, "unknown"))
                raise
            if fatal:
                ended_by = error
                # At once: looking for evidence may take long, and may be killed.
                trial.record_error(
                    error, "environment" if name == "start_environment" else _raised_by(role, error)
                )
    if ended_by is not None:
        raise ended_by


def _raised_by(role: StepRole, error: Exception) -> RaisedBy:
    return "harness" if isinstance(error, PatchNotCaptured) else _RAISED_BY.get(role, "unknown")
