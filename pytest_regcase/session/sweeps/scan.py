"""Labels each trial of a sweep against all cases: which failures came back, which are new, which are undetermined.

Reads cases and logs; writes nothing, counts nothing in a ledger. Must not print and must not import pytest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from pytest_regcase.config import Project
from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.collection import Collection, Entry, collect, without_secrets
from pytest_regcase.importers.reading import on_one_line
from pytest_regcase.importers.recognise import Progress, Unreadable
from pytest_regcase.records.trial import Trial
from pytest_regcase.records.words import CaseState
from pytest_regcase.recovery.symptom import Likeness, signature
from pytest_regcase.rules.lifecycle import in_utc
from pytest_regcase.session.sweeps.known_cases import SAYS, KnownCase, known_cases
from pytest_regcase.session.sweeps.sweep import DRAWS, has_record, is_failed, light_trials

_CLOSEST: Final = tuple(SAYS)


@dataclass
class Recurrence:
    """A case whose failure came back."""

    case_id: str
    state: CaseState
    """From its file alone: what the ledger says of live attempts is the gate's matter."""
    trials: list[str] = field(default_factory=list)
    since_closed: bool = False
    """The case is closed, and one of the trials is not recorded to have ended before that."""


@dataclass
class NewSignature:
    """A failure signature that no case has, and the cases that it is like without being their failure."""

    signature: str
    trials: list[str] = field(default_factory=list)
    looks_like: dict[str, Likeness] = field(default_factory=dict)
    """By case, how the trial that is closest to it relates to it."""


@dataclass
class Scan:
    """What a scan found. Every trial is in exactly one of the lists, but one that came back in several cases."""

    known: dict[str, Recurrence] = field(default_factory=dict)
    recorded: dict[str, list[str]] = field(default_factory=dict)
    """By case: the very trials that it was made of or lists. They are no recurrence, of other cases neither."""
    new: dict[str, NewSignature] = field(default_factory=dict)
    undetermined: list[str] = field(default_factory=list)
    """They ended, and nothing says that they passed or failed."""
    not_counted: dict[str, str] = field(default_factory=dict)
    """By trial, why: never ran, cancelled because a sibling failed, no record."""
    passed: int = 0
    unreadable: list[Unreadable] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def closed_recurred(self) -> bool:
        """Say whether a failure came back whose case is closed."""
        return any(each.since_closed for each in self.known.values())


def scan(
    project: Project, paths: Sequence[Path], *, importer: str | None = None, progress: Progress | None = None
) -> Scan:
    """Label every trial of the logs `paths` against the project's cases.

    A failure came back where the symptom of a case matches a failed trial of the case's own task; a retired case
    is out of service and matched with nothing. The same symptom on another task is a look-alike, listed beside the
    new signature. One path that cannot be read loses none of the others.

    Raises:
        ImportRefused: the only path cannot be read, or none of several can.
    """
    cases, warnings = known_cases(project.case_folders)
    cases = tuple(each for each in cases if each.state != "retired")
    result = Scan(warnings=list(warnings))
    refusals: list[ImportRefused] = []
    for path in paths:
        try:
            with collect(path, importer=importer, progress=progress) as found:
                _label(result, found, cases, on_one_line(f"{path}::") if len(paths) > 1 else "", progress)
        except ImportRefused as refusal:
            refusals.append(refusal)
            result.unreadable.append(Unreadable(path, refusal))
    if len(refusals) == len(paths):
        raise refusals[0]
    result.known = dict(sorted(result.known.items()))
    return result


def _label(
    result: Scan, found: Collection, cases: Sequence[KnownCase], prefix: str, progress: Progress | None
) -> None:
    result.unreadable.extend(found.unreadable)
    failed: list[Entry] = []
    for entry in found.entries:
        if is_failed(entry):
            failed.append(entry)
        elif entry.ref.outcome == "passed" or entry.ref.refusal == "passed":
            result.passed += 1
        elif entry.ref.refusal in DRAWS:
            result.undetermined.append(prefix + entry.key)
        else:
            result.not_counted[prefix + entry.key] = without_secrets(entry.ref.why_not or "no reason recorded")
    for entry, trial in light_trials(found, failed, result.unreadable, progress):
        _label_failure(result, cases, prefix + entry.key, trial)


def _label_failure(result: Scan, cases: Sequence[KnownCase], key: str, trial: Trial) -> None:
    if not has_record(trial):
        result.not_counted[key] = "its log holds no record of it but that it was to be made"
        return
    holding = [case for case in cases if case.holds(trial)]
    for case in holding:
        result.recorded.setdefault(case.id, []).append(key)
    if holding:
        return
    likes = [(case, case.likeness(trial)) for case in cases]
    back = [case for case, like in likes if like == "same"]
    for case in back:
        known = result.known.setdefault(case.id, Recurrence(case.id, case.state))
        known.trials.append(key)
        known.since_closed |= case.state == "closed" and not _before(trial, case.closed_at)
    if back:
        return
    new = result.new.setdefault(signature(trial), NewSignature(signature(trial)))
    new.trials.append(key)
    for case, like in likes:
        if like is not None:
            new.looks_like[case.id] = min(new.looks_like.get(case.id, like), like, key=_CLOSEST.index)


def _before(trial: Trial, moment: datetime | None) -> bool:
    """Say whether the trial is recorded to have ended before `moment`: an old sweep shows nothing new."""
    times = [each for each in (trial.ended_at, *(line.at for line in trial.steps)) if each is not None]
    return moment is not None and bool(times) and in_utc(max(times)) < in_utc(moment)
