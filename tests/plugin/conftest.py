"""The fixtures that every test of the plugin starts from."""

import os

import pytest

from tests.plugin.gate_project import GateProject


@pytest.fixture(autouse=True)
def _no_outer_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a pytest that a test starts not take itself for the xdist worker which runs the test."""
    for name in [each for each in os.environ if each.startswith("PYTEST_XDIST_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def project(pytester: pytest.Pytester) -> GateProject:
    """An empty gate project."""
    return GateProject(pytester)
