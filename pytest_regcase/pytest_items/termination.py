"""Turns SIGTERM, which CI sends when a job is cancelled, into what Ctrl-C does: clean-up and a summary."""

import ctypes
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

_PR_SET_PDEATHSIG = 1
_Handler = Any  # what signal.signal returns and takes: a callable, a constant or None


class Termination:
    """The SIGTERM handler of one pytest process."""

    def __init__(self) -> None:
        self._before: _Handler = None
        self._installed = False

    def install(self) -> None:
        """Handle SIGTERM from now on; only the main thread of a process may, elsewhere nothing is changed."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._before = signal.signal(signal.SIGTERM, self._interrupt)
        self._installed = True

    def follow_parent(self) -> None:
        """Get a SIGTERM of its own when the parent process dies (Linux): a worker then ends its agent at once.

        A worker of pytest-xdist notices by itself that its controller is gone, but waits seconds before it stops.
        """
        if self._installed and sys.platform == "linux":
            with suppress(OSError, AttributeError):  # a C library without prctl
                ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)

    def ignore(self) -> None:
        """Ignore SIGTERM from now on: the session ends by itself, and its summary is being made."""
        if self._installed:
            # Not SIG_IGN: a process started from here would inherit that.
            signal.signal(signal.SIGTERM, _do_nothing)

    def restore(self) -> None:
        """Put back the handler that was there before."""
        if self._installed:
            signal.signal(signal.SIGTERM, self._before if self._before is not None else signal.SIG_DFL)
            self._installed = False

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        # Once: a second one must not end the clean-up that the first one started.
        self.ignore()
        raise KeyboardInterrupt("SIGTERM")


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Take the signal and go on."""
