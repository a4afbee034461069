"""Lines that fit the terminal: wrapping, cells, a little colour. Knows nothing of cases."""

import textwrap

RED, GREEN, YELLOW, BOLD = "31", "32", "33", "1"


def one_line(text: str) -> str:
    """Return `text` without line breaks and control characters: an agent's output must not steer the terminal."""
    return " ".join(printable(text).split())


def inert(line: str) -> str:
    """Return a line of an agent's words so that no CI runner takes it for a command of its own.

    GitHub Actions obeys ``::`` and ``##[`` at the start of any line of the log, spaces before it or not.
    """
    bare = line.lstrip()
    return f"| {bare}" if bare.startswith(("::", "##[")) else line


def inert_lines(text: str) -> list[str]:
    """Return the lines of an agent's words, each `inert`; what ends one for a runner ends one here."""
    return [inert(each) for each in text.splitlines()]


def printable(text: str) -> str:
    """Return `text` with a space for each control character and line break; spaces stay as they are."""
    return "".join(each if each.isprintable() else " " for each in text)


def wrapped(text: str, width: int, *, first: str = "", then: str | None = None) -> list[str]:
    """Return `text` in lines of at most `width`, the first one behind `first`, the others behind `then`.

    A word that is longer than a line (a path) is broken after a slash where it has one.
    """
    rest = " " * len(first) if then is None else then
    room = width - max(len(first), len(rest))
    words = [piece for word in one_line(text).split(" ") for piece in _pieces(word, room)]
    lines: list[str] = []
    line = ""
    for word, glued in words:
        joined = line + ("" if glued or not line else " ") + word
        if len(joined) <= room:
            line = joined
        else:
            lines.append(line)
            line = word
    lines.append(line)
    return [((rest if index else first) + inert(each)).rstrip() for index, each in enumerate(lines)]


def painted(text: str, code: str, *, colour: bool) -> str:
    """Return `text` in that colour, or as it is: nothing may be readable by its colour alone."""
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


def _pieces(word: str, room: int) -> list[tuple[str, bool]]:
    """The word in pieces that fit, each with whether it is glued to the one before."""
    if len(word) <= room:
        return [(word, False)]
    pieces: list[str] = []
    for part in word.replace("/", "/\n").split("\n"):
        for chunk in textwrap.wrap(part, room) or [""]:
            if pieces and len(pieces[-1]) + len(chunk) <= room:
                pieces[-1] += chunk
            elif chunk:
                pieces.append(chunk)
    return [(piece, index > 0) for index, piece in enumerate(pieces)]
