"""terminal-bench trials (`results.json`): a run's folder or results, or one trial's.

Field names after terminal-bench 0.2.18 (`harness/models.py`, `agents/failure_mode.py`). Must import no importer.

What surprises: `failure_mode` "unset" stands for passes and for plain failures alike; a trial may be resolved
though its agent ran out of time; "parse_error" and "test_timeout" leave `is_resolved` null: undetermined.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.folder_files import folders_in, is_plain_file, name_below
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import (
    digest_file,
    filled,
    mapping,
    moment,
    present,
    read_parsed,
    refused,
    sequence,
    whole,
)
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import Trial, TrialError, TrialRef
from pytest_regcase.records.words import Expectation, Outcome, RaisedBy, Termination

_RESULTS, _METADATA = "results.json", "run_metadata.json"
_TRIAL_KEYS: Final = frozenset({"trial_name", "task_id", "is_resolved", "failure_mode"})
_RUN_KEYS: Final = frozenset({"results", "resolved_ids", "accuracy"})
_METADATA_KEYS: Final = frozenset({"run_id", "agent_name", "n_attempts"})
_NO_FAILURE: Final = frozenset({"unset", "none"})
_LIMITS: Final = frozenset({"agent_timeout"})
_GRADERS: Final = frozenset({"test_timeout", "parse_error"})
_NAME: Final = re.compile(r"(?P<task>.+)\.(?P<attempt>[0-9]{1,6})-of-[0-9]{1,6}\.(?P<run>.+)", re.DOTALL)
_CAN_SHOW: Final[tuple[Expectation, ...]] = ("log_failure", "max_retries", "stop_within_seconds", "mark_failure")
"""There is no conversation and no patch: only the label of how it ended, and what the wire shows."""


class TerminalBench:
    """Importer of terminal-bench results: one trial, or all of a run."""

    name = "terminal-bench"

    def handles(self, peek: Peek) -> bool:
        """Say whether it is the results of a trial or run, or a folder that holds them right below it."""
        if peek.kind == "folder":
            results, metadata = peek.member(_RESULTS), peek.member(_METADATA)
            if results is not None:
                return _is_results(results)
            return metadata is not None and metadata.shape.keys >= _METADATA_KEYS
        return peek.kind == "file" and _is_results(peek)

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield each trial."""
        for entry in _entries(source):
            yield _ref(entry)

    def read(self, source: Path, ref: TrialRef) -> Trial:
        """Read one trial. It has no steps: the format keeps the terminal, not the conversation."""
        for entry in _entries(source):
            if entry.key == ref.key:
                return _trial(entry)
        raise refused("no-such-trial", source, f"it holds no trial {ref.key!r}", "List them with --failed.")


@dataclass(frozen=True)
class _Entry:
    key: str
    result: Mapping[str, Any]
    digested: tuple[Path, ...]
    metadata: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> re.Match[str] | None:
        return _NAME.fullmatch(filled(self.result.get("trial_name")) or "")

    @property
    def task_id(self) -> str | None:
        return filled(self.result.get("task_id"))

    @property
    def attempt(self) -> int | None:
        return int(self.name["attempt"]) if self.name is not None else None

    @property
    def outcome(self) -> Outcome:
        resolved = self.result.get("is_resolved")
        if not isinstance(resolved, bool):
            return "undetermined"
        return "passed" if resolved else "failed"

    @property
    def failure_mode(self) -> str | None:
        """The harness's word where it names a failure; "unknown" names none."""
        mode = filled(self.result.get("failure_mode"))
        return None if mode is None or mode in _NO_FAILURE or mode == "unknown" else mode

    @property
    def termination(self) -> Termination | None:
        if self.failure_mode is not None:
            return "limit" if self.failure_mode in _LIMITS else "error"
        ended = self.outcome != "undetermined" and filled(self.result.get("failure_mode")) in _NO_FAILURE
        return "finished" if ended else None

    @property
    def error(self) -> TrialError | None:
        if self.failure_mode is None or self.failure_mode in _LIMITS:
            return None
        raised_by: RaisedBy = "grader" if self.failure_mode in _GRADERS else "unknown"
        return TrialError(type=self.failure_mode, raised_by=raised_by)


def _is_results(peek: Peek) -> bool:
    if peek.shape.kind != "object":
        return False
    keys = peek.shape.keys
    if keys >= _TRIAL_KEYS:
        return True
    if "results" not in keys:
        return False
    is_empty = re.search(rb'"results"\s*:\s*\[\s*\]', peek.head) is not None
    return (is_empty or b'"failure_mode"' in peek.head) and peek.whole_shape.keys >= _RUN_KEYS


def _entries(source: Path) -> list[_Entry]:
    """Return the trials of a file or folder; in a run's folder also those that its own results do not hold yet.

    Raises:
        ImportRefused: it cannot be read, or is no JSON object.
    """
    metadata: Mapping[str, Any] = {}
    digested: tuple[Path, ...] = ()
    if source.is_dir() and is_plain_file(source / _METADATA):
        metadata, digested = _object(source / _METADATA)[0], (source / _METADATA,)
    counted: Counter[str] = Counter()
    found = []
    for result, path, notes in _results(source):
        key = filled(result.get("trial_name")) or _event_id(result) or "result"
        counted[key] += 1
        key = key if counted[key] == 1 else f"{key}#{counted[key]}"
        found.append(_Entry(key, result, (path, *digested), metadata, notes))
    return found


def _results(source: Path) -> Iterator[tuple[Mapping[str, Any], Path, tuple[str, ...]]]:
    """Yield each trial's result with the file that it stands in and notes on that file."""
    results = source / _RESULTS if source.is_dir() else source
    known: set[str | None] = set()
    if not source.is_dir() or is_plain_file(results):
        document, notes = _object(results)
        if not isinstance(document.get("results"), list):
            yield document, results, notes
            return
        for result in map(mapping, sequence(document.get("results"))):
            known.add(filled(result.get("trial_name")))
            yield result, results, notes
    if not source.is_dir():
        return
    for task in folders_in(source):
        for trial in folders_in(task):
            if trial.name not in known and is_plain_file(trial / _RESULTS):
                document, notes = _object(trial / _RESULTS)
                yield document, trial / _RESULTS, notes


def _object(path: Path) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    parsed = read_parsed(path)
    return mapping(parsed.value), parsed.notes


def _event_id(result: Mapping[str, Any]) -> str | None:
    return filled(result.get("id")) or filled(result.get("uuid"))


def _ref(entry: _Entry) -> TrialRef:
    why_not, refusal = None, None
    if entry.outcome == "passed":
        beside = f", although its failure_mode is {entry.failure_mode}" if entry.failure_mode else ""
        why_not, refusal = f"its tests say that it is resolved{beside}", "passed"
    elif entry.outcome == "undetermined" and entry.failure_mode is None:
        why_not, refusal = "neither is_resolved nor failure_mode says that it failed", "no-sign-of-failure"
    return TrialRef(
        key=entry.key,
        task_id=entry.task_id,
        attempt=entry.attempt,
        termination=entry.termination,
        outcome=entry.outcome,
        error_type=entry.error.type if entry.error is not None else None,
        failed=refusal is None,
        why_not=why_not,
        refusal=refusal,
        sample=filled(entry.result.get("trial_name")),
    )


def _trial(entry: _Entry) -> Trial:
    result, metadata = entry.result, entry.metadata
    event_id = _event_id(result)
    commit = filled(metadata.get("commit_hash"))
    mode = filled(result.get("failure_mode"))
    graded = entry.outcome != "undetermined"
    return Trial(
        format=TerminalBench.name,
        harness="terminal-bench",
        run_id=filled(metadata.get("run_id")) or (entry.name["run"] if entry.name is not None else None),
        task_id=entry.task_id,
        attempt=entry.attempt,
        event_id=event_id or digest_of(result),
        event_id_from="recorded" if event_id else "digest",
        revision=commit if commit != "unknown" else None,
        model=filled(metadata.get("model_name")),
        started_at=moment(result.get("trial_started_at")),
        ended_at=moment(result.get("trial_ended_at")),
        task_text=filled(result.get("instruction")),
        termination=entry.termination,
        outcome=entry.outcome,
        outcome_from="log" if graded else None,
        error=entry.error,
        labels=(f"terminal-bench:failure_mode:{mode}",) if mode else (),
        conditions=_conditions(metadata),
        can_show=_CAN_SHOW,
        source_digests={name_below(path, entry.digested[-1].parent): digest_file(path) for path in entry.digested},
        missing=(
            *entry.notes,
            "conversation: terminal-bench keeps the terminal and the agent's own logs, no steps",
        ),
    )


def _conditions(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is recorded of how the run went; never who ran it, where to, or the agent's own arguments."""
    kept = {
        "agent": filled(metadata.get("agent_name")),
        "dataset": {name: metadata.get(f"dataset_{name}") for name in ("name", "version")},
        "n_concurrent_trials": whole(metadata.get("n_concurrent_trials")),
        "n_attempts": whole(metadata.get("n_attempts")),
    }
    found: dict[str, Any] = present(kept)
    return found
