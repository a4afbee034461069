"""A sweep: which of its trials failed, by failure signature, and how often, counted honestly.

Reads failed trials one at a time and keeps no conversation. Must not print and must not import pytest.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pytest_regcase.case_builder import Counted, source_event, symptom_match
from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.collection import Collection, Entry
from pytest_regcase.importers.recognise import Progress, Unreadable
from pytest_regcase.records.case import Baseline
from pytest_regcase.records.occurrence import Occurrence
from pytest_regcase.records.plurals import how_many
from pytest_regcase.records.trial import Trial
from pytest_regcase.recovery.symptom import Ending, differs, ending_of, signature
from pytest_regcase.redaction import redact_trial
from pytest_regcase.session.sweeps.known_cases import KnownCase, Likely, looks_like

DRAWS: Final = frozenset({None, "passed", "no-sign-of-failure"})
"""The refusals of trials that ran to an end of their own. Others never ran, left no record or were cancelled
because a sibling failed: they show nothing of how often a failure comes, and are not counted."""
_CONDITION = re.compile(
    r"limit|time_?out|concurren|parallel|connections|workers|retries|epochs|attempts|trials|max_|^n_",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Failure:
    """A failed trial of a sweep without its conversation; every text of it is redacted."""

    entry: Entry
    signature: str
    ending: Ending
    source_event: str
    task_id: str | None
    failing_step: int | None
    error_type: str | None
    conditions: dict[str, Any] = field(repr=False)
    has_steps: bool
    has_task_text: bool
    has_record: bool
    """False: its log holds nothing of it but that it was to be made; whether it began is not known."""
    likely: Likely | None = None
    """The case that it looks like, among those that were given."""


@dataclass(frozen=True)
class Sweep:
    """Everything that a collection holds, failed trials read."""

    failures: tuple[Failure, ...]
    others: tuple[Entry, ...]
    """Passed, without a sign of failure, cancelled, never ran: the entry says which."""
    unreadable: tuple[Unreadable, ...]


def is_failed(entry: Entry) -> bool:
    """Say whether the trial failed by itself, as far as its log says."""
    return entry.ref.failed and entry.ref.why_not is None


def light_trials(
    found: Collection, entries: Sequence[Entry], lost: list[Unreadable], progress: Progress | None = None
) -> Iterator[tuple[Entry, Trial]]:
    """Yield each entry with its trial; what cannot be read is added to `lost`.

    All of the trial is redacted but its steps, which are as recorded: they serve to compare, never to be written
    or shown. Only one is in memory at a time.
    """
    for number, entry in enumerate(entries, 1):
        if progress is not None:
            progress(number, len(entries), entry.key)
        try:
            trial = found.read(entry)
        except ImportRefused as refusal:
            lost.append(Unreadable(entry.source.path, refusal))
            continue
        error = trial.error.model_copy(update={"traceback": None}) if trial.error is not None else None
        bare = trial.model_copy(
            update={"steps": (), "submission": None, "partial_patch": None, "final_text": None, "error": error}
        )
        yield entry, redact_trial(bare).model_copy(update={"steps": trial.steps})


def read_sweep(
    found: Collection,
    progress: Progress | None = None,
    *,
    entries: Sequence[Entry] | None = None,
    known: Sequence[KnownCase] = (),
) -> Sweep:
    """Read all failed trials of a collection, or of some of its entries, and compare them with `known` cases."""
    entries = found.entries if entries is None else entries
    lost = list(found.unreadable)
    failed = [each for each in entries if is_failed(each)]
    failures = tuple(
        _failure(entry, trial, looks_like(known, trial))
        for entry, trial in light_trials(found, failed, lost, progress)
    )
    return Sweep(failures, tuple(each for each in entries if not is_failed(each)), tuple(lost))


def _failure(entry: Entry, trial: Trial, likely: Likely | None) -> Failure:
    """Return what is kept of a failed trial as `light_trials` yields it."""
    return Failure(
        entry=entry,
        signature=signature(trial),
        ending=ending_of(trial),
        source_event=source_event(trial),
        task_id=trial.task_id,
        failing_step=trial.failing_step,
        error_type=trial.error.type if trial.error is not None else None,
        conditions=counting_conditions(trial.conditions),
        has_steps=bool(trial.steps),
        has_task_text=trial.task_text is not None,
        has_record=has_record(trial),
        likely=likely,
    )


def has_record(trial: Trial) -> bool:
    """Say whether the log holds more of the trial than that it was to be made."""
    return bool(trial.steps or trial.error or trial.started_at or trial.outcome != "undetermined")


def by_signature(failures: Iterable[Failure]) -> dict[str, list[Failure]]:
    """Return the failures with a record by signature, in the sweep's order."""
    groups: dict[str, list[Failure]] = {}
    for each in failures:
        if each.has_record:
            groups.setdefault(each.signature, []).append(each)
    return groups


def representative(group: Sequence[Failure]) -> Failure:
    """Return the trial that says most: one with a conversation and a task text, else the first."""
    return max(group, key=lambda each: (each.has_steps, each.has_task_text))


def counted(trial: Trial, chosen: Entry, failures: Sequence[Failure], sweep: Sweep) -> Counted:
    """Return how often the sweep shows the failure of `trial`, and where else; `failures` have its signature.

    Failures that look like another case are counted, and not listed.

    Of one task, what counts is what a rerun would be judged by: the symptom at its step. Over several tasks it is
    the signature, since steps differ from task to task. Nothing is counted where the sweep holds no other draw,
    where it holds copies of one log, or where the trial failed by a person's word or left no record.
    """
    failures = [each for each in failures if each.has_record]
    draws = _draws(sweep, by_outcome=trial.termination in (None, "finished"))
    tasks = {each.ref.task_id for each in draws}
    one_task = len(tasks) == 1 and None not in tasks
    others = [each for each in failures if each.entry.key != chosen.key]
    events = {
        each.source_event: each
        for each in others
        if each.likely is None and each.source_event != source_event(trial)
    }
    listed = tuple(map(_occurrence, events.values()))
    if len(draws) < 2 or len(others) == len(failures) or why_no_count(sweep):
        return Counted(occurrences=listed)
    symptom = symptom_match(trial)
    alike = [
        each
        for each in failures
        if each.entry.key == chosen.key
        or not one_task
        or symptom is None
        or differs(each.ending, symptom, trial.failing_step) is None
    ]
    baseline = Baseline(
        failures=len(alike),
        trials=len(draws),
        kind="all-attempts",
        population="task" if one_task else "sweep",
        conditions=_common([each.conditions for each in alike]),
    )
    return Counted(baseline, listed)


def why_no_count(sweep: Sweep) -> str | None:
    """Return why no count of this sweep is right: it holds, or may hold, a trial more than once."""
    copies = len(sweep.failures) - len({each.source_event for each in sweep.failures})
    if copies:
        found = how_many(copies, "failed trial is there again", "failed trials are there again")
        return f"{found} (copies of a log?), so no baseline is drafted"
    entries = (*(each.entry for each in sweep.failures), *sweep.others)
    unjoined = sum(1 for each in entries if each.notes)
    if unjoined:
        return (
            how_many(unjoined, "record")
            + " could not be joined to a trial, which may so be counted twice: no baseline is drafted; give one"
            " run at a time"
        )
    return None


def _draws(sweep: Sweep, *, by_outcome: bool) -> list[Entry]:
    """Return the trials that could have shown the failure; where it is one by outcome, those with an outcome."""
    ran = [each for each in sweep.others if each.ref.refusal in DRAWS]
    if by_outcome:
        ran = [each for each in ran if each.ref.outcome != "undetermined"]
    return [*ran, *(each.entry for each in sweep.failures if each.has_record)]


def _occurrence(failure: Failure) -> Occurrence:
    return Occurrence(
        source_event=failure.source_event,
        task_id=failure.task_id,
        attempt=failure.entry.ref.attempt,
        failing_step=failure.failing_step,
    )


def counting_conditions(conditions: dict[str, Any]) -> dict[str, Any]:
    """Return what bears on how often something fails: concurrency, limits, time-outs, retries."""
    kept: dict[str, Any] = {}
    for name, value in conditions.items():
        if isinstance(value, dict):
            inner = counting_conditions(value)
            if inner:
                kept[name] = inner
        elif _CONDITION.search(name):
            kept[name] = value
    return kept


def _common(conditions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what all of them hold alike."""
    first, *others = conditions
    kept: dict[str, Any] = {}
    for name, value in first.items():
        found = [each.get(name) for each in others]
        if isinstance(value, dict):
            inner = _common([value, *(each if isinstance(each, dict) else {} for each in found)])
            if inner:
                kept[name] = inner
        elif all(each == value for each in found):
            kept[name] = value
    return kept
