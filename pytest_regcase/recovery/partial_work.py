"""Partial work: what a unified diff changes, whatever its headers, and how much of it another text holds.

Knows the text of `git diff` and `diff -u`, and work in other spellings (whole files, other kinds of diff). Must
not import records or the expectations: it compares texts only.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LINE_MARKS = re.compile(r"^[+!>]\s?")
"""Before an added line in context diffs, plain diffs, and in unified ones whose headers are lost."""
_TELLING_CHARACTERS = 8
"""Letters and digits that added lines must hold together: brackets alone stand in any file."""
_NO_CHANGE = ("index ", "similarity index ", "dissimilarity index ")


class FileChange(NamedTuple):
    """What a diff does to one file."""

    added: Counter[str]
    removed: Counter[str]
    marks: set[str]
    """What is said outside hunks: modes, renames, ``binary``."""


class Held(NamedTuple):
    """How much of one diff stands in another text."""

    lines: int
    """Changed lines (marks of a file without hunks) that were found."""
    of: int
    missing: str | None = None
    """The first that was not found, as ``path: +line``."""

    @property
    def whole(self) -> bool:
        """Say whether all of it was found."""
        return self.lines == self.of


def changes(text: str) -> dict[str, FileChange]:
    """Read every file change in `text`, by path; prose around a diff is passed over.

    ``a/`` and ``b/`` prefixes, ``index`` lines, time stamps and line numbers do not matter. Lines are taken by the
    hunk's own counts, so that a removed ``-- x`` is no header. Only line feeds end a line (a form feed does not).
    """
    found: dict[str, FileChange] = {}
    change: FileChange | None = None
    old_path = ""
    old_left = new_left = 0
    in_hunks = False
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.startswith("diff --git "):
            change = _file(found, _path_of_header(line.removeprefix("diff --git ")))
            old_left = new_left = 0
            in_hunks = False
        elif change is not None and max(old_left, new_left) > 0 and line[:1] in ("+", "-", " ", ""):
            if line.startswith("+"):
                change.added[line[1:]] += 1
            elif line.startswith("-"):
                change.removed[line[1:]] += 1
            old_left -= not line.startswith("+")
            new_left -= not line.startswith("-")
        elif line.startswith("--- "):
            old_path = _path(line[4:])
            in_hunks = False
        elif line.startswith("+++ ") and old_path:
            new_path = _path(line[4:])
            change = _file(found, old_path if new_path == "/dev/null" else new_path)
            old_path = ""
        elif (hunk := _HUNK.match(line)) is not None and change is not None:
            old_left, new_left = (1 if count is None else int(count) for count in hunk.groups())
            in_hunks = True
        elif change is not None and not in_hunks and line.strip() and not line.startswith(_NO_CHANGE):
            change.marks.add("binary" if line.startswith("Binary files ") else line)
    return {path: each for path, each in found.items() if each.added or each.removed or each.marks}


def held(part: str, whole: str) -> Held:
    """Say how much of the diff `part` stands in the diff (or text with a diff) `whole`, file by file.

    Blank lines are passed over: they tell nothing about whose work it is. Where `whole` is no unified diff (the
    files themselves, a script for ed, another kind of diff), a file's added lines are found if all of them stand
    there as lines.
    """
    whole = _unwrapped(whole)
    others = changes(whole)
    plain = None if others else _plain_lines(whole)
    lines = of = 0
    missing: str | None = None
    for path, change in changes(part).items():
        matching = [other for name, other in others.items() if _same_path(path, name)]
        if plain is not None and _all_added(change, plain):
            matching = [FileChange(change.added, Counter(), set())]
        for sign, wanted, there in _compared(change, matching):
            for text, count in wanted.items():
                have = min(count, there[text])
                lines += have
                of += count
                if have < count and missing is None:
                    missing = f"{path}: {sign}{text}"
    return Held(lines, of, missing)


def _compared(change: FileChange, others: list[FileChange]) -> list[tuple[str, Counter[str], Counter[str]]]:
    pairs = [
        ("+", _told(change.added), sum((other.added for other in others), Counter())),
        ("-", _told(change.removed), sum((other.removed for other in others), Counter())),
    ]
    if not any(wanted for _, wanted, _ in pairs):
        pairs = [("", Counter(change.marks), Counter({mark for other in others for mark in other.marks}))]
    return pairs


def _unwrapped(text: str) -> str:
    """Return `text` without colours; of JSON, the texts in it."""
    text = _COLOUR.sub("", text)
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return text
    try:
        return "\n".join(_texts(json.loads(text)))
    except (ValueError, RecursionError):
        return text


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _plain_lines(text: str) -> set[str]:
    lines = [line.strip() for line in text.split("\n")]
    return {*lines, *(_LINE_MARKS.sub("", line).strip() for line in lines)}


def _all_added(change: FileChange, lines: set[str]) -> bool:
    added = [line.strip() for line in change.added if line.strip()]
    telling = sum(each.isalnum() for line in added for each in line)
    return telling >= _TELLING_CHARACTERS and all(line in lines for line in added)


def _told(lines: Counter[str]) -> Counter[str]:
    return Counter({line: count for line, count in lines.items() if line.strip()})


def _file(found: dict[str, FileChange], path: str) -> FileChange:
    return found.setdefault(path, FileChange(Counter(), Counter(), set()))


def _path(text: str) -> str:
    path = text.split("\t")[0].strip().strip('"')
    return path[2:] if path[1:2] == "/" and path[:1] in "abciwo" else path.removeprefix("./")


def _path_of_header(rest: str) -> str:
    half = (len(rest) + 1) // 2
    new = rest[half:] if rest[half - 1 : half] == " " else rest.rpartition(" ")[2]
    return _path(new)


def _same_path(one: str, other: str) -> bool:
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")
