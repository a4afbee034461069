"""A person's word on what a log does not hold: the outcome, the task, the harness. Recorded as such.

Knows trials; reads no files. What the log says itself is never overwritten, but for the outcome, and that is said.
"""

from dataclasses import dataclass
from typing import Any

from pytest_regcase.errors import ImportRefused, UsageRefused
from pytest_regcase.records.trial import Trial
from pytest_regcase.records.words import Outcome, SaidByPerson


@dataclass(frozen=True)
class PersonsWord:
    """What a person says; None: nothing."""

    outcome: Outcome | None = None
    task_id: str | None = None
    harness: str | None = None


def said(trial: Trial, word: PersonsWord) -> tuple[Trial, list[str]]:
    """Return `trial` with a person's word where the log is silent, and what the person should mind.

    Raises:
        ImportRefused: the person says that it passed.
        UsageRefused: the log names another task or harness.
    """
    changes: dict[str, Any] = {}
    warnings: list[str] = []
    if word.outcome == "passed":
        raise ImportRefused(
            "passed", "Couldn't make a case: you say that the trial passed.\nA case is made of one that failed."
        )
    if word.outcome is not None and word.outcome != trial.outcome:
        if trial.outcome != "undetermined":
            warnings.append(
                f"the log says that the trial {trial.outcome}; {word.outcome} is a person's word against it"
            )
        changes |= {"outcome": word.outcome, "outcome_from": "person"}
    by_person: list[SaidByPerson] = []
    facts: tuple[tuple[SaidByPerson, str | None], ...] = (("task_id", word.task_id), ("harness", word.harness))
    for name, value in facts:
        recorded = getattr(trial, name)
        if value is None or value == recorded:
            continue
        if recorded is not None:
            option = "--task" if name == "task_id" else "--harness"
            raise UsageRefused(
                f"Couldn't use {option} {value!r}: the log says {recorded!r}.\n"
                "Your word fills what a log does not hold; leave the option out."
            )
        changes[name] = value
        by_person.append(name)
    if by_person:
        changes["by_person"] = tuple(by_person)
    return trial.model_copy(update=changes), warnings
