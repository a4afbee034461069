"""aider chat histories (`.aider.chat.history.md`): each session in the file is a trial.

Sessions are appended to one file, so it usually holds several. Must import no other importer.

What it cannot show: an outcome, what aider sent back to the model by itself, the calls for commit messages, the
retries of its client library, an exit code (0 after a failed call too). The LLM history beside it would tell how
often aider asked; its analytics log has counts only. Neither is read.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pytest_regcase.importers.aider_session import SESSION, AiderSession
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import digests_of, read_document, refused
from pytest_regcase.importers.steps import failing_step
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.trial import Trial, TrialRef
from pytest_regcase.records.words import Expectation

_LIMIT_BYTES: Final = 64 * 1024 * 1024
_BEGIN: Final = re.compile(rb"\s*" + SESSION.pattern.encode() + rb"\s*\n")
_CAN_SHOW: Final[tuple[Expectation, ...]] = ("log_failure", "max_retries", "stop_within_seconds")
"""Replies stand in it as prose among aider's own lines, work is handed in by commit, and no status is written."""


class Aider:
    """Importer of aider chat histories: one trial a session."""

    name = "aider"

    def handles(self, peek: Peek) -> bool:
        """Say whether it begins with the line that aider starts each session with."""
        return peek.kind == "file" and _BEGIN.match(peek.head) is not None

    def list_trials(self, source: Path) -> Iterator[TrialRef]:
        """Yield each session, in file order."""
        for key, session, _ in _sessions(source):
            failed = session.termination is not None
            yield TrialRef(
                key=key,
                termination=session.termination,
                error_type=session.error.type if session.error is not None else None,
                failed=failed,
                why_not=None if failed else "nothing in the session says that a model call failed",
                refusal=None if failed else "no-sign-of-failure",
                sample=key,
            )

    def read(self, source: Path, ref: TrialRef) -> Trial:
        """Read one session. Outcome is always undetermined: the format has none."""
        for _, session, digest in _sessions(source, only=ref.key):
            return _trial(source, session, digest)
        raise refused("no-such-trial", source, f"it holds no session {ref.key!r}", "List them with --failed.")


def _sessions(source: Path, *, only: str | None = None) -> Iterator[tuple[str, AiderSession, str]]:
    """Yield each session, or the one of that key, with the digest of its text and its place in the file."""
    content = read_document(source, limit_bytes=_LIMIT_BYTES)
    try:
        lines = content.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise refused(
            "corrupt", source, f"it is not UTF-8 at byte {error.start}", "Write it as UTF-8 (`--encoding`)."
        ) from error
    starts = [
        (index, found["at"]) for index, line in enumerate(lines) if (found := SESSION.fullmatch(line.strip()))
    ]
    for number, (start, at) in enumerate(starts, 1):
        end = starts[number][0] if number < len(starts) else len(lines)
        key = f"session-{number}"
        if only in (None, key):
            yield key, AiderSession(at, start + 2, lines[start + 1 : end]), digest_of([number, lines[start:end]])


def _trial(source: Path, session: AiderSession, digest: str) -> Trial:
    due = session.termination in ("error", "cut-off", "cancelled") and session.reply_was_due
    return Trial(
        format=Aider.name,
        harness=f"aider {session.version}" if session.version else "aider",
        event_id=digest,
        event_id_from="digest",
        model=session.model,
        task_text=session.task_text,
        steps=tuple(session.lines),
        failing_step=failing_step(session.lines, next_reply_failed=due),
        termination=session.termination,
        error=session.error,
        labels=tuple(f"aider:commit:{each}" for each in session.commits),
        conditions={"started_at_without_zone": session.started_at},
        can_show=_CAN_SHOW,
        source_digests=digests_of(source),
        missing=(
            "what aider sent to the model by itself: its prompts, files, and the output of tests",
            "outcome and how the session ended: a chat history has no place for them",
        ),
    )
