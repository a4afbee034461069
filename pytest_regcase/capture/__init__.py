"""Records trials of an agent of yours, so that no crash loses the record.

`record_trial` for a loop of your own, `run_trial` for a task with its environment and steps. Must not import an
importer: those read what is written here.
"""

from pytest_regcase.capture.boundary import RecordedTrial, record_trial
from pytest_regcase.capture.built_in_steps import StepFailed
from pytest_regcase.capture.environments import EmptyWorkTree, Environment, GitWorkTree
from pytest_regcase.capture.patch import PatchNotCaptured
from pytest_regcase.capture.predictions import PREDICTIONS_FILE, Prediction, prediction_of, write_prediction
from pytest_regcase.capture.recorder import Recorder, RoleRefused
from pytest_regcase.capture.run import run_trial
from pytest_regcase.capture.step_types import STEP_TYPES, StepContext, StepType, step_type
from pytest_regcase.capture.task_steps import TaskStep, plan_steps
from pytest_regcase.capture.tasks import Task, Tasks, load_tasks, serialise_task
from pytest_regcase.capture.trial_config import TrialConfig, check_task_id
from pytest_regcase.capture.trial_file import TRIAL_FILE
from pytest_regcase.capture.trial_record import (
    CleanupStep,
    FailedStep,
    PatchCapture,
    TrialRecord,
    Verification,
    read_record,
)

__all__ = [
    "PREDICTIONS_FILE",
    "STEP_TYPES",
    "TRIAL_FILE",
    "CleanupStep",
    "EmptyWorkTree",
    "Environment",
    "FailedStep",
    "GitWorkTree",
    "PatchCapture",
    "PatchNotCaptured",
    "Prediction",
    "RecordedTrial",
    "Recorder",
    "RoleRefused",
    "StepContext",
    "StepFailed",
    "StepType",
    "Task",
    "TaskStep",
    "Tasks",
    "TrialConfig",
    "TrialRecord",
    "Verification",
    "check_task_id",
    "load_tasks",
    "plan_steps",
    "prediction_of",
    "read_record",
    "record_trial",
    "run_trial",
    "serialise_task",
    "step_type",
    "write_prediction",
]
