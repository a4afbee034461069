"""SIGTERM as Ctrl-C: what is interrupted either way ends in good order."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ended_by_a_signal() -> Iterator[None]:
    """Let SIGTERM end us as Ctrl-C does: a shell takes Ctrl-C away from what it runs in the background."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
