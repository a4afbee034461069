"""The report of a whole SWE-bench run (schema 2, 5.x, and sb-cli's): one trial an instance, by its lists of ids.

Field names after SWE-bench 5.0.2, `harness/reporting.py`, and a report of sb-cli. Must import no other importer.

What surprises: `total_instances` is the data set's size, so `incomplete_ids` (never handed in) can be nearly all
of it; an empty patch is neither resolved nor unresolved; infrastructure labels are advisory, and their ids stay in
`unresolved_ids` and `error_ids` all the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import digests_of, filled, mapping, read_parsed, refused, sequence, whole
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import Trial, TrialRef
from pytest_regcase.records.words import Outcome


@dataclass(frozen=True)
class _State:
    """What it means to stand in one of the report's lists."""

    outcome: Outcome = "undetermined"
    refusal: str | None = None
    why_not: str | None = None


_STATES: Final[Mapping[str, _State]] = {
    "resolved": _State("passed", "passed", "the report says that it is resolved"),
    "unresolved": _State("failed"),
    "empty_patch": _State(),  # handed in and empty: the benchmark counts it as not resolved, and tested nothing
    "error": _State(),  # handed in, and its evaluation left no report that can be read
    "failed": _State(),  # sb-cli: its evaluation failed
    "pending": _State("undetermined", "no-sign-of-failure", "its evaluation was pending when the report was made"),
    "incomplete": _State("undetermined", "no-record", "no prediction was handed in for it"),
}
_CLUES: Final = ("infra_failure", "ambiguous_failure")


class SweBenchRunReport:
    """Importer of SWE-bench run reports."""

    name = "swe-bench-report"

    def handles(self, peek: Peek) -> bool:
        """Say whether it is an object with the counts of a run."""
        return (
            peek.kind == "file"
            and peek.shape.kind == "object"
            and {"total_instances", "resolved_instances", "submitted_instances"} <= peek.shape.keys
        )

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield each instance that the report names, those never handed in too.

        Raises:
            ImportRefused: the report is corrupt.
        """
        for instance, lists in _instances(_report(source)).items():
            yield _ref(instance, lists)

    def read(self, source: Path, ref: TrialRef) -> Trial:
        """Read what the report says of one instance: an outcome and labels."""
        report = _report(source)
        lists = _instances(report).get(ref.key)
        if lists is None:
            raise refused("no-such-trial", source, f"no instance in it is {ref.key}", "List it again.")
        state = _state(lists)
        reason = filled(mapping(report.get("failure_reasons")).get(ref.key))
        clues = [name for name in _CLUES if ref.key in sequence(report.get(f"{name}_ids"))]
        labels = [f"swe-bench:{name}" for name in (*lists, *clues)] + ([f"infra:{reason}"] if reason else [])
        version = whole(report.get("schema_version"))
        return Trial(
            format=SweBenchRunReport.name,
            harness="SWE-bench",
            task_id=ref.key,
            event_id=digest_of([ref.key, report]),
            event_id_from="digest",
            outcome=state.outcome,
            outcome_from="log" if state.outcome != "undetermined" else None,
            labels=tuple(labels),
            source_digests=digests_of(source),
            missing=(
                *(() if version in (None, 2) else (f"schema_version {version} is not one that we know (2)",)),
                *(
                    (f"the outcome: it stands in {' and '.join(lists)}, which contradict one another",)
                    if _contradicts(lists)
                    else ()
                ),
                "steps, error, model and run id: a run report holds none of them",
            ),
        )


def _report(source: Path) -> dict[str, Any]:
    parsed = read_parsed(source)
    return dict(mapping(parsed.value))


def _instances(report: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the lists in which each instance stands."""
    found: dict[str, tuple[str, ...]] = {}
    for name in _STATES:
        for instance in sequence(report.get(f"{name}_ids")):
            if isinstance(instance, str) and instance and name not in found.get(instance, ()):
                found[instance] = (*found.get(instance, ()), name)
    return found


def _contradicts(lists: tuple[str, ...]) -> bool:
    return "resolved" in lists and "unresolved" in lists


def _state(lists: tuple[str, ...]) -> _State:
    """Return what an instance's lists come to: the first in our order, nothing where two contradict."""
    return _State() if _contradicts(lists) else _STATES[lists[0]]


def _ref(instance: str, lists: tuple[str, ...]) -> TrialRef:
    state = _state(lists)
    return TrialRef(
        key=instance,
        task_id=instance,
        outcome=state.outcome,
        failed=state.refusal is None,
        why_not=state.why_not,
        refusal=state.refusal,
        sample=instance,
        joins_by=instance,
    )
