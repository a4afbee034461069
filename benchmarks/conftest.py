"""Tells at the end of the run what was measured."""

from collections.abc import Callable

import pytest

_FIGURES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Make room for the figures."""
    config.stash[_FIGURES] = []


@pytest.fixture
def tell(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Note a line for the end of the run."""
    return pytestconfig.stash[_FIGURES].append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the figures."""
    if config.stash[_FIGURES]:
        terminalreporter.section("what it costs")
        for line in config.stash[_FIGURES]:
            terminalreporter.write_line(line)
