"""Stack traces: what a text says without the frames in it.

Knows Python's tracebacks, plain and in a box, and how they are chained. Must not import the judge.
"""

import re

_HEAD = re.compile(r"^\W*(?:Exception Group )?Traceback \(most recent call last\)")
_CHAINED = re.compile(
    r"^\W*(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred)"
)
_FRAME = re.compile(r"^(?:\s+\S|\s*[│┃╭╰┏┗|+])")


def without_frames(text: str) -> str:
    """Return `text` with each traceback replaced by what was raised last in its chain.

    Frames and the causes that it names are left out: a person who reads the message alone sees neither.
    """
    kept: list[str] = []
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        if not _HEAD.match(lines[number]):
            kept.append(lines[number])
            number += 1
            continue
        raised, number = _one(lines, number)
        behind = _behind_blank(lines, number)
        if behind < len(lines) and _CHAINED.match(lines[behind]):
            following = _behind_blank(lines, behind + 1)
            if following < len(lines) and _HEAD.match(lines[following]):
                number = following  # what was raised here is a cause of what comes
                continue
        kept.extend(raised)
    return "\n".join(kept)


def _one(lines: list[str], head: int) -> tuple[list[str], int]:
    """Return what the traceback at `head` raised, and the line behind it."""
    number = head + 1
    while number < len(lines) and _FRAME.match(lines[number]):
        number += 1
    raised: list[str] = []
    while number < len(lines) and lines[number].strip() and not _HEAD.match(lines[number]):
        raised.append(lines[number])
        number += 1
    return raised, number


def _behind_blank(lines: list[str], number: int) -> int:
    while number < len(lines) and not lines[number].strip():
        number += 1
    return number
