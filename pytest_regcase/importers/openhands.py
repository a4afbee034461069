"""OpenHands evaluation output (`output.jsonl`, V0 and V1), and that of its issue resolver: one trial a line.

Field names after the project's own `evaluation/utils/shared.py` (EvalOutput) and `resolver/resolver_output.py`.
Must import no other importer.

What surprises: a run that ended by an error keeps its `git_patch`, which the harness takes from the work tree
itself, so it is partial work; `error` null does not mean passed, since scoring is a later file; lines have no
attempt, and a rerun appends one with the same instance id.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.openhands_history import History, error_of, flat
from pytest_regcase.importers.openhands_sdk_events import SdkConversation
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import (
    TOO_LONG,
    NotJson,
    digests_of,
    filled,
    mapping,
    parse_json,
    present,
    read_lines,
    refused,
    sequence,
    text,
    whole,
)
from pytest_regcase.importers.steps import failing_step, reply_was_due
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import Submission, Trial, TrialError, TrialRef
from pytest_regcase.records.words import Expectation, Outcome, Termination

_CAN_SHOW: Final[tuple[Expectation, ...]] = (
    "log_failure",
    "no_fabricated_output",
    "no_partial_submission",
    "keep_partial_patch",
    "mark_failure",
)
_NUMBERED: Final = re.compile(r"(?:.*#)?line-(\d{1,9})", re.DOTALL)
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]+")
"""What stands in a JSON line as it is in the id."""
_LLM_SETTINGS: Final = re.compile(
    r"retr|timeout|temperature|top_p|seed|tokens|tool_calling|effort|base_url|version"
)


class OpenHands:
    """Importer of OpenHands evaluation and resolver output."""

    name = "openhands"

    def handles(self, peek: Peek) -> bool:
        """Say whether it is an object, or lines of them, with an instance or an issue and what was made of it."""
        if peek.kind != "file" or peek.shape.kind != "object":
            return False
        keys = peek.shape.keys
        if {"instance_id", "test_result"} <= keys:
            # A long patch stands before the keys that tell it from other results.
            return not peek.whole_shape.keys.isdisjoint(("instruction", "history"))
        return {"issue", "instruction", "git_patch"} <= keys

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield a reference to each line; one that is cut off or damaged is listed as such."""
        for key, record, why in _records(source):
            if record is None:
                yield TrialRef(key=key, why_not=why, refusal="corrupt")
                continue
            said = _Record(record)
            why_not, refusal = None, None
            if said.outcome == "passed":
                why_not, refusal = "the harness recorded that it succeeded", "passed"
            elif said.outcome == "undetermined" and said.error is None:
                why_not = "no error is recorded, and whether it passed stands in a later report of the benchmark"
                refusal = "no-sign-of-failure"
            yield TrialRef(
                key=key,
                task_id=_task_id(record),
                attempt=_attempt(record),
                termination=said.termination,
                outcome=said.outcome,
                error_type=said.error.type if said.error is not None else None,
                failed=refusal is None,
                why_not=why_not,
                refusal=refusal,
                sample=_task_id(record),
            )

    def read(self, source: Path, ref: TrialRef) -> Trial:
        """Read one line."""
        for key, record, why in _records(source, ref.key):
            if key == ref.key:
                if record is None:
                    raise refused("corrupt", source, why, "Copy the file again from where it was written.")
                return _trial(record, source, why)
        raise refused("no-such-trial", source, f"no line in it is {ref.key}", "List it again.")


def _records(source: Path, wanted: str | None = None) -> Iterator[tuple[str, Mapping[str, Any] | None, str]]:
    """Yield (key, record, note) of each line; without a record, the note says why.

    A line that cannot be the one that is `wanted` is not parsed: they are long, and each trial is read by itself.
    """
    seen: set[str] = set()
    numbered = _NUMBERED.fullmatch(wanted) if wanted is not None else None
    needle = wanted.encode() if wanted is not None and _PLAIN.fullmatch(wanted) else b""
    for number, content, complete in read_lines(source):
        if numbered is not None and number != int(numbered[1]):
            continue
        if content is None:
            yield f"line-{number}", None, f"line {number} is lost: {TOO_LONG}"
            continue
        if (numbered is None and needle not in content) or not content.strip():
            continue
        try:
            parsed = parse_json(content)
        except NotJson as error:
            why = f"line {number} is damaged: {error}" if complete else f"line {number}, the last one, is cut off"
            yield f"line-{number}", None, why
            continue
        record = mapping(parsed.value)
        if not record:
            yield f"line-{number}", None, f"line {number} is no object"
            continue
        key = _task_id(record) or f"line-{number}"
        if key in seen or (numbered is not None and wanted != key):
            key = f"{key}#line-{number}"
        seen.add(key)
        yield key, record, "; ".join(parsed.notes)


class _Record:
    """What a line says: its own fields first, then the events of its history."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self.conversation = _conversation(record.get("history"))
        self.error: TrialError | None = self.conversation.error
        self.termination: Termination | None = self.conversation.termination
        if self.termination == "cut-off":
            self.termination = None  # the line was written, so the harness saw it end
        message = filled(record.get("error"))
        if message is not None:
            self.error, self.termination = error_of(message)
        self.outcome, self.labels = _outcome(record)


def _conversation(history: Any) -> History | SdkConversation:
    events = list(flat(history, "history"))
    is_v1 = any("kind" in event and "source" in event for _, event in events[:1])
    return SdkConversation(events) if is_v1 else History(events)


def _outcome(record: Mapping[str, Any]) -> tuple[Outcome, list[str]]:
    """Return the verdict that the harness wrote into the line, where it did, and the labels of it."""
    if isinstance(record.get("success"), bool) and "issue" in record:
        success = record["success"] is True
        return ("passed" if success else "failed"), [f"openhands:success:{'true' if success else 'false'}"]
    report = mapping(mapping(record.get("test_result")).get("report"))
    labels = [
        f"openhands:report:{name}" for name, value in report.items() if value is True and isinstance(name, str)
    ]
    if not isinstance(report.get("resolved"), bool):
        return "undetermined", labels
    if report["resolved"]:
        return "passed", labels
    ungraded = report.get("error_eval") is True or report.get("test_timeout") is True
    return ("undetermined" if ungraded else "failed"), labels


def _task_id(record: Mapping[str, Any]) -> str | None:
    instance = record.get("instance_id")
    if isinstance(instance, int) and not isinstance(instance, bool):
        return str(instance)
    issue = mapping(record.get("issue"))
    number = whole(issue.get("number"))
    parts = [filled(issue.get("owner")), filled(issue.get("repo")), str(number) if number is not None else None]
    return filled(instance) or "/".join(part for part in parts if part) or None


def _attempt(record: Mapping[str, Any]) -> int | None:
    return whole(record.get("attempt"))  # V1 alone


def _trial(record: Mapping[str, Any], source: Path, note: str) -> Trial:
    said = _Record(record)
    conversation, lines = said.conversation, said.conversation.chat.lines
    metadata, metrics = mapping(record.get("metadata")), mapping(record.get("metrics"))
    llm = mapping(metadata.get("llm_config") or metadata.get("llm"))
    missing = [note] if note else []
    if not lines:
        missing.append("conversation: the line holds no history")
    patch = text(record.get("git_patch", mapping(record.get("test_result")).get("git_patch")))
    return Trial(
        format=OpenHands.name,
        harness="OpenHands",
        task_id=_task_id(record),
        attempt=_attempt(record),
        event_id=digest_of(record),
        event_id_from="digest",
        revision=filled(metadata.get("git_commit")) or filled(record.get("base_commit")),
        model=filled(llm.get("model")) or conversation.model,
        task_text=filled(record.get("instruction")) or conversation.task_text,
        steps=tuple(lines),
        failing_step=failing_step(lines, next_reply_failed=said.termination == "error" and reply_was_due(lines)),
        termination=said.termination,
        outcome=said.outcome,
        outcome_from="log" if said.outcome != "undetermined" else None,
        error=said.error,
        labels=tuple(said.labels),
        conditions=_conditions(metadata, llm),
        submission=Submission(patch=patch, by="harness") if patch is not None and said.error is None else None,
        partial_patch=patch if patch and said.error is not None else None,
        final_text=conversation.final_text if conversation.finished else None,
        model_requests=next(
            (len(found) for name in ("response_latencies", "costs") if (found := sequence(metrics.get(name)))),
            None,
        ),
        can_show=_CAN_SHOW,
        source_digests=digests_of(source),
        missing=(*missing, *conversation.missing),
    )


def _conditions(metadata: Mapping[str, Any], llm: Mapping[str, Any]) -> dict[str, Any]:
    kept = {
        "agent_class": metadata.get("agent_class"),
        "max_iterations": metadata.get("max_iterations"),
        "dataset": metadata.get("dataset"),
        "start_time": metadata.get("start_time"),
        "llm": {name: value for name, value in llm.items() if _LLM_SETTINGS.search(name)},
    }
    found: dict[str, Any] = present(kept)
    return found
