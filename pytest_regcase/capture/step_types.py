"""Types of steps, each with its role, and the table of those there are.

A new type is a function under `@step_type("name", role="...")`. Knows roles and names; what the types do that we
bring is in `built_in_steps`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, get_args

from pytest_regcase.errors import ExtensionError
from pytest_regcase.records.words import StepRole

if TYPE_CHECKING:
    from pytest_regcase.capture.environments import Environment
    from pytest_regcase.capture.recorder import Recorder
    from pytest_regcase.capture.task_steps import TaskStep


@dataclass(frozen=True)
class StepContext:
    """What a step is run with."""

    trial: "Recorder"
    step: "TaskStep"
    role: StepRole
    """Its type's, or the one that the task gives it."""
    agent: "Callable[[Recorder], object]"
    environment: "Environment"
    grade: "Callable[[Recorder], object] | None" = None
    stop: Event | None = None
    """Set: whoever runs the trial wants it ended; a step that takes long looks at it."""


StepAction = Callable[[StepContext], None]


@dataclass(frozen=True)
class StepType:
    """One type of step. `role` decides what its failure means, and whether it may score the agent's work."""

    name: str
    role: StepRole
    run: StepAction


STEP_TYPES: dict[str, StepType] = {}
"""By name; filled by `step_type`."""


def step_type(name: str, *, role: StepRole) -> Callable[[StepAction], StepAction]:
    """Return a decorator that makes a function a type of step.

    The function gets a `StepContext`; whatever it raises is the step's failure.

    Raises:
        ExtensionError: there is a type of this name, or no such role.
    """
    if role not in get_args(StepRole):
        raise ExtensionError(
            f"Couldn't add the step type {name!r}: there is no role {role!r}.\n"
            f"Use one of {', '.join(get_args(StepRole))}."
        )

    def add(run: StepAction) -> StepAction:
        if name in STEP_TYPES:
            raise ExtensionError(
                f"Couldn't add the step type {name!r} of {run.__module__}: {STEP_TYPES[name].run.__module__} has"
                " one of that name.\nGive it another name."
            )
        STEP_TYPES[name] = StepType(name, role, run)
        return run

    return add
