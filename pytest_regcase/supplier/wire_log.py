"""The wire log: one JSON line for every request, every answer and every close.

Knows nothing of what the events mean (`recovery.wire_facts` does). Standard library only.
"""

import json
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Not at run time: the child process starts without it, and what it brings along.
    from pathlib import Path

_ascii = json.JSONEncoder().encode


class WireLog:
    """Appends events, each with one unbuffered write, so that a SIGKILL never leaves half a line behind."""

    def __init__(self, path: "str | Path", t0: float) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._t0 = t0

    def now(self) -> float:
        """Return the seconds since `t0`, to the tenth of a millisecond."""
        return self.t_of(time.monotonic())

    def t_of(self, moment: float) -> float:
        """Return the `t` of a moment on `time.monotonic`."""
        return round(moment - self._t0, 4)

    def write(self, event: str, *, t: float | None = None, **facts: Any) -> float:
        """Append one event and return its `t`. Facts that are None are left out: absent stays absent."""
        moment = self.now() if t is None else t
        line = {"t": moment, "event": event}
        line |= {key: value for key, value in facts.items() if value is not None}
        os.write(self._file, _ascii(line).encode() + b"\n")
        return moment

    def close(self) -> None:
        """Give the file back; nothing is buffered."""
        os.close(self._file)


def read_wire_log(path: "str | Path") -> tuple[dict[str, Any], ...]:
    """Return the events of a wire log; half a last line is dropped, a missing file has none.

    Raises:
        ValueError: a line that is not the last is no JSON object: nobody but us writes there.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return ()
    lines = content.split(b"\n")
    events: list[dict[str, Any]] = []
    # What follows the last line feed is half a line or nothing.
    for number, line in enumerate(lines[:-1], start=1):
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict):
            raise ValueError(f"Couldn't read {path}:{number}: the line is no JSON object.")
        events.append(event)
    return tuple(events)
