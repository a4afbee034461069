"""Failure lines: which line of a log says that something failed.

A bare keyword is not enough: printed configurations (`attempt_timeout: 3`), counts of nothing (`0 errors`) and
quotations of the task, of tool results or of answers say nothing. Must not import the expectations.
"""

import re
from collections.abc import Iterable
from itertools import pairwise

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_EXCEPTION = re.compile(
    r"\b(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Timeout|TimedOut|Refused|Interrupt)\b(?=\s*[:(<]|\s*$|\s+-\s)"
)
_TRACEBACK = re.compile(r"^\W*Traceback \(most recent call last\)")
_RAISED = re.compile(r"(?:\w+\.)*[A-Z]\w*(?::\s|$)")
"""How the line behind the frames of a traceback begins, whatever the exception is called."""
_STATUS = re.compile(
    r"\bHTTP(?:/\d(?:\.\d)?)?\W{1,3}[45]\d\d\b|\b(?:status|status[ _]code|error code|code)\W{1,4}[45]\d\d\b",
    re.IGNORECASE,
)
_WORDS = re.compile(
    r"\b(?:fail(?:s|ed|ures?|ing)?|errors?|errored|timed[ -]?out"
    r"|time-?out (?:after|while|waiting|reached|occurred|error)|(?:hit|reached|after) (?:a |the |its )?time-?out"
    r"|refused|rejected|unauthori[sz]ed|forbidden|denied|unavailable|overloaded|out of memory|disconnected"
    r"|reset by peer|unreachable|g(?:ave|iving) up|abort(?:ed|ing)|crashed|retrying"
    r"|(?:no|empty|never|without(?: an?)?) (?:answer(?:ed)?|repl(?:y|ied)|response|content|completion|choices)"
    r"|(?:answer|reply|response|content|completion) (?:was |is |came back )?(?:empty|missing)"
    r"|did(?:n't| not) (?:answer|reply|respond))\b",
    re.IGNORECASE,
)
_SETTING = re.compile(
    r"""(?<!\w)--?[a-z][\w\-]*"""  # an option of a command line
    r"""|\b\w+[_.\-][\w.\-]*["']?\s*[:=]\s*["']?(?:-?\d[\w.]*|true|false|none|null|\[[^\]]*\]|\{\})(?![^\s"',;)}\]])"""
    r"""|\b\w+["']?\s*[:=]\s*["']?(?:false|none|null|0|\[\]|\{\})(?![^\s"',;)}\]])""",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"\b(?:no|0|zero|without(?: any)?) (?:errors?|failures?|failed)\b"
    r"|\b(?:errors?|failures?|failed)\W{1,3}(?:0|none|null|false)\b",
    re.IGNORECASE,
)

QUOTE_CHARACTERS = 200
"""How much of a text a finding quotes."""


def quote_of(text: str) -> str:
    """Return `text` on one line, cut to what a finding quotes."""
    line = " ".join(_ANSI.sub("", text).split())
    return line if len(line) <= QUOTE_CHARACTERS else line[: QUOTE_CHARACTERS - 3] + "..."


def says_failure(line: str) -> bool:
    """Say whether one line says that something failed: an exception, an HTTP error status, or words for it."""
    plain = _ANSI.sub("", line)
    if _EXCEPTION.search(plain) or _STATUS.search(plain) or _TRACEBACK.search(plain):
        return True
    return _WORDS.search(_NOTHING.sub(" ", _SETTING.sub(" ", plain))) is not None


def failure_in(text: str, known: Iterable[str] = ()) -> str | None:
    r"""Return the first line of `text` that says a failure, or None.

    Of a traceback the last exception is quoted. Lines that only repeat a `known` text (the task, a tool result, a
    reply, a diff) are passed over. A ``\n`` spelt out, as inside JSON, ends a line too.
    """
    lines = _lines(text)
    known_lines: set[str] | None = None
    for number, line in enumerate(lines):
        if not says_failure(line):
            continue
        if known_lines is None:
            known_lines = {_bare(each) for one in known for each in _lines(one)} - {""}
        if _says_something_new(_bare(line), known_lines):
            return quote_of(_exception_of(lines[number:]) if _TRACEBACK.search(line) else line)
    return None


def _says_something_new(line: str, known_lines: set[str]) -> bool:
    if line in known_lines:
        return False
    for repeated in known_lines:
        if len(repeated) >= 8 and repeated in line:
            line = line.replace(repeated, " ")
    return says_failure(line)


def _exception_of(traceback: list[str]) -> str:
    """Return what the last of chained exceptions says: the line at the left behind its frames.

    Where the text is wrapped or cut otherwise, the last line at the left that looks like an exception; the first
    line where none does.
    """
    ends = [
        line
        for frame, line in pairwise(traceback)
        if frame[:1].isspace() and (_RAISED.match(line) or (line[:1].strip() and _EXCEPTION.search(line)))
    ]
    named = ends or [line for line in traceback if line[:1].strip() and _EXCEPTION.search(line)]
    return named[-1] if named else traceback[0]


def _lines(text: str) -> list[str]:
    return text.replace("\\n", "\n").splitlines()


def _bare(line: str) -> str:
    return " ".join(_ANSI.sub("", line).split()).lstrip("+-> ")
