"""What users write into the free metadata and scores of a trace: task id, attempt, and whether the trial passed.

Knows the names that are in common use; knows no format. Pure; must import no importer.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pytest_regcase.importers.reading import filled, whole
from pytest_regcase.records.words import Outcome

_TASK: Final = ("task_id", "instance_id", "task.id")
_ATTEMPT: Final = ("attempt", "epoch", "trial")
_MEANS_PASSED: Final = frozenset({"resolved", "passed", "pass", "success", "solved", "correct"})


def task_in(metadata: Mapping[str, Any]) -> str | None:
    """Return the task's id, where the user recorded one."""
    for name in _TASK:
        value = metadata.get(name)
        if (number := whole(value)) is not None:
            return str(number)
        if (words := filled(value)) is not None:
            return words
    return None


def attempt_in(metadata: Mapping[str, Any]) -> int | None:
    """Return the number of the attempt, where the user recorded one."""
    for name in _ATTEMPT:
        value = metadata.get(name)
        number = int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 10 else whole(value)
        if number is not None and number >= 0:
            return number
    return None


def outcome_in(scores: Iterable[tuple[str, Any]]) -> Outcome:
    """Return the outcome that yes-or-no scores of an unmistakable name record; undetermined where they disagree.

    Any other score (a rating, a share, a score of another name) says nothing about pass or fail.
    """
    said = {bool(value) for name, value in scores if name.lower() in _MEANS_PASSED and value in (0, 1)}
    if len(said) != 1:
        return "undetermined"
    return "passed" if said.pop() else "failed"
