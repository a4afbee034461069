"""Texts without which a pattern cannot match: most lines of a long log hold none, and no pattern is tried on them.

Python's `re` tries an alternation at every place of a line, which takes most of the time of a long log. Knows the
part of the syntax that our own patterns use. Pure.
"""

import re
from collections.abc import Iterator
from typing import Final

_PIECE: Final = re.compile(
    r"(?P<class>\[(?:\\.|[^\]\\])+\])|(?P<open>\((?:\?[:!=])?)|(?P<close>\))|(?P<or>\|)"
    r"|(?P<escaped>\\[^A-Za-z0-9])|(?P<special>\\[A-Za-z]|[.^$])|(?P<char>[^\\])"
)
_OPTIONAL: Final = re.compile(r"[?*]|\{0?,|\{0\}")
_REPEATED: Final = re.compile(r"[?*+]|\{[0-9,]+\}")
SHORTEST: Final = 4


def hints_of(pattern: str) -> frozenset[str]:
    """Return lower-case texts of which every line that `pattern` finds holds at least one, in lower case.

    Raises:
        ValueError: a branch of the pattern has no text of four characters that is always there.
    """
    found = set()
    for branch in _branches(pattern):
        longest = max(branch, key=len, default="")
        if len(longest) < SHORTEST:
            raise ValueError(f"nothing of {pattern!r} is always there in one of its branches")
        found.add(longest)
    return frozenset(found)


def _branches(pattern: str) -> Iterator[list[str]]:
    """Yield, for each branch at the top, the texts that stand in it outside of groups."""
    runs: list[str] = [""]
    depth = at = 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None:
            raise ValueError(f"{pattern!r} cannot be read at {at}")
        at = piece.end()
        repeated = _REPEATED.match(pattern, at)
        optional = _OPTIONAL.match(pattern, at) is not None
        at = repeated.end() if repeated is not None else at
        depth += (piece["open"] is not None) - (piece["close"] is not None)
        if depth or piece["close"] is not None:
            runs.append("")
        elif piece["or"] is not None:
            yield runs
            runs = [""]
        else:
            text = _text(piece)
            if text is None or optional:
                runs.append("")
            else:
                runs[-1] += text
                if repeated is not None:
                    runs.append("")
    yield runs


def _text(piece: "re.Match[str]") -> str | None:
    if piece["char"] is not None:
        return piece["char"].lower()
    if piece["escaped"] is not None:
        return piece["escaped"][1]
    letters = {each.lower() for each in (piece["class"] or "")[1:-1]}
    return letters.pop() if len(letters) == 1 else None
