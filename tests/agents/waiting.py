"""Waiting in tests: for a condition, with a bound that only a hang can meet."""

import os
import time
from collections.abc import Callable
from pathlib import Path

LONGEST_SECONDS = 30.0


def until(condition: Callable[[], bool]) -> bool:
    """Wait until the condition holds; False where it never did."""
    end = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def is_gone(pid: int) -> bool:
    """Say whether the process has ended (one that only waits to be reaped has)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"
