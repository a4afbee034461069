"""The controller's dealings with workers of pytest-xdist: what they are handed, and how they are ended.

Every hook of xdist is optional: without it nobody defines them.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest


class Workers:
    """Hands every worker the frozen state, and passes an interruption on to those that run on this machine."""

    def __init__(self, handed: str, session_folder: Path) -> None:
        self._handed = handed
        self._session_folder = session_folder
        self._nodes: list[Any] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Give the worker what it plans from; a replacement of a crashed one gets the same."""
        node.workerinput["regcase"] = self._handed

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: Any) -> None:
        """Remember a worker that is running."""
        self._nodes.append(node)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Forget a worker that has ended."""
        if node in self._nodes:
            self._nodes.remove(node)

    def pytest_keyboard_interrupt(self) -> None:
        """Interrupt the workers too, so that they end their agents.

        xdist alone gives them a few seconds to finish their test, and kills them when that is not enough.
        """
        for node in self._nodes:
            if not node.gateway.spec.popen:
                continue
            with suppress(OSError, ValueError):
                os.kill(int(_pid_file(self._session_folder, node.gateway.id).read_text()), signal.SIGTERM)


def leave_pid(session_folder: Path, worker: str) -> None:
    """Leave this worker's process id where the controller finds it; xdist does not tell it."""
    path = _pid_file(session_folder, worker)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{os.getpid()}\n")


def _pid_file(session_folder: Path, worker: str) -> Path:
    return session_folder / "workers" / f"{worker}.pid"
