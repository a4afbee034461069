"""The fixture that every test of the plugin starts from."""

import pytest

from tests.plugin.gate_project import GateProject


@pytest.fixture
def project(pytester: pytest.Pytester) -> GateProject:
    """An empty gate project."""
    return GateProject(pytester)
