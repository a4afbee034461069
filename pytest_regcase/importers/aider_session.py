"""One session of an aider chat history: what was asked, what the model answered, and which calls failed.

Knows the lines that aider 0.86.2 writes (`io.py`, `coders/base_coder.py`). Must import no importer.

What surprises: a reply is written down although its stream broke, and only the next line says so; what aider sends
back by itself (test output, files) is not written; nothing says how a session ended, not even a clean end.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pytest_regcase.importers.chat_messages import ChatLines
from pytest_regcase.records.trial import TranscriptLine, TrialError
from pytest_regcase.records.words import Termination

SESSION: Final = re.compile(
    r"# aider chat started at (?P<at>[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})"
)
_MARKED: Final = "  "
"""aider ends each line of its own, and the user's, with two spaces; a model's line that begins alike has none."""
_LITELLM: Final = re.compile(r"litellm\.(?P<type>[A-Za-z_]\w*): ")
_NO_CHOICE: Final = re.compile(r"ModelResponse\(.*choices=\[\]")
_EMPTY: Final = "Empty response received from LLM"
_TOKEN_LIMIT: Final = re.compile(r"Model .+ has hit a token limit!")
_RETRYING: Final = re.compile(r"Retrying in [0-9.]+ seconds")
_REFLECTIONS: Final = re.compile(r"Only [0-9]+ reflections allowed, stopping")
_ASKS_AGAIN: Final = re.compile(
    r"(?:Attempt to fix (?:lint|test) errors\?|Add .*to the chat\?) .*: *(?:y|yes|a|all|)$", re.IGNORECASE
)
_INTERRUPTED: Final = re.compile(r"\^C (?:again to exit|KeyboardInterrupt)")
_VERSION: Final = re.compile(r"Aider v(?P<version>\S+)")
_MODEL: Final = re.compile(r"(?:Main )?[Mm]odel: (?P<model>\S+) with ")
_COMMIT: Final = re.compile(r"Commit (?P<commit>[0-9a-f]{7,40}) ")
_TRACEBACK: Final = "Traceback (most recent call last)"
_RAISED: Final = re.compile(r"(?:[A-Za-z_]\w*\.)*(?P<type>[A-Z]\w*)(?:: (?P<message>.*))?")
_USAGE: Final = "Tokens: "

_Speaker = Literal["user", "aider", "model"]


@dataclass(frozen=True)
class _Block:
    """Lines in a row by one speaker, without their marks."""

    speaker: _Speaker
    lines: tuple[str, ...]
    at: int
    """Number of the first line in the file."""


class AiderSession:
    """The lines of a session, and what its words say of how it went."""

    def __init__(self, started_at: str, first_line: int, content: Sequence[str]) -> None:
        self.started_at = started_at
        """Local time without a zone: it names no point in time."""
        self.version: str | None = None
        self.model: str | None = None
        self.commits: list[str] = []
        self.error: TrialError | None = None
        """Of the last model call, where that failed."""
        self.termination: Termination | None = None
        self._chat = ChatLines()
        self._last_told = ""
        self._is_told_already = False
        blocks = list(_blocks(first_line, content))
        for index, block in enumerate(blocks):
            self._take(block, blocks[index + 1] if index + 1 < len(blocks) else None)
        if self.termination is None and self.reply_was_due:
            self.termination = "cut-off"

    @property
    def lines(self) -> list[TranscriptLine]:
        """The lines, in order. What aider told its user is none: the model never saw it."""
        return self._chat.lines

    @property
    def task_text(self) -> str | None:
        """The first message to the model; a command (`/add`) is none."""
        return next((line.text for line in self.lines if line.role == "user"), None)

    @property
    def reply_was_due(self) -> bool:
        """Say whether the session stops where the model had to answer."""
        if not self.lines:
            return False
        return not self.lines[-1].is_reply or _ASKS_AGAIN.match(self._last_told) is not None

    def _take(self, block: _Block, following: _Block | None) -> None:
        if block.speaker == "user":
            said = "\n".join(block.lines)
            if not said.startswith(("/", "!")):
                self._chat.said(f"line {block.at}", "user", said)
                self._last_told, self.termination, self.error = "", None, None
        elif block.speaker == "model":
            self._reply(block, following)
        else:
            self._told(block)

    def _reply(self, block: _Block, following: _Block | None) -> None:
        """Take a model's text; whether it is whole stands before it (interrupted) or behind it (failed)."""
        origin, said = f"line {block.at}", "\n".join(block.lines).strip()
        if self.termination == "cancelled":
            self._chat.failed_call(origin, self._last_told, said)
            return
        failure = _failure_behind(following) if following is not None and following.speaker == "aider" else None
        self.termination = self.error = None
        self._last_told = ""
        if failure is None:
            self._chat.reply(origin, said)
        else:
            self._chat.failed_call(origin, failure.message or "", said)
            self._is_told_already = True

    def _told(self, block: _Block) -> None:
        """Read what aider said itself: failed calls in order, and how far it got."""
        for index, line in enumerate(block.lines):
            if not line:
                continue
            self._last_told = line
            self._facts(line)
            failure = _failure_at(block, index)
            if failure is not None:
                self.error, self.termination = failure, "error"
                if not self._is_told_already:
                    self._chat.failed_call(f"line {block.at + index}", failure.message or line)
                self._is_told_already = False
            elif _RETRYING.match(line):
                self.termination = "cut-off"  # unless something follows
            elif _REFLECTIONS.match(line):
                self.termination = "limit"
            elif _INTERRUPTED.search(line):
                self.termination = "cancelled"

    def _facts(self, line: str) -> None:
        if found := _VERSION.match(line):
            self.version = found["version"]
        elif found := _MODEL.match(line):
            self.model = found["model"]
        elif found := _COMMIT.match(line):
            self.commits.append(found["commit"])


def _blocks(first_line: int, content: Sequence[str]) -> Iterator[_Block]:
    """Split a session by who speaks; the blank lines around a reply belong to nobody."""
    speaker: _Speaker = "model"
    held: list[str] = []
    start = first_line
    for number, line in enumerate([*content, None], first_line):
        if line is None:
            now, said = None, ""
        else:
            now, said = _speaker(line)
        if now is not None and now == speaker:
            held.append(said)
            continue
        if any(each.strip() for each in held):
            yield _Block(speaker, tuple(held), start)
        if now is not None:
            speaker, held, start = now, [said], number


def _speaker(line: str) -> tuple[_Speaker, str]:
    if line.endswith(_MARKED):
        if line.startswith("> "):
            return "aider", line[2:].rstrip()
        if line.startswith("#### "):
            return "user", line[5:].rstrip()
    return "model", line


def _failure_behind(block: _Block) -> TrialError | None:
    """Return the failure that aider tells of right behind a model's text: that text is then not whole.

    Usage comes in between only where the text met a token limit; else it says that the reply was whole.
    """
    is_counted = False
    for index, line in enumerate(block.lines):
        if line.startswith(_USAGE):
            is_counted = True
        elif line:
            return _failure_at(block, index) if not is_counted or _TOKEN_LIMIT.match(line) else None
    return None


def _failure_at(block: _Block, index: int) -> TrialError | None:
    line = block.lines[index]
    if (found := _LITELLM.match(line)) is not None:
        return TrialError(type=found["type"], message=line, raised_by="supplier")
    if line.startswith(_EMPTY) or _TOKEN_LIMIT.match(line) or _NO_CHOICE.match(line):
        return TrialError(message=line)
    if line.startswith(_TRACEBACK):
        told = block.lines[index:]
        raised = next((found for each in reversed(told) if (found := _RAISED.fullmatch(each))), None)
        return TrialError(
            type=raised["type"] if raised is not None else None,
            message=raised["message"] if raised is not None else None,
            traceback="\n".join(told),
        )
    return None
