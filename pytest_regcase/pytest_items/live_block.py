"""A few lines below what pytest prints, on a terminal: gone before anything else is written, drawn again after.

Knows ANSI sequences and pytest's terminal writer; knows no case. Whoever writes through that writer, the block is
taken away first: pytest's own reporting, xdist's, tracebacks and summaries need not know of it.
"""

from collections.abc import Sequence
from typing import Protocol

_ESC = "\x1b["


class Writer(Protocol):
    """What is used of pytest's `TerminalWriter`."""

    fullwidth: int

    @property
    def width_of_current_line(self) -> int:
        """How far the line is written, as far as the writer knows."""

    def write_raw(self, msg: str, *, flush: bool = False) -> None:
        """Write what the writer takes no note of."""


class LiveBlock:
    """The lines that are drawn at the moment, if any."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._write = writer.write_raw
        self._lines = 0
        self._column = 0
        writer.write_raw = self._written_by_others  # type: ignore[method-assign]

    def draw(self, lines: Sequence[str]) -> None:
        """Draw these lines in place of those that are there; none takes them away. What is too long is cut."""
        self.erase()
        if not lines:
            return
        width = self._writer.fullwidth
        written = self._writer.width_of_current_line
        # Of a line that is longer than the terminal is wide, the cursor stands in the last row.
        self._column = written % width or min(written, width)
        below = "\n" if self._column else ""
        # Before they are there: Ctrl-C may come as soon as somebody sees them, and they are to be taken away then.
        self._lines = len(lines)
        self._write(below + "\n".join(each[: width - 1] for each in lines), flush=True)

    def erase(self) -> None:
        """Take the lines away, and put the cursor where it was."""
        if not self._lines:
            return
        up = self._lines - 1
        text = "\r" + (f"{_ESC}{up}A" if up else "") + f"{_ESC}J"
        if self._column:
            text += f"{_ESC}1A{_ESC}{self._column + 1}G"
        self._lines = 0
        self._write(text, flush=True)

    def close(self) -> None:
        """Take the lines away, and leave the writer as it was."""
        self.erase()
        del self._writer.write_raw

    def _written_by_others(self, msg: str, *, flush: bool = False) -> None:
        self.erase()
        self._write(msg, flush=flush)
