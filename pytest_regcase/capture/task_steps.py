"""The steps of a task: which there are, what each needs, in which order they run, and with which role.

Pure but for the table of step types, which whoever adds a type fills.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Final

from pydantic import Field

from pytest_regcase.capture.step_types import STEP_TYPES, StepType
from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.words import StepRole

_ID: Final = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"


class TaskStep(Record):
    """One step of a task, as its file says it."""

    id: Annotated[str, Field(pattern=_ID)]
    type: str
    needs: Many[str] = ()
    """Ids of the steps that must have run before."""
    fail_task_on_error: bool = True
    step_role: StepRole | None = None
    """In the place of the role of its type."""
    command: Many[str] = ()
    """What `grade` and `run_code` run."""
    paths: Many[str] = ()
    """What `collect_artifacts` copies: patterns below the work tree."""

    def to_document(self) -> dict[str, Any]:
        """Return the keys that a file needs; `step_role` only where it differs from that of the type."""
        found = self.model_dump(mode="json", exclude_defaults=True)
        declared = STEP_TYPES.get(self.type)
        if declared is not None and declared.role == self.step_role:
            del found["step_role"]
        return found


DEFAULT_STEPS: Final = (
    TaskStep(id="start_environment", type="start_environment"),
    TaskStep(id="prompt_agent", type="prompt_agent", needs=("start_environment",)),
    TaskStep(id="capture_patch", type="capture_patch", needs=("prompt_agent",)),
)
"""Those of a task that says none."""


@dataclass(frozen=True)
class PlannedStep:
    """A step with its type found and its role settled."""

    step: TaskStep
    type: StepType
    role: StepRole


def plan_steps(
    steps: Sequence[TaskStep], types: Mapping[str, StepType] = STEP_TYPES, *, has_grade: bool = False
) -> tuple[PlannedStep, ...]:
    """Return the steps in an order in which each comes behind what it needs; of equals the file's order.

    `has_grade` says that a caller grades in Python, where a `grade` step has no command.

    Raises:
        UsageRefused: two have one id, a type or a need is not there, the needs go in a circle, or a step has
            nothing to run (slug ``invalid-steps``).
    """
    steps = tuple(steps) or DEFAULT_STEPS
    problems = [says for _, _, says in step_problems(steps, types, has_grade=has_grade)]
    if problems:
        raise UsageRefused(
            f"Couldn't plan the steps of the task: {'; '.join(problems)}.\nChange its [[task.step]] tables.",
            slug="invalid-steps",
        )
    by_id = {each.id: each for each in steps}
    order = TopologicalSorter({each.id: each.needs for each in steps}).static_order()
    return tuple(
        PlannedStep(step, found, step.step_role or found.role)
        for step in (by_id[each] for each in order)
        for found in (types[step.type],)
    )


def step_problems(
    steps: Sequence[TaskStep], types: Mapping[str, StepType] = STEP_TYPES, *, has_grade: bool = True
) -> Iterator[tuple[int, str, str]]:
    """Yield (index of the step, its key, what is wrong and what is allowed) for everything that is."""
    ids = [each.id for each in steps]
    for index, step in enumerate(steps):
        if step.id in ids[:index]:
            yield index, "id", f'id = "{step.id}" is that of an earlier step; allowed: one that no other has'
        if step.type not in types:
            yield index, "type", f'type = "{step.type}" is no type of step; allowed: {", ".join(sorted(types))}'
        for need in step.needs:
            if need not in ids:
                yield index, "needs", f'needs "{need}", which is no step of this task; allowed: {", ".join(ids)}'
        runs = step.type == "run_code" or (step.type == "grade" and not has_grade)
        if runs and not step.command:
            yield index, "command", f'step "{step.id}" has nothing to run; say command = ["...", ...]'
        if step.type == "collect_artifacts" and not step.paths:
            yield index, "paths", f'step "{step.id}" has nothing to collect; say paths = ["..."]'
    try:
        TopologicalSorter({each.id: each.needs for each in steps}).prepare()
    except CycleError as error:
        circle = error.args[1]
        yield ids.index(circle[0]), "needs", f"needs go in a circle: {' -> '.join(reversed(circle))}"
