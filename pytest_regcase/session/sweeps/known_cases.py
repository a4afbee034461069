"""The cases that a failed trial may be the return of.

Loads case files; the rule of what is alike is recovery's. Must not print.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Final

from pytest_regcase.case_builder import source_event
from pytest_regcase.case_files import LoadedCase, find_case_files, load_case
from pytest_regcase.errors import FileError
from pytest_regcase.records.trial import Trial
from pytest_regcase.records.words import CaseState
from pytest_regcase.recovery.symptom import Likeness, likeness
from pytest_regcase.rules.lifecycle import case_state, in_utc
from pytest_regcase.toml_lines import shown

HOLDS: Final = "it holds this very trial"
SAYS: Final[dict[Likeness, str]] = {
    "same": "the same symptom on the same task",
    "other-step": "the same symptom on the same task, at another step",
    "other-task": "an error of the same type, on another task",
    "task-not-recorded": "an error of the same type; whether the task is the same is not recorded",
}


@dataclass(frozen=True)
class KnownCase:
    """A case, with what is compared."""

    loaded: LoadedCase

    @property
    def id(self) -> str:
        """The case's id."""
        return self.loaded.id

    @property
    def state(self) -> CaseState:
        """What its file alone says: the ledger may know of a recurrence."""
        return case_state(self.loaded.case, recurred=False)

    @property
    def closed_at(self) -> datetime | None:
        """When it was last closed."""
        return max((in_utc(each.at) for each in self.loaded.case.closed), default=None)

    @cached_property
    def task_text(self) -> str | None:
        """What its agent is asked to do."""
        return self.loaded.task_text()

    @cached_property
    def _events(self) -> frozenset[str]:
        case = self.loaded.case
        return frozenset({case.observation.source_event, *(each.source_event for each in case.occurrences)})

    def holds(self, trial: Trial) -> bool:
        """Say whether the case was made of this very trial, or lists it."""
        return source_event(trial) in self._events

    def likeness(self, trial: Trial) -> Likeness | None:
        """Return how a failed, redacted trial relates to the case."""
        return likeness(self.loaded.case, self.task_text, trial)


@dataclass(frozen=True)
class Likely:
    """A case that a new trial looks like, and why."""

    case: KnownCase
    why: str


def known_cases(folders: Iterable[Path]) -> tuple[tuple[KnownCase, ...], tuple[str, ...]]:
    """Return the cases below `folders` sorted by id, and a sentence for each that cannot be read."""
    cases: list[KnownCase] = []
    broken: list[str] = []
    for path in find_case_files(dict.fromkeys(folders)):
        try:
            cases.append(KnownCase(load_case(path)))
        except FileError:
            broken.append(
                f"{shown(path)} cannot be read, so nothing was compared with it: `regcase show` says why"
            )
    return tuple(sorted(cases, key=lambda each: each.id)), tuple(broken)


def looks_like(cases: Sequence[KnownCase], trial: Trial) -> Likely | None:
    """Return the case that holds a failed trial, or else the one that it looks most like; None without one."""
    for case in cases:
        if case.holds(trial):
            return Likely(case, HOLDS)
    for wanted, why in SAYS.items():
        for case in cases:
            if case.likeness(trial) == wanted:
                return Likely(case, why)
    return None
