"""Inspect AI logs (`.eval` and `.json`): one trial a sample and epoch.

Field names after inspect_ai 0.3.285, `log/_log.py`, `_util/error.py`, `event/`. Must import no other importer.

What surprises: the run's status says nothing of a sample; a limit sets no error, and such a sample is scored all
the same; siblings of a failed sample carry a cancellation that looks like an error; a killed run has no header.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.inspect_conversation import CANCEL_WORDS, SampleConversation
from pytest_regcase.importers.inspect_log import START, InspectLog, SampleEntry
from pytest_regcase.importers.last_document import LastDocument, Version, version_of
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import (
    bare,
    digests_of,
    exception_chain,
    filled,
    mapping,
    moment,
    present,
    refused,
    sequence,
    text,
    whole,
)
from pytest_regcase.importers.steps import failing_step, reply_was_due
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import ErrorLink, Trial, TrialError, TrialRef
from pytest_regcase.records.words import EXPECTATIONS, Outcome, RaisedBy, Termination

_CANCELLED: Final = ("CancelledError(", "Cancelled(")
"""How inspect's own `is_cancellation_message` tells them (asyncio, trio)."""
_REPR = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\(")
_CAN_SHOW: Final = tuple(each for each in EXPECTATIONS if each != "keep_partial_patch")
"""Not the partial patch: Inspect's agent works in a sandbox of its own, which is gone afterwards."""


class InspectAi:
    """Importer of Inspect logs."""

    name = "inspect"

    def __init__(self) -> None:
        self._documents = LastDocument()
        self._listed: tuple[Version | None, list[SampleEntry], list[str]] = (None, [], [])

    def handles(self, peek: Peek) -> bool:
        """Say whether it is a zip with a journal, or an object with version, eval and status or plan."""
        if peek.kind == "zip":
            # A cut-off zip has no directory, but still begins with its first member's name.
            return START in peek.members or START.encode() in peek.head[:200]
        keys = peek.shape.keys
        return peek.kind == "file" and peek.shape.kind == "object" and {"version", "status", "eval"} <= keys

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield every sample of the log, lost ones too.

        Raises:
            ImportRefused: the log is corrupt.
        """
        with InspectLog(source, self._documents) as log:
            for entry in self._entries(log):
                yield _ref(log, entry)

    def read(self, source: Path, ref: TrialRef) -> Trial:
        """Read one sample, or what the log's head says of a lost one.

        Raises:
            ImportRefused: the sample is not there any more, or its record is damaged.
        """
        with InspectLog(source, self._documents) as log:
            entry = next((each for each in self._entries(log) if each.key == ref.key), None)
            if entry is None:
                raise refused("no-such-trial", source, f"no sample in it is {ref.key}", "List it again.")
            return _lost_trial(log, entry) if entry.is_lost else _trial(log, entry)

    def _entries(self, log: InspectLog) -> list[SampleEntry]:
        """Return what the log holds, without working it out again for each sample of the same file."""
        version = version_of(log.path)
        if version is None or version != self._listed[0]:
            self._listed = version, log.entries(), list(log.notes)
        _, entries, notes = self._listed
        log.notes = list(notes)
        return entries


@dataclass(frozen=True)
class _Ending:
    """What a sample's record, or its summary, says of how it ended."""

    termination: Termination
    outcome: Outcome
    error_type: str | None
    labels: tuple[str, ...]
    was_cancelled: bool


def _ending(sample: Mapping[str, Any]) -> _Ending:
    error = sample.get("error")
    message = text(error) if isinstance(error, str) else text(mapping(error).get("message"))
    limit = sample.get("limit")
    limit_type = text(limit) if isinstance(limit, str) else filled(mapping(limit).get("type"))
    cancelled = message is not None and message.startswith(_CANCELLED)
    termination: Termination = "finished"
    if message is not None:
        termination = "cancelled" if cancelled else "error"
    elif limit_type:
        termination = "limit"
    outcome, labels = _scored(sample)
    if limit_type:
        labels = (f"inspect:limit:{limit_type}", *labels)
    retries = len(sequence(sample.get("error_retries"))) or whole(sample.get("retries")) or 0
    if retries:
        labels = (*labels, f"inspect:error_retries:{retries}")
    if isinstance(sample.get("invalidation"), dict):
        labels = (*labels, "inspect:invalidated")
    return _Ending(termination, outcome, _error_type(mapping(error), message), labels, cancelled)


def _scored(sample: Mapping[str, Any]) -> tuple[Outcome, tuple[str, ...]]:
    """Return the outcome that all scores agree on. Partial, NaN and structured scores leave it undetermined."""
    scores = mapping(sample.get("scores"))
    if not scores and isinstance(sample.get("score"), dict):  # logs of 2024
        scores = {"score": sample["score"]}
    labels = []
    verdicts: set[Outcome] = set()
    for name, score in scores.items():
        value = mapping(score).get("value") if isinstance(score, dict) else score
        if isinstance(value, str | int | float):
            labels.append(f"inspect:score:{name}={value}")
        verdicts.add(_verdict(value))
    if len(verdicts) == 1:
        return verdicts.pop(), tuple(labels)
    return "undetermined", tuple(labels)


def _verdict(value: Any) -> Outcome:
    """Read one score as inspect's own `value_to_float` does, without rounding what lies between."""
    if value in ("C", "I", "N"):
        return "passed" if value == "C" else "failed"
    if isinstance(value, bool | int | float) and value in (0, 1):
        return "passed" if value == 1 else "failed"
    return "undetermined"


def _error_type(error: Mapping[str, Any], message: str | None) -> str | None:
    """Return the exception's name: inspect keeps none, so it is read off the traceback, else off a `repr`."""
    chain = exception_chain(filled(error.get("traceback")))
    if chain:
        return bare(chain[0][0])
    matched = _REPR.match(message or "")
    return matched[1] if matched is not None else None


def _ref(log: InspectLog, entry: SampleEntry) -> TrialRef:
    termination: Termination | None = None
    outcome: Outcome = "undetermined"
    error_type, why_not, refusal = None, None, None
    if entry.is_lost:
        termination = "cut-off" if log.was_cut_off else None
        if log.is_truncated:
            refusal = "no-record"
            why_not = "the file itself is cut off, and what is left of it holds no record of this sample"
        elif not log.was_cut_off:
            made = whole(mapping(log.header.get("results")).get("completed_samples")) or 0
            refusal = "no-record" if made or log.status == "success" else "never-ran"
            why_not = f"the run ended with status {log.status} and its log holds no record of this sample"
            why_not += f", though it counts {made} completed ones" if made else ": it never ran"
    elif entry.summary is None:
        refusal, why_not = "corrupt", "its record in the log is damaged"
    else:
        ending = _ending(entry.summary)
        termination, outcome, error_type = ending.termination, ending.outcome, ending.error_type
        refusal, why_not = _refusal(log, ending)
    return TrialRef(
        key=entry.key,
        task_id=_task_id(log, entry),
        attempt=entry.epoch,
        termination=termination,
        outcome=outcome,
        error_type=error_type,
        failed=refusal is None,
        why_not=why_not,
        refusal=refusal,
        sample=str(entry.id),
    )


def _refusal(log: InspectLog, ending: _Ending) -> tuple[str | None, str | None]:
    """Return (slug, words) of why this sample is no failed trial of its own, or two Nones."""
    if ending.was_cancelled and log.status == "error":
        return (
            "cancelled-sibling",
            "it was cancelled because another sample failed the run; it did not fail itself",
        )
    if ending.outcome == "passed":
        beside = {"error": ", although an error was raised", "limit": ", although it hit a limit"}
        return "passed", "it was scored as passed" + beside.get(ending.termination, "")
    if ending.outcome == "undetermined" and ending.termination == "finished":
        return "no-sign-of-failure", "it finished, and no score, error or limit says that it failed"
    return None, None


def _trial(log: InspectLog, entry: SampleEntry) -> Trial:
    sample = log.sample(entry)
    if not sample:
        raise refused("corrupt", log.path, f"the record of sample {entry.id} is empty", "Copy the log again.")
    conversation = SampleConversation(sample)
    ending = _ending(sample)
    error = _error(sample, ending, conversation)
    uuid = filled(sample.get("uuid"))
    due = (
        ending.termination in ("error", "cancelled")
        and reply_was_due(conversation.lines)
        and (conversation.last_call_error is not None or ending.termination == "cancelled")
    )
    output = mapping(sample.get("output"))
    return Trial(
        **_identity(log, entry),
        event_id=uuid or digest_of([log.eval.get("run_id"), entry.id, entry.epoch, sample]),
        event_id_from="recorded" if uuid else "digest",
        started_at=moment(sample.get("started_at")),
        ended_at=moment(sample.get("completed_at")),
        task_text=_task_text(sample, conversation),
        steps=tuple(conversation.lines),
        failing_step=failing_step(conversation.lines, next_reply_failed=due),
        termination=ending.termination,
        outcome=ending.outcome,
        outcome_from="log" if ending.outcome != "undetermined" else None,
        error=error,
        retried=tuple(map(_retried, sequence(sample.get("error_retries")))),
        labels=(*_run_labels(log), *ending.labels),
        final_text=text(output.get("completion")) if ending.termination == "finished" else None,
        model_requests=conversation.requests,
        missing=(*log.notes, *conversation.missing),
    )


def _lost_trial(log: InspectLog, entry: SampleEntry) -> Trial:
    run_id = filled(log.eval.get("run_id"))
    return Trial(
        **_identity(log, entry),
        event_id=digest_of([run_id, log.eval.get("eval_id"), entry.id, entry.epoch]),
        event_id_from="digest",
        termination="cut-off" if log.was_cut_off else None,
        labels=_run_labels(log),
        missing=(
            *log.notes,
            f"the record of sample {entry.id}, epoch {entry.epoch}: "
            + (
                "the file itself is cut off, and it may have stood in what is lost"
                if log.is_truncated
                else "the log was never closed, and what had not been written to it by then is lost; whether the"
                " sample had started is not in it"
            ),
            "transcript, task text, error and score: they stand in that record"
            " (`inspect log recover` finds what is left on the machine where it ran)",
        ),
    )


def _identity(log: InspectLog, entry: SampleEntry) -> dict[str, Any]:
    """Return what the log's head says, the same for a sample with a record and without one."""
    version = filled(mapping(log.eval.get("packages")).get("inspect_ai"))
    return {
        "format": InspectAi.name,
        "harness": f"inspect_ai {version}" if version else "inspect_ai",
        "run_id": filled(log.eval.get("run_id")),
        "task_id": _task_id(log, entry),
        "attempt": entry.epoch,
        "revision": _revision(mapping(log.eval.get("revision"))),
        "model": filled(log.eval.get("model")),
        "conditions": _conditions(log.eval),
        "can_show": _CAN_SHOW,
        "source_digests": digests_of(log.path),
    }


def _task_id(log: InspectLog, entry: SampleEntry) -> str:
    task = filled(log.eval.get("task"))
    return f"{task}/{entry.id}" if task else str(entry.id)


def _revision(revision: Mapping[str, Any]) -> str | None:
    commit = filled(revision.get("commit"))
    if commit is None:
        return None
    return f"{commit} dirty" if revision.get("dirty") is True else commit


def _run_labels(log: InspectLog) -> tuple[str, ...]:
    return (f"inspect:status:{log.status}",) if log.status else ()


def _conditions(head: Mapping[str, Any]) -> dict[str, Any]:
    config = mapping(head.get("config"))
    kept = {
        "generate": dict(mapping(head.get("model_generate_config"))),
        "run": {
            key: value
            for key, value in config.items()
            if key.endswith(("_limit", "_on_error", "_on_fail", "_tasks", "_samples", "_connections"))
            or key in ("epochs", "max_messages")  # the latter is a message limit of 2024
        },
        "run_created": filled(head.get("created")),
        "model_base_url": filled(head.get("model_base_url")),
        "packages": dict(mapping(head.get("packages"))),
    }
    found: dict[str, Any] = present(kept)
    return found


def _task_text(sample: Mapping[str, Any], conversation: SampleConversation) -> str | None:
    given = sample.get("input")
    if isinstance(given, str):
        return conversation.resolved(given)
    said = [
        words
        for message in map(mapping, sequence(given))
        if message.get("role") == "user" and (words := conversation.content(message.get("content")))
    ]
    return "\n\n".join(said) or None


def _error(sample: Mapping[str, Any], ending: _Ending, conversation: SampleConversation) -> TrialError | None:
    error = mapping(sample.get("error"))
    message = text(error.get("message"))
    if message is None:
        return None
    traceback = filled(error.get("traceback"))
    return TrialError(
        type=ending.error_type,
        message=message,
        traceback=traceback,
        raised_by=_raised_by(ending, conversation),
        chain=tuple(ErrorLink(type=kind, message=words) for kind, words in exception_chain(traceback)),
    )


def _retried(failure: Any) -> TrialError:
    """Return what an attempt raised that inspect made again (`EvalRetryError`): its conversation is not kept."""
    error = mapping(failure)
    message, traceback = text(error.get("message")), filled(error.get("traceback"))
    return TrialError(
        type=_error_type(error, message),
        message=message,
        chain=tuple(ErrorLink(type=kind, message=words) for kind, words in exception_chain(traceback)),
    )


def _raised_by(ending: _Ending, conversation: SampleConversation) -> RaisedBy:
    """Say `supplier` where the last model call itself failed; whose fault that was is not said by it."""
    failure = conversation.last_call_error
    if ending.was_cancelled or failure is None or failure in CANCEL_WORDS:
        return "unknown"
    return "supplier"
