"""Our own format, `trial.jsonl`: written line by line, so that a killed agent leaves all but half a line.

Knows the lines that INTERFACES "Files" names. Must import no other importer.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, cast, get_args

from pydantic import ValidationError

from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import (
    TOO_LONG,
    NotJson,
    digests_of,
    filled,
    mapping,
    moment,
    parse_json,
    present,
    printable,
    read_lines,
    refused,
    sequence,
    text,
    whole,
)
from pytest_regcase.importers.steps import failing_step, replies_in, reply_was_due
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import Submission, TranscriptLine, Trial, TrialError, TrialRef
from pytest_regcase.records.words import EXPECTATIONS, Outcome, Termination

_FILE: Final = "trial.jsonl"
_OWN_OUTPUT: Final = "out/"
"""Where an agent that our recorder runs puts its own log, which may be of any format: ours holds it all."""
_KNOWN_SCHEMA: Final = 1
_SHOWN_BAD_LINES: Final = 5


class TrialJsonl:
    """Importer of `trial.jsonl`: one trial a file."""

    name = "trial-jsonl"

    def handles(self, peek: Peek) -> bool:
        """Say whether the first line is an object with ``kind = "trial"`` and a schema.

        A folder of our recorder's is one trial, whatever else its agent wrote into it.
        """
        if peek.kind == "folder":
            inner = peek.member(_FILE)
            has_own_output = any(each.startswith(_OWN_OUTPUT) for each in peek.members)
            return inner is not None and has_own_output and self.handles(inner)
        try:
            first = mapping(parse_json(peek.first_line).value)
        except NotJson:
            return False
        return first.get("kind") == "trial" and "schema" in first

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield the one trial of the file or folder."""
        trial = _read(_file(source))
        failed = (
            trial.outcome == "failed" or trial.error is not None or trial.termination not in (None, "finished")
        )
        why_not, refusal = None, None
        if trial.outcome == "passed":
            why_not, refusal = "its end line says that it passed", "passed"
        elif trial.termination == "never-started":
            why_not, refusal = "its end line says that it never started", "never-ran"
        elif not failed:
            why_not, refusal = "it finished, and nothing in it says that it failed", "no-sign-of-failure"
        yield TrialRef(
            key="trial",
            task_id=trial.task_id,
            attempt=trial.attempt,
            termination=trial.termination,
            outcome=trial.outcome,
            error_type=trial.error.type if trial.error is not None else None,
            failed=failed,
            why_not=why_not,
            refusal=refusal,
            sample=trial.task_id,
        )

    def read(self, source: Path, ref: TrialRef) -> Trial:  # noqa: ARG002 - one trial a file
        """Read the trial; a line that cannot be used is left out and said in `missing`."""
        return _read(_file(source))


def _file(source: Path) -> Path:
    return source / _FILE if source.is_dir() else source


def _read(source: Path) -> Trial:
    lines = _Lines()
    identity: Mapping[str, Any] | None = None
    for number, content, complete in read_lines(source):
        if content is None:
            lines.bad(number, TOO_LONG)
            continue
        if not content.strip():
            continue
        try:
            parsed = parse_json(content)
        except NotJson as error:
            if complete or identity is None:
                lines.bad(number, str(error))
            else:
                lines.missing.append(f"line {number}, the last one, is cut off: left out")
            continue
        lines.noted(parsed.notes)
        record = mapping(parsed.value)
        if identity is None:
            identity = record
            if record.get("kind") != "trial" or record.get("schema") != _KNOWN_SCHEMA:
                raise refused(
                    "unknown-version",
                    source,
                    f"its first line has schema {record.get('schema')!r}, and we read {_KNOWN_SCHEMA}",
                    "Upgrade pytest-regcase, or have the file written with schema 1.",
                )
        else:
            lines.take(number, record)
    if identity is None:
        raise refused("corrupt", source, "its first line is cut off", "Copy the file again.")
    return lines.trial(identity, source)


class _Lines:
    """What the lines after the first one say, gathered in file order."""

    def __init__(self) -> None:
        self.missing: list[str] = []
        self.steps: list[TranscriptLine] = []
        self.labels: list[str] = []
        self.calls = 0
        self.error: TrialError | None = None
        self.submission: Submission | None = None
        self.partial_patch: str | None = None
        self.failed_step: int | None = None
        self.end: Mapping[str, Any] | None = None
        self._bad = 0
        self._replied = 0

    def noted(self, notes: tuple[str, ...]) -> None:
        self.missing.extend(note for note in notes if note not in self.missing)

    def bad(self, number: int, why: str) -> None:
        self._bad += 1
        if self._bad <= _SHOWN_BAD_LINES:
            self.missing.append(f"line {number} is left out: {why}")

    def take(self, number: int, record: Mapping[str, Any]) -> None:
        kind = record.get("kind")
        rest = {key: value for key, value in record.items() if key != "kind" and value is not None}
        try:
            if kind == "step":
                self._step(number, rest)
            elif kind == "model_call":
                self._model_call(rest)
            elif kind == "error":
                self.error = TrialError.model_validate_json(json.dumps(rest))
            elif kind == "submission":
                self.submission = Submission.model_validate_json(json.dumps(rest))
            elif kind == "partial_patch":
                self.partial_patch = text(rest.get("patch", rest.get("partial_patch")))
            elif kind == "failed_step":
                self.failed_step = whole(rest.get("step"))
                self._label("failed-step", rest.get("step_id"), rest.get("step_role"), rest.get("cause"))
            elif kind == "cleanup":
                if rest.get("status") == "failed":
                    self._label("cleanup-failed", rest.get("what"))
            elif kind == "verification":
                self._label("verification", rest.get("name"), "passed" if rest.get("passed") is True else "failed")
            elif kind == "patch_capture":
                if rest.get("status") == "failed":
                    why = (text(rest.get("reason")) or "no reason is recorded").partition("\n")[0]
                    self.missing.append(printable(f"the agent's patch was not captured: {why}"))
            elif kind == "repaired":
                self.missing.append(f"half a line before line {number} was dropped, and the trial gone on with")
            elif kind == "end":
                self.end = rest
                self._label("limit", rest.get("limit"))
            elif kind != "task_step":
                self.bad(number, "its kind is none of ours")
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(each) for each in first["loc"])
            self.bad(number, f"{place}: {first['msg']}")

    def _label(self, what: str, *words: Any) -> None:
        """Add a clue from words that stand in the file; `unknown` and what is no text are none."""
        said = [each for each in words if isinstance(each, str) and each not in ("", "unknown")]
        if said:
            self.labels.append(":".join((what, *said)))

    def _step(self, number: int, record: dict[str, Any]) -> None:
        line = TranscriptLine.model_validate_json(json.dumps(self._timed(number, record)))
        if whole(line.step) is None:
            self.bad(number, "step: a number that large is none")
        elif line.is_reply and line.step <= self._replied:
            # A transcript has each step once, in order: which of two was the model's cannot be told from here.
            self.bad(number, f"the reply of step {line.step} comes after that of step {self._replied}")
        else:
            self._replied = line.step if line.is_reply else self._replied
            self.steps.append(line)

    def _timed(self, number: int, record: dict[str, Any]) -> dict[str, Any]:
        """Leave a time out that names no point in time."""
        if "at" not in record:
            return record
        at = moment(record["at"])
        if at is None:
            self.missing.append(f"line {number}: its time has no offset, or is no time, and is left out")
            return {key: value for key, value in record.items() if key != "at"}
        return {**record, "at": at.isoformat()}

    def _model_call(self, record: Mapping[str, Any]) -> None:
        self.calls += 1
        failure = filled(record.get("error"))
        if failure is None:
            return
        step = whole(record.get("step"))
        if step is None or step < 0:
            step = replies_in(self.steps) + 1
        # Step 0 is a call outside the conversation.
        self.steps.append(TranscriptLine(step=step, role="assistant", error=failure, at=moment(record.get("at"))))

    def trial(self, identity: Mapping[str, Any], source: Path) -> Trial:
        if self._bad > _SHOWN_BAD_LINES:
            self.missing.append(f"{self._bad - _SHOWN_BAD_LINES} further lines are left out")
        end = self.end
        termination: Termination | None = "cut-off"
        if end is None:
            self.missing.append("no end line: the trial was cut off, and its outcome is not recorded")
        else:
            termination = cast(Termination | None, _one_of(end.get("termination"), Termination))
        outcome = cast(Outcome, _one_of((end or {}).get("outcome"), Outcome) or "undetermined")
        recorded_id = filled(identity.get("event_id"))
        due = termination in ("error", "cut-off", "cancelled") and reply_was_due(self.steps)
        step = self.failed_step if self.failed_step is not None and self.failed_step >= 1 else None
        return Trial(
            format=TrialJsonl.name,
            harness=filled(identity.get("harness")),
            run_id=filled(identity.get("run_id")),
            task_id=filled(identity.get("task_id")),
            attempt=whole(identity.get("attempt")),
            event_id=recorded_id or digest_of([dict(identity), [line.to_sparse() for line in self.steps]]),
            event_id_from="recorded" if recorded_id else "digest",
            revision=filled(identity.get("revision")),
            model=filled(identity.get("model")),
            started_at=moment(identity.get("started_at")),
            ended_at=_ended_at(end),
            task_text=text(identity.get("task_text")),
            steps=tuple(self.steps),
            failing_step=step or failing_step(self.steps, next_reply_failed=due),
            termination=termination,
            outcome=outcome,
            outcome_from="log" if outcome != "undetermined" else None,
            error=self.error,
            labels=(*(each for each in sequence(identity.get("labels")) if isinstance(each, str)), *self.labels),
            conditions=present(dict(mapping(identity.get("conditions")))),
            submission=self.submission,
            partial_patch=self.partial_patch,
            final_text=text((end or {}).get("final_text")),
            model_requests=self.calls or None,
            can_show=EXPECTATIONS,
            source_digests=digests_of(source),
            missing=tuple(self.missing),
        )


def _ended_at(end: Mapping[str, Any] | None) -> datetime | None:
    return moment((end or {}).get("ended_at") or (end or {}).get("at"))


def _one_of(value: Any, words: Any) -> str | None:
    """Return `value` if it is one of our closed words, else None."""
    return value if isinstance(value, str) and value in get_args(words) else None
