"""Hooks that tell GitHub Actions what a gate run decided; only registered where its runner runs pytest."""

from collections.abc import Generator

import pytest

from pytest_regcase.pytest_items.controller import Controller
from pytest_regcase.session.gating.github_actions import GitHubActions


class GitHub:
    """Appends to the step's summary and prints annotations."""

    def __init__(self, actions: GitHubActions, controller: Controller) -> None:
        self._actions = actions
        self._controller = controller
        self._trouble: str | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Generator[None]:
        """Write the summary once the decision is made."""
        yield
        if self._controller.decision is not None:
            self._trouble = self._actions.add_summary(self._controller.decision, self._controller.attempts)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print one annotation a line; the runner reads one only at the start of a line."""
        if self._trouble is not None:
            terminalreporter.write_line(f"regcase: {self._trouble}")
        controller = self._controller
        for line in self._actions.annotations(controller.decision, controller.cases, controller.troubles):
            terminalreporter.write_line(line)
