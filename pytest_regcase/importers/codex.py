"""Codex rollouts (`rollout-<time>-<id>.jsonl`): one trial a file.

Record names after the public samples and third-party readers: nobody specifies them. Must import no other
importer.

What surprises: a reply is several items in a row; it has no id, so all items of the model's up to the next result
or message are one reply; `error` may be followed by `task_complete`; old files have the items without a wrapper;
an exit code is text in a tool's output; reasoning comes encrypted and is dropped.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pytest_regcase.importers.chat_messages import ChatLines, content_of
from pytest_regcase.importers.json_records import JsonRecords
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import (
    NotJson,
    digests_of,
    filled,
    mapping,
    moment,
    parse_json,
    present,
    text,
)
from pytest_regcase.importers.steps import failing_step, reply_was_due
from pytest_regcase.records.plurals import how_many
from pytest_regcase.records.trial import Trial, TrialError, TrialRef
from pytest_regcase.records.words import Expectation, RaisedBy, Termination

_LOOKED_AT_LINES: Final = 20
_WRAPPED: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_OLD_HEADER: Final = frozenset({"id", "timestamp", "instructions"})
_SPOKEN: Final = frozenset(
    {
        "message",
        "reasoning",  # counted only: a summary at best, the rest is encrypted
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
    }
)
_NO_TASK: Final = ("<environment_context>", "<user_instructions>", "# AGENTS.md", "<INSTRUCTIONS>")
"""How the user messages begin that Codex writes itself."""
_RAISED_BY: Final[Mapping[str, RaisedBy]] = {
    **dict.fromkeys(
        (
            "bad_request",
            "context_window_exceeded",
            "http_connection_failed",
            "internal_server_error",
            "response_stream_connection_failed",
            "response_stream_disconnected",
            "response_too_many_failed_attempts",
            "server_overloaded",
            "unauthorized",
            "usage_limit_exceeded",
        ),
        "supplier",
    ),
    "sandbox_error": "environment",
}
"""By what Codex calls the error itself (`codex_error_info`)."""
_SHOWS: Final[tuple[Expectation, ...]] = ("log_failure", "no_fabricated_output", "mark_failure")
"""Not the retries: most are not written. No submission and no patch: a session changes files where it runs."""


class Codex:
    """Importer of Codex rollouts."""

    name = "codex"

    def handles(self, peek: Peek) -> bool:
        """Say whether one of its first lines is a wrapped record, or the first one an old file's header."""
        if peek.kind != "file" or not peek.head.lstrip().startswith(b"{"):
            return False
        if peek.shape.keys >= _OLD_HEADER and not peek.shape.keys & {"type", "role", "messages"}:
            return True
        return any(map(_is_wrapped, islice(peek.head.split(b"\n"), _LOOKED_AT_LINES)))

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield the one trial of the file."""
        rollout = _Rollout(source)
        failed = rollout.error is not None or rollout.termination not in (None, "finished")
        yield TrialRef(
            key="session",
            termination=rollout.termination,
            error_type=rollout.error.type if rollout.error is not None else None,
            failed=failed,
            why_not=None
            if failed
            else "nothing in the rollout says that it failed, and a rollout holds no pass or fail",
            refusal=None if failed else "no-sign-of-failure",
            sample=filled(rollout.meta.get("id")),
        )

    def read(self, source: Path, ref: TrialRef) -> Trial:  # noqa: ARG002 - one trial a file
        """Read the rollout. Outcome is always undetermined: the format has none."""
        rollout = _Rollout(source)
        digests = digests_of(source)
        lines = rollout.chat.lines
        failed = rollout.error is not None or rollout.termination in ("error", "cut-off", "cancelled")
        session_id = filled(rollout.meta.get("id"))
        version = filled(rollout.meta.get("cli_version"))
        return Trial(
            format=Codex.name,
            harness=f"codex {version}" if version else "codex",
            run_id=session_id,
            event_id=session_id or next(iter(digests.values())),
            event_id_from="recorded" if session_id else "digest",
            model=rollout.model,
            started_at=moment(rollout.meta.get("timestamp")),
            ended_at=rollout.last_moment,
            task_text=rollout.task_text,
            steps=tuple(lines),
            failing_step=failing_step(lines, next_reply_failed=failed and reply_was_due(lines)),
            termination=rollout.termination,
            error=rollout.error,
            conditions=rollout.conditions,
            final_text=rollout.final_text,
            can_show=_SHOWS,
            source_digests=digests,
            missing=tuple(rollout.missing),
        )


class _Rollout:
    """What a file holds, read once."""

    def __init__(self, source: Path) -> None:
        records = JsonRecords(source, lines_only=True)
        self.meta: Mapping[str, Any] = {}
        self.chat = ChatLines()
        self.error: TrialError | None = None
        """What a turn ended on, or the last failed call, while nothing answered after it."""
        self.model: str | None = None
        self.last_moment: datetime | None = None
        self.final_text: str | None = None
        self._policy: Mapping[str, Any] = {}
        self._prompt: str | None = None
        self._turn: Termination | None = None
        """How the last turn that said so ended."""
        self._turns_told = False
        self._open = False
        """A turn began, or a message came, and no end was told since."""
        self._compacted = self._unknown = 0
        for origin, record in records:
            self._take(record, origin)
        self.missing = records.missing
        self.termination = self._termination()
        self.task_text = self._task_text()
        self.missing.extend(self._left_out())

    @property
    def conditions(self) -> dict[str, Any]:
        """Return the policies that it ran under, and the commit that it worked on."""
        git = mapping(self.meta.get("git"))
        kept = {
            "model_provider": filled(self.meta.get("model_provider")),
            "approval_policy": self._policy.get("approval_policy"),
            "sandbox_policy": mapping(self._policy.get("sandbox_policy")).get("mode")
            or mapping(self._policy.get("sandbox_policy")).get("type"),
            "effort": self._policy.get("effort"),
            "work_tree_commit": filled(git.get("commit_hash")),
        }
        found: dict[str, Any] = present({key: filled(value) for key, value in kept.items()})
        return found

    def _take(self, record: Mapping[str, Any], origin: str) -> None:
        kind, payload = record.get("type"), mapping(record.get("payload"))
        at = moment(record.get("timestamp"))
        self.last_moment = max(filter(None, (self.last_moment, at)), default=None)
        if kind == "session_meta":
            self.meta = self.meta or payload
        elif kind == "turn_context":
            self._policy = payload
            self.model = filled(payload.get("model")) or self.model
        elif kind == "response_item":
            self._item(payload, origin, at)
        elif kind == "event_msg":
            self._event(payload, origin, at)
        elif kind == "compacted":
            self._compacted += 1
            self.chat.end_reply()
        elif "payload" not in record and kind is None and record.keys() | {"instructions"} >= _OLD_HEADER:
            self.meta = self.meta or record
        elif "payload" not in record and "record_type" not in record:
            self._item(record, origin, at)

    def _item(self, item: Mapping[str, Any], origin: str, at: datetime | None) -> None:
        kind = filled(item.get("type")) or ("message" if "role" in item else "")
        if kind == "local_shell_call":
            action = mapping(item.get("action"))
            arguments = json.dumps(present(dict(action)), ensure_ascii=False)
            item = {
                "type": "function_call",
                "call_id": item.get("call_id"),
                "name": "local_shell",
                "arguments": arguments,
            }
        elif kind not in _SPOKEN:
            self._unknown += kind not in ("token_count", "ghost_snapshot")
            return
        facts: dict[str, Any] = {"at": at} if at is not None else {}
        if kind in ("function_call", "local_shell_call", "custom_tool_call") or item.get("role") == "assistant":
            facts |= {"model": self.model} if self.model is not None else {}
            self.error = None
        elif item.get("role") == "user":
            words = content_of(item.get("content")).text or ""
            self._open |= not words.startswith((*_NO_TASK, "<turn_aborted>"))
        self.chat.take({**item, "type": item.get("type", kind)}, origin, **facts)

    def _event(self, event: Mapping[str, Any], origin: str, at: datetime | None) -> None:
        kind = event.get("type")
        if kind in ("task_started", "turn_started"):
            self._turns_told, self._open, self._turn = True, True, None
        elif kind == "user_message":
            self._prompt = self._prompt or filled(event.get("message"))
        elif kind in ("error", "stream_error"):
            self._failed(event, origin, at)
            if kind == "error":
                self._turn = "error"
        elif kind == "turn_aborted":
            # A limit of tokens or money aborts a turn as well as a person does.
            self._turns_told, self._open = True, False
            self._turn = "limit" if event.get("reason") == "budget_limited" else "cancelled"
        elif kind in ("task_complete", "turn_complete"):
            self._turns_told, self._open = True, False
            if isinstance(event.get("error"), dict):
                self._failed(mapping(event.get("error")), origin, at)
                self._turn = "error"
            elif self._turn != "error" or self.error is None:
                self._turn = "finished"
                self.final_text = filled(event.get("last_agent_message"))

    def _failed(self, event: Mapping[str, Any], origin: str, at: datetime | None) -> None:
        info = event.get("codex_error_info")
        kind = filled(info) or next(iter(mapping(info)), None)
        words = filled(event.get("message"))
        if self.error is not None and self.error.message == words:
            return  # told twice: as an event, and by the end of the turn
        by = "supplier" if event.get("type") == "stream_error" else _RAISED_BY.get(kind or "", "unknown")
        self.error = TrialError(type=kind, message=words, raised_by=by)
        self.chat.failed_call(origin, words or kind or "error", at=at)

    def _termination(self) -> Termination | None:
        if self._turns_told and not self._open:
            return self._turn
        if self._turn == "error" and self.error is not None:
            return "error"
        if self._turns_told or reply_was_due(self.chat.lines):
            return "cut-off"
        if self.chat.lines and self.chat.lines[-1].tool_calls:
            return "cut-off"
        self.missing.append("how it ended: the file tells of no turn, and the last reply asks for nothing more")
        return None

    def _task_text(self) -> str | None:
        if self._prompt is not None:
            return self._prompt
        asked = [line.text for line in self.chat.lines if line.role == "user" and line.step == 0 and line.text]
        return next((words for words in asked if not words.startswith(_NO_TASK)), None)

    def _left_out(self) -> Iterator[str]:
        yield from self.chat.missing
        if self._compacted:
            yield how_many(self._compacted, "compaction") + ": the model went on from a summary"
        if self._unknown:
            yield how_many(self._unknown, "item") + " left out: no message, call or result"


def _is_wrapped(line: bytes) -> bool:
    try:
        record = mapping(parse_json(line).value) if b'"payload"' in line else {}
    except NotJson:
        return False
    return text(record.get("type")) in _WRAPPED and isinstance(record.get("payload"), dict)
