"""A terminal as far as a test looks at one: what stands on its screen after some bytes came in."""

import re

_SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


class SmallTerminal:
    """A screen of 80 columns that never scrolls; it knows the sequences that are used here, and colours."""

    def __init__(self, columns: int = 80) -> None:
        self._columns = columns
        self._rows: list[list[str]] = [[]]
        self._row = self._column = 0
        self._wraps = False

    @property
    def lines(self) -> list[str]:
        """What stands there, without blanks and empty lines at the ends."""
        return "\n".join("".join(each).rstrip() for each in self._rows).rstrip().splitlines()

    def take(self, text: str) -> None:
        """Take what was written, as a terminal gets it."""
        while text:
            found = _SEQUENCE.match(text)
            if found is not None:
                self._do(int(found[1] or 0) if found[2] in "AGJ" else 0, found[2])
                text = text[found.end() :]
                continue
            self._put(text[0])
            text = text[1:]

    def _do(self, number: int, what: str) -> None:
        if what == "m":
            return
        self._wraps = False
        if what == "A":
            self._row = max(0, self._row - max(1, number))
        elif what == "G":
            self._column = min(max(1, number), self._columns) - 1
        elif what == "J" and number == 0:
            del self._rows[self._row + 1 :]
            del self._rows[self._row][self._column :]
        else:
            raise AssertionError(f"no such sequence here: {number}{what}")

    def _put(self, character: str) -> None:
        if character == "\r":
            self._column, self._wraps = 0, False
        elif character == "\n":
            self._down()
        else:
            if self._wraps:
                self._down()
                self._column = 0
            row = self._rows[self._row]
            row.extend(" " * (self._column + 1 - len(row)))
            row[self._column] = character
            self._wraps = self._column == self._columns - 1
            self._column = min(self._column + 1, self._columns - 1)

    def _down(self) -> None:
        self._row, self._wraps = self._row + 1, False
        if self._row == len(self._rows):
            self._rows.append([])
