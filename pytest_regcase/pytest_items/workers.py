"""The controller's dealings with workers of pytest-xdist: what they are handed, and how they are ended.

Every hook is optional: without xdist nobody defines them.
"""

import os
import signal
from contextlib import suppress
from typing import Any

import pytest


class Workers:
    """Hands every worker the frozen state, and passes an interruption on to those that run on this machine."""

    def __init__(self, handed: str) -> None:
        self._handed = handed
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
        """Interrupt the workers too, so that they end their agents; xdist alone would wait, then kill them."""
        for node in self._nodes:
            if node.gateway.spec.popen:
                with suppress(ProcessLookupError):
                    os.kill(node.workerinfo["pid"], signal.SIGTERM)
