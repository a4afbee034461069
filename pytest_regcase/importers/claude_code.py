"""Claude Code sessions (`<session>.jsonl`): one trial a file.

Field names after the public samples and agent-schemas' JSON Schemas for 2.0.76 to 2.1.144: nobody specifies them.
Must import no other importer.

What surprises: a failed model call is a `system` record (`api_error`, it is tried again) or an assistant record
that no model wrote (`isApiErrorMessage`, model `<synthetic>`, it was given up); an outcome is never recorded, and
a clean end is no pass; thinking blocks and their signatures are no part of what was said.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from pytest_regcase.importers.chat_messages import ChatLines
from pytest_regcase.importers.claude_code_records import Conversation, SessionRecord, record_of
from pytest_regcase.importers.json_records import JsonRecords
from pytest_regcase.importers.json_shape import shape_of
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import (
    digests_of,
    filled,
    mapping,
    moment,
    present,
    sequence,
    text,
    whole,
)
from pytest_regcase.importers.steps import failing_step, reply_was_due
from pytest_regcase.records.plurals import how_many
from pytest_regcase.records.trial import Trial, TrialError, TrialRef
from pytest_regcase.records.words import Expectation, Termination

_LOOKED_AT_LINES: Final = 50
_MARKS: Final = frozenset({"sessionId", "parentUuid", "isSidechain"})
_BY_NO_MODEL: Final = "<synthetic>"
_THOUGHTS: Final = ("thinking", "redacted_thinking")
_INTERRUPTED: Final = "[Request interrupted by user"
_ASKS_NOTHING: Final = ("<local-command-", "<command-name>", "<bash-", "Caveat: The messages below were generated")
"""How the texts begin that Claude Code puts in a person's mouth: no reply is due to them."""
_ENDINGS: Final[Mapping[str, Termination]] = {
    "end_turn": "finished",
    "stop_sequence": "finished",
    "refusal": "finished",
    "max_tokens": "limit",
    "model_context_window_exceeded": "limit",
}
_SHOWS: Final[tuple[Expectation, ...]] = ("log_failure", "max_retries", "no_fabricated_output", "mark_failure")
"""No submission and no patch: a session changes files where it runs."""


class ClaudeCode:
    """Importer of Claude Code sessions."""

    name = "claude-code"

    def handles(self, peek: Peek) -> bool:
        """Say whether one of its first lines is a record of a session: a node of a tree in a session."""
        if peek.kind != "file":
            return False
        lines = islice(peek.head.split(b"\n"), _LOOKED_AT_LINES)
        return any(b'"parentUuid"' in line and shape_of(line).keys >= _MARKS for line in lines)

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield the one trial of the file. A sub-agent's file is none: it is a side call of its session's."""
        session = _Session(source)
        if not session.conversation.records:
            return
        failed = session.error is not None or session.termination not in (None, "finished")
        why_not, refusal = None, None
        if session.conversation.is_side:
            why_not = "it is the conversation of a sub-agent, a side call of its session and no trial"
            refusal = "side-call"
        elif not failed:
            why_not = "nothing in the session says that it failed, and a session holds no pass or fail"
            refusal = "no-sign-of-failure"
        yield TrialRef(
            key="session",
            termination=session.termination,
            error_type=session.error.type if session.error is not None else None,
            failed=failed,
            why_not=why_not,
            refusal=refusal,
            sample=session.conversation.session,
        )

    def read(self, source: Path, ref: TrialRef) -> Trial:  # noqa: ARG002 - one trial a file
        """Read the session. Outcome is always undetermined: the format has none."""
        session = _Session(source)
        digests = digests_of(source)
        lines = session.chat.lines
        failed = session.error is not None or session.termination in ("error", "cut-off", "cancelled")
        session_id = session.conversation.session
        times = [line.at for line in lines if line.at is not None]
        version = session.version
        return Trial(
            format=ClaudeCode.name,
            harness=f"claude-code {version}" if version else "claude-code",
            run_id=session_id,
            event_id=session_id or next(iter(digests.values())),
            event_id_from="recorded" if session_id else "digest",
            model=next((line.model for line in lines if line.is_reply and line.model), None),
            started_at=min(times, default=None),
            ended_at=max(times, default=None),
            task_text=next((line.text for line in lines if line.role == "user" and line.step == 0), None),
            steps=tuple(lines),
            failing_step=failing_step(lines, next_reply_failed=failed and reply_was_due(lines)),
            termination=session.termination,
            error=session.error,
            can_show=_SHOWS,
            source_digests=digests,
            missing=tuple(session.missing),
        )


class _Session:
    """What a file holds, read once."""

    def __init__(self, source: Path) -> None:
        found = JsonRecords(source, lines_only=True)
        records = [record_of(int(origin.removeprefix("line ")), body) for origin, body in found]
        self.conversation = Conversation(records)
        self.chat = ChatLines()
        self.version = next(
            (said for each in reversed(records) if (said := filled(each.body.get("version")))), None
        )
        self.error: TrialError | None = None
        """The last failed call, while nothing answered after it."""
        self._state: Literal["nothing", "asked", "replied", "retrying", "gave-up", "interrupted"] = "nothing"
        self._compacted = self._by_no_model = self._broken_off = self._unreadable = 0
        self._read_conversation()
        self.missing = found.missing
        self.termination = self._termination()
        self.missing.extend(self._left_out())

    def _read_conversation(self) -> None:
        parts: dict[str | int, list[SessionRecord]] = {}
        for record in self.conversation.records:
            parts.setdefault(record.message_id or record.number, []).append(record)
        for record in self.conversation.records:
            if record.kind == "user":
                self._user(record)
            elif record.kind == "system":
                self._system(record)
            else:
                # A reply stands where its first part does; its results hang below any of its parts.
                self._assistant(parts.pop(record.message_id or record.number, []))

    def _assistant(self, parts: Sequence[SessionRecord]) -> None:
        if not parts:
            return
        first = parts[0]
        content = [each for part in parts for each in _content(part)]
        if first.body.get("isApiErrorMessage") is True:
            words = "".join(text(mapping(each).get("text")) or "" for each in content)
            kind = filled(first.body.get("error"))
            self._failed(first, kind, words or kind or "isApiErrorMessage", "gave-up")
            return
        if first.message.get("model") == _BY_NO_MODEL:
            self._by_no_model += 1
            return
        finish = next(
            (stop for each in reversed(parts) if (stop := filled(each.message.get("stop_reason")))), None
        )
        if finish is None and content and all(mapping(each).get("type") in _THOUGHTS for each in content):
            self._broken_off += 1
            self._state = "asked"
            return
        # Each part repeats the usage of the whole reply: it is counted once, as the last part says it.
        usage = present(dict(mapping(parts[-1].message.get("usage")))) or None
        facts = {"model": filled(first.message.get("model")), "finish": finish, "usage": usage, "at": _at(first)}
        facts["response_id"] = first.message_id
        self.chat.take({"role": "assistant", "content": content}, _origin(first), **facts)
        self._state, self.error = "replied", None

    def _user(self, record: SessionRecord) -> None:
        content = _content(record)
        if not content:
            self._unreadable += 1
            return
        self.chat.take({"role": "user", "content": content}, _origin(record), at=_at(record))
        self._compacted += record.body.get("isCompactSummary") is True
        words = next((said for each in content if (said := _words(each))), "")
        if words.startswith(_INTERRUPTED):
            self._state = "interrupted"
        elif record.body.get("isMeta") is not True and not words.startswith(_ASKS_NOTHING):
            self._state = "asked"

    def _system(self, record: SessionRecord) -> None:
        if record.body.get("subtype") != "api_error":
            return
        error = mapping(record.body.get("error"))
        body = mapping(mapping(error.get("error")).get("error")) or mapping(error.get("error"))
        cause = mapping(record.body.get("cause")) or mapping(error.get("cause"))
        kind = filled(body.get("type")) or filled(cause.get("code"))
        words = filled(body.get("message")) or filled(error.get("message")) or filled(cause.get("message"))
        status = whole(error.get("status"))
        self._failed(
            record, kind, words or kind or (str(status) if status is not None else "api_error"), "retrying"
        )

    def _failed(
        self, record: SessionRecord, kind: str | None, words: str, state: Literal["retrying", "gave-up"]
    ) -> None:
        self.error = TrialError(type=kind, message=words, raised_by="supplier")
        self.chat.failed_call(_origin(record), words, at=_at(record))
        self._state = state

    def _termination(self) -> Termination | None:
        if self._state == "gave-up":
            return "error"
        if self._state == "interrupted":
            return "cancelled"
        if self._state != "replied":
            return None if self._state == "nothing" else "cut-off"
        last = next(line for line in reversed(self.chat.lines) if line.is_reply)
        if last.tool_calls:
            return "cut-off"
        ending = _ENDINGS.get(last.finish or "")
        if ending is None:
            self.missing.append(
                "how it ended: the last reply asks for nothing more, and no stop reason is recorded"
            )
        return ending

    def _left_out(self) -> Iterator[str]:
        yield from self.chat.missing
        conversation = self.conversation
        if self.chat.lines:
            yield "task text: not recorded apart, so the first user message stands for it as a whole"
        for count, one, many, what in (
            (conversation.left_out, "record", "records", "of other branches or sessions left out"),
            (conversation.side_calls, "model call", "model calls", "of sub-agents left out: side calls"),
            (self._by_no_model, "message", "messages", "that no model wrote left out"),
            (self._broken_off, "reply", "replies", "left out that broke off in the reasoning"),
            (self._unreadable, "user record", "user records", "without a message that can be read left out"),
            (
                self._compacted,
                "compaction:",
                "compactions:",
                "the model went on from a summary",
            ),
        ):
            if count:
                yield f"{how_many(count, one, many)} {what}"
        if conversation.cut_at_the_start:
            yield "the conversation goes on from a record that is not in the file"


def _content(record: SessionRecord) -> list[Any]:
    content = record.message.get("content")
    if isinstance(content, str):
        return [content]
    return [each for each in sequence(content) if isinstance(each, str | dict)]


def _words(part: Any) -> str | None:
    return part if isinstance(part, str) else filled(mapping(part).get("text"))


def _origin(record: SessionRecord) -> str:
    return f"line {record.number}"


def _at(record: SessionRecord) -> datetime | None:
    return moment(record.body.get("timestamp"))
