"""Joins a record without a conversation (a report, predictions) to the trajectory of the same task id, or, where
there is none, to another record of it.

Pure: works on references and trials. Knows no format; a reference says by `joins_by` that it waits for a
trajectory.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from pytest_regcase.records.trial import Trial, TrialRef
from pytest_regcase.records.words import Outcome

_FACTS: Final = ("run_id", "model", "revision", "attempt")


def nearest(path: Path, candidates: Iterable[Path]) -> list[int]:
    """Return the positions of the candidates that share the longest beginning with `path`."""
    shared = [_shared(path, each) for each in candidates]
    return [number for number, length in enumerate(shared) if length == max(shared)]


def principal(records: Sequence[tuple[str, TrialRef, Path]]) -> str:
    """Return the format whose records others are joined to where a task has no trajectory.

    `records` are those of one task, each with its format and path. It is the format that knows an outcome; then
    the one that has most of them, since it tells runs apart; then the one that lies deepest.
    """
    formats = dict.fromkeys(name for name, _, _ in records)
    return max(
        formats,
        key=lambda name: (
            any(ref.outcome != "undetermined" for each, ref, _ in records if each == name),
            sum(1 for each, _, _ in records if each == name),
            max(len(path.parts) for each, _, path in records if each == name),
        ),
    )


def outcomes_agree(refs: Iterable[TrialRef]) -> bool:
    """Say whether records of one task say the same of its outcome; one that says nothing contradicts none."""
    return len({ref.outcome for ref in refs} - {"undetermined"}) <= 1


def joined_ref(trajectory: TrialRef, records: Sequence[TrialRef]) -> TrialRef:
    """Return the reference of the trial that a trajectory and its records are together.

    The outcome is the records'. What they call passed is no failed trial; what they call failed is one, whatever
    the trajectory shows. Where they leave it open the trajectory decides.
    """
    outcome = _outcome([each.outcome for each in records])
    changes: dict[str, Any] = {}
    if outcome == "passed":
        said = next(each for each in records if each.outcome == "passed")
        changes = {
            "failed": False,
            "why_not": said.why_not or "its report says that it passed",
            "refusal": "passed",
        }
    elif outcome == "failed" or (
        trajectory.refusal == "no-sign-of-failure" and any(each.failed for each in records)
    ):
        changes = {"failed": True, "why_not": None, "refusal": None}
    if outcome != "undetermined":
        changes["outcome"] = outcome
    return trajectory.model_copy(update=changes)


def joined_trial(trajectory: Trial, records: Sequence[Trial]) -> Trial:
    """Return the trajectory's steps with the records' outcome, labels and submission; `missing` says so.

    Of a record that says nothing which the trajectory does not say itself only the digest is noted: our own
    predictions beside our own `trial.jsonl`.
    """
    outcome = _outcome([each.outcome for each in records])
    digests = dict(trajectory.source_digests)
    for each in records:
        for name, found in each.source_digests.items():
            free = name
            while digests.get(free, found) != found:
                free = f"{free} (of the {each.format} record)"
            digests[free] = found
    changes: dict[str, Any] = {
        "labels": _once(label for each in (trajectory, *records) for label in each.labels),
        "source_digests": digests,
        "can_show": _once(name for each in (trajectory, *records) for name in each.can_show),
    }
    if outcome != "undetermined":
        changes |= {"outcome": outcome, "outcome_from": "log"}
    if trajectory.submission is None:
        changes["submission"] = next((each.submission for each in records if each.submission is not None), None)
    for name in _FACTS:
        if getattr(trajectory, name) is None:
            values = {getattr(each, name) for each in records} - {None}
            changes |= {name: values.pop()} if len(values) == 1 else {}
    added = [(each, facts) for each in records if (facts := _added(trajectory, each))]
    if added:
        formats = ", ".join(_once(each.format for each, _ in added))
        names = ", ".join(_once(name for _, facts in added for name in facts))
        changes["missing"] = (
            *trajectory.missing,
            *(says for each, _ in added for says in each.missing),
            f"{names} in this record alone: joined from the {formats} record of the same task id",
        )
    return trajectory.model_copy(update=changes)


def _added(trajectory: Trial, record: Trial) -> tuple[str, ...]:
    """Return the names of what the record says and the trajectory does not."""
    found = ["outcome"] if record.outcome != "undetermined" else []
    if set(record.labels) - set(trajectory.labels):
        found.append("labels")
    if trajectory.submission is None and record.submission is not None:
        found.append("submission")
    found += [
        name.replace("_", " ")
        for name in _FACTS
        if getattr(trajectory, name) is None and getattr(record, name) is not None
    ]
    return tuple(found)


def _outcome(said: Iterable[Outcome]) -> Outcome:
    found = {each for each in said if each != "undetermined"}
    return found.pop() if len(found) == 1 else "undetermined"


def _once(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _shared(one: Path, other: Path) -> int:
    length = 0
    for here, there in zip(one.parts[:-1], other.parts[:-1], strict=False):
        if here != there:
            break
        length += 1
    return length
