"""What SWE-bench's harness writes of one instance: its `report.json`, or the whole folder of its logs.

Field names and marks after SWE-bench 5.0.2, `harness/grading.py`, `constants`. Must import no other importer.

What surprises: a folder without a report was cut off or broke in the evaluation, so its trial is undetermined; the
harness's label of a broken environment is a regular expression over the log, so it is a clue and no cause; the
times in it are the evaluation's, not the agent's.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import (
    MEBIBYTE,
    digests_of,
    filled,
    mapping,
    read_document,
    read_parsed,
    refused,
    sequence,
)
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import Submission, Trial, TrialRef
from pytest_regcase.records.words import Outcome

_LOG: Final = "run_instance.log"
_REPORT: Final = "report.json"
_PATCH: Final = "patch.diff"
_FILES: Final = (_REPORT, _LOG, _PATCH, "test_output.txt", "eval.sh")
_LOG_LIMIT_BYTES: Final = 64 * MEBIBYTE
_NAMED_WITHIN_CHARACTERS: Final = 64 * 1024
_WRITTEN_TO: Final = re.compile(
    r"patch for (?P<instance>\S+) written to \S*run_evaluation/(?P<run>[^/\s]+)/(?P<model>[^/\s]+)/"
)
_CREATING: Final = re.compile(r"Creating container for (?P<instance>\S+?)\.\.\.")
_MARK: Final = re.compile(r">>>>> (?P<mark>Patch Apply Failed|Reset Failed|Tests Errored|Tests Timed Out)\b")


@dataclass(frozen=True)
class _Instance:
    id: str
    report: Mapping[str, Any] | None
    """None where the evaluation left no report of it."""
    run_id: str | None = None
    model: str | None = None
    marks: tuple[str, ...] = ()
    patch: str | None = None
    missing: tuple[str, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)


class SweBenchInstance:
    """Importer of instance reports and of instance log folders."""

    name = "swe-bench-instance"

    def handles(self, peek: Peek) -> bool:
        """Say whether it is an object by instance with `resolved` beside the harness's keys, or a log folder."""
        if peek.kind == "folder":
            return _LOG in peek.members
        return (
            peek.kind == "file"
            and peek.shape.kind == "object"
            and {"patch_is_None", "patch_exists"} <= peek.shape.inner_keys
        )

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield each instance of the report or folder."""
        for instance in _instances(source):
            yield _ref(instance)

    def read(self, source: Path, ref: TrialRef) -> Trial:
        """Read one instance: an outcome, labels and the patch; never a step."""
        for instance in _instances(source):
            if instance.id == ref.key:
                outcome = _outcome(instance)
                return Trial(
                    format=SweBenchInstance.name,
                    harness="SWE-bench",
                    run_id=instance.run_id,
                    task_id=instance.id,
                    event_id=digest_of([instance.id, instance.run_id, dict(instance.report or {})]),
                    event_id_from="digest",
                    model=instance.model,
                    outcome=outcome,
                    outcome_from="log" if outcome != "undetermined" else None,
                    labels=_labels(instance),
                    submission=Submission(patch=instance.patch) if instance.patch is not None else None,
                    source_digests=dict(instance.digests),
                    missing=(*instance.missing, "steps and error: an evaluation holds none of the agent's"),
                )
        raise refused("no-such-trial", source, f"no instance in it is {ref.key}", "List it again.")


def _instances(source: Path) -> Iterator[_Instance]:
    if not source.is_dir():
        digests = digests_of(source)
        for name, report in _reports(source).items():
            yield _Instance(name, report, digests=digests)
        return
    files = [source / name for name in _FILES if (source / name).is_file() and not (source / name).is_symlink()]
    digests = {name: digest for file in files for name, digest in digests_of(file).items()}
    log = _text(source / _LOG, files)
    written = _WRITTEN_TO.search(log[:_NAMED_WITHIN_CHARACTERS])
    creating = _CREATING.search(log[:_NAMED_WITHIN_CHARACTERS])
    reports, missing = _reports_of_folder(source / _REPORT, files)
    patch = _text(source / _PATCH, files) if source / _PATCH in files else None
    named = written or creating
    instance_id: str | None = next(iter(reports), named["instance"] if named is not None else None)
    if instance_id is None:
        raise refused(
            "corrupt", source, f"neither {_REPORT} nor {_LOG} names its instance", "Give the folder of a run."
        )
    yield _Instance(
        instance_id,
        reports.get(instance_id),
        run_id=written["run"] if written else None,
        model=written["model"] if written else None,
        marks=tuple(dict.fromkeys(found["mark"] for found in _MARK.finditer(log))),
        patch=patch,
        missing=missing,
        digests=digests,
    )


def _reports_of_folder(path: Path, files: list[Path]) -> tuple[dict[str, Mapping[str, Any]], tuple[str, ...]]:
    """Return the reports and what is missing; a report that cannot be read is the harness's own error too."""
    if path not in files:
        return {}, (f"outcome: there is no {_REPORT}, so the evaluation was cut off or broke",)
    try:
        found = _reports(path)
    except ImportRefused as refusal:
        if refusal.slug != "corrupt":
            raise
        found = {}
    return found, () if found else (f"outcome: {_REPORT} cannot be read, so the evaluation was cut off or broke",)


def _reports(path: Path) -> dict[str, Mapping[str, Any]]:
    parsed = read_parsed(path)
    return {
        instance_id: report
        for instance_id, report in mapping(parsed.value).items()
        if instance_id and isinstance(report, dict)
    }


def _text(path: Path, files: list[Path]) -> str:
    """Return a text file of a folder; logs hold bytes that are no UTF-8."""
    if path not in files:
        return ""
    return read_document(path, limit_bytes=_LOG_LIMIT_BYTES).decode("utf-8", "replace")


def _outcome(instance: _Instance) -> Outcome:
    resolved = mapping(instance.report).get("resolved")
    if not isinstance(resolved, bool):
        return "undetermined"
    return "passed" if resolved else "failed"


def _labels(instance: _Instance) -> tuple[str, ...]:
    report = mapping(instance.report)
    labels = [f"swe-bench:{mark}" for mark in instance.marks]
    if isinstance(report.get("resolved"), bool):
        labels.append(f"swe-bench:resolved={str(report['resolved']).lower()}")
    if report.get("patch_is_None") is True:
        labels.append("swe-bench:patch_is_None")
    elif report.get("patch_successfully_applied") is False:
        labels.append("swe-bench:patch_successfully_applied=false")
    for kind in ("FAIL_TO_PASS", "PASS_TO_PASS"):
        tests = mapping(mapping(report.get("tests_status")).get(kind))
        failures, successes = (len(sequence(tests.get(name))) for name in ("failure", "success"))
        if failures:
            labels.append(f"swe-bench:{kind}:failure={failures} of {failures + successes}")
    if reason := filled(report.get("infra_failure_reason")):
        tier = "infra_failure" if report.get("infra_failure") is True else "ambiguous_failure"
        labels += [f"swe-bench:{tier}", f"infra:{reason}"]
    return tuple(labels)


def _ref(instance: _Instance) -> TrialRef:
    outcome = _outcome(instance)
    return TrialRef(
        key=instance.id,
        task_id=instance.id,
        outcome=outcome,
        failed=outcome != "passed",  # no report: the harness itself counts such an instance as an error
        why_not="its report says that it is resolved" if outcome == "passed" else None,
        refusal="passed" if outcome == "passed" else None,
        sample=instance.id,
        joins_by=instance.id,
    )
