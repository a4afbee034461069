"""Every registered fault on every registered wire, streaming or not, as a bare socket sees it.

A cell in which a fault has no meaning is skipped with the fault's own reason. Faults that leave the supplier alive
share one process, in which each request says which fault it is to meet.
"""

import os
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase import registry
from pytest_regcase.case_files.simulations import built_in_folder, load_simulation
from pytest_regcase.records.wire import Delivery, NotApplicable
from pytest_regcase.supplier.inject import fault_spec, wire_entries
from pytest_regcase.supplier.spec import FaultSpec
from tests.conftest import REPOSITORY
from tests.supplier.cells import (
    SHORT,
    WIRE_REQUESTS,
    ask,
    declares_of,
    delivered,
    differences,
    is_refused,
    look,
    simulation,
)
from tests.supplier.faults.any_fault import ENTRY, model_for
from tests.supplier.serving import Serving

WIRES = sorted(registry.names("wires"))


def variants() -> Iterator[Any]:
    """Every kind with its defaults, and with the settings of every built-in simulation that has some."""
    for kind in sorted(registry.names("faults")):
        yield pytest.param(kind, SHORT.get(kind, {}), id=kind)
    for path in sorted(built_in_folder().glob("*.toml")):
        fault = load_simulation(path).simulation.fault
        if fault.settings and fault.kind not in SHORT:
            yield pytest.param(fault.kind, hurried(fault.settings), id=path.stem)


def hurried(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with every pause made short."""
    return {key: min(each, 0.05) if isinstance(each, float) else each for key, each in settings.items()}


class Shared:
    """The supplier of all cells that leave it alive."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.connections = count(1)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(REPOSITORY), prepend=os.pathsep)
        fault = FaultSpec("any_fault", ENTRY, at_request=1)
        serving = Serving(tmp_path_factory.mktemp("matrix"), wires=wire_entries(), fault=fault)
    with serving:
        yield Shared(serving)


def test_every_wire_has_a_request_here() -> None:
    assert set(WIRES) == set(WIRE_REQUESTS)


@pytest.mark.parametrize("streaming", [pytest.param(False, id="whole"), pytest.param(True, id="stream")])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("kind", "settings"), [*variants()])
def test_bytes_and_close_are_as_declared(
    kind: str, settings: dict[str, Any], wire: str, streaming: bool, shared: Shared, tmp_path: Path
) -> None:
    declares = declares_of(kind, settings)
    declared = declares(wire, streaming)
    if isinstance(declared, NotApplicable):
        pytest.skip(f"{kind} on {wire}: {declared.reason}")
    if declared.then in ("killed", "refused"):
        meet_the_last(kind, settings, wire, streaming, declared, tmp_path)
        return
    serving, number = shared.serving, next(shared.connections)
    model = model_for(registry.names("faults")[kind].value, settings)
    with serving.client() as client:
        ask(client, serving, wire, streaming=streaming, model=model)
        seen = look(client, serving, declared, requests=number)
    assert differences(seen, declared) == []
    serving.wait_logged("closed", number)
    assert delivered(declares, serving.events(), connection=number) == (True, None)


def meet_the_last(
    kind: str, settings: dict[str, Any], wire: str, streaming: bool, declared: Delivery, folder: Path
) -> None:
    """Meet a fault that ends the supplier, in a process of its own."""
    spec = fault_spec(simulation(kind, settings), failing_step=1)
    with Serving(folder, wires=wire_entries(), fault=spec) as serving:
        with serving.client() as client:
            ask(client, serving, wire, streaming=streaming)
            seen = look(client, serving, declared, requests=1)
            assert differences(seen, declared) == []
            if declared.then == "refused":
                assert is_refused(serving.port), "a retry would have slipped in"
        # The kernel takes what a killed process held one by one.
        serving.wait_for(lambda: is_refused(serving.port))
        events = serving.stop()
    assert delivered(declares_of(kind, settings), events) == (True, None)
