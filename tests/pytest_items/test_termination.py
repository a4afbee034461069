import os
import signal

import pytest

from pytest_regcase.pytest_items.termination import Termination


def test_sigterm_interrupts_once_and_the_old_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    termination = Termination()
    termination.install()
    try:
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            os.kill(os.getpid(), signal.SIGTERM)
        # The clean-up that the first one started is not interrupted by a second.
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        termination.restore()
    assert signal.getsignal(signal.SIGTERM) == before


def test_nothing_is_changed_that_was_not_installed() -> None:
    before = signal.getsignal(signal.SIGTERM)
    termination = Termination()
    termination.ignore()
    termination.restore()
    assert signal.getsignal(signal.SIGTERM) == before
