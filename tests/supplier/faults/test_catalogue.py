"""The built-in simulations: every fault has one, and each says what would tell, and where it was seen."""

import re
from importlib.metadata import distribution
from itertools import product
from pathlib import Path

import pytest

from pytest_regcase import registry
from pytest_regcase.case_files.simulations import built_in_folder, load_simulation
from pytest_regcase.records.wire import Delivery
from pytest_regcase.supplier.inject import declares_for, fault_spec

PATHS = sorted(built_in_folder().glob("*.toml"))
IDS = [path.stem for path in PATHS]


def test_every_fault_of_ours_has_a_simulation() -> None:
    ours = {each.name for each in distribution("pytest-regcase").entry_points if each.group.endswith(".faults")}
    assert ours <= set(registry.names("faults"))
    assert ours <= {load_simulation(path).simulation.fault.kind for path in PATHS}


@pytest.mark.parametrize("path", PATHS, ids=IDS)
def test_a_simulation_can_be_injected_as_it_stands(path: Path) -> None:
    simulation = load_simulation(path).simulation
    spec = fault_spec(simulation, failing_step=3)
    assert (spec.kind, spec.at_step) == (simulation.fault.kind, 1)
    declares = declares_for(simulation)
    cells = product(registry.names("wires"), (False, True))
    assert any(isinstance(declares(wire, streaming), Delivery) for wire, streaming in cells)


@pytest.mark.parametrize("path", PATHS, ids=IDS)
def test_a_simulation_says_what_it_does_not_show_and_what_would_tell(path: Path) -> None:
    simulation = load_simulation(path).simulation
    assert re.fullmatch(r"[a-z0-9-]+-v\d+", simulation.id)
    assert simulation.unresolved_questions[0] == "this fixture tests one hypothesis only"
    assert len(simulation.unresolved_questions) > 1
    assert simulation.fingerprint.supports
    assert simulation.fingerprint.refutes
    assert all(re.fullmatch(r"[\w.-]+(/[\w.-]+)?#\d+", each) for each in simulation.sources), simulation.sources
    assert simulation.sources
