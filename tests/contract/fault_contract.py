"""What every fault must keep. Inherit from `FaultContract` in a test module and say which kind it is about::

    class TestMyFault(FaultContract):
        @pytest.fixture
        def kind(self) -> str:
            return "my_fault"

The kind must be registered (entry point group ``pytest_regcase.faults``). Where its defaults take long, override
the fixture `settings` too.
"""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, is_dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase import registry
from pytest_regcase.records.wire import Delivery, NotApplicable, WireEvent
from pytest_regcase.recovery.delivery import Declares
from pytest_regcase.recovery.wire_facts import wire_facts
from pytest_regcase.supplier.inject import fault_spec, wire_entries
from tests.supplier.cells import SHORT, WIRE_REQUESTS, ask, declares_of, delivered, differences, look, simulation
from tests.supplier.serving import Serving

HAPPENED = ("teapot", "silence", "fin", "rst", "killed", "killed by another", "too late")
"""What a log may show instead: a whole answer that nobody declares, a request held, closed or reset, a kill."""


class FaultContract:
    """The contract. Each test says one thing that the supplier or the judge relies on."""

    @pytest.fixture
    def kind(self) -> str:
        """Return the kind that is looked at."""
        raise NotImplementedError

    @pytest.fixture
    def settings(self, kind: str) -> dict[str, Any]:
        """Return settings with which it is quick."""
        return SHORT.get(kind, {})

    @pytest.fixture
    def declares(self, kind: str, settings: dict[str, Any]) -> Declares:
        """Return what it declares."""
        return declares_of(kind, settings)

    def test_it_goes_by_its_name_and_its_settings_are_frozen(self, kind: str, settings: dict[str, Any]) -> None:
        cls = registry.load("faults", kind)
        assert cls.kind == kind
        made = cls.settings_model(**settings)
        assert is_dataclass(made)
        for each in fields(made):
            with pytest.raises(FrozenInstanceError):
                setattr(made, each.name, None)

    def test_the_child_can_load_it_without_the_records(self, kind: str) -> None:
        assert heavy_modules_of(registry.names("faults")[kind].module) == "[]"

    def test_it_declares_a_delivery_somewhere_and_reasons_elsewhere(self, declares: Declares) -> None:
        found = [declares(wire, streaming) for wire, streaming in product(registry.names("wires"), (False, True))]
        assert any(isinstance(each, Delivery) for each in found)
        assert all(each.reason for each in found if isinstance(each, NotApplicable))

    def test_it_is_delivered_and_heals_after_as_many_requests_as_it_is_told(
        self, kind: str, settings: dict[str, Any], declares: Declares, tmp_path: Path
    ) -> None:
        cells = [*applicable(declares)]
        ends = {declared.then for _, _, declared in cells} & {"killed", "refused"}
        cells = cells[:1] if ends else cells[:2]
        lasts: dict[str, Any] = {} if ends else {"lasts": len(cells)}
        spec = fault_spec(simulation(kind, settings, **lasts), failing_step=1)
        with Serving(tmp_path, wires=wire_entries(), fault=spec) as serving:
            for number, (wire, streaming, declared) in enumerate(cells, start=1):
                with serving.client() as client:
                    ask(client, serving, wire, streaming=streaming)
                    seen = look(client, serving, declared, requests=number)
                assert differences(seen, declared) == []
            if not ends:
                serving.wait_logged("closed", len(cells))
                with serving.client() as client:
                    ask(client, serving, cells[0][0], streaming=False)
                    assert b"Done." in client.rest()
            events = serving.stop()
        facts = wire_facts(events, declares=declares, ended_by_us_at=None, last_step=None, failing_step=1)
        assert (facts.delivered, facts.why_not) == (True, None)
        assert facts.faulted_requests == len(cells)
        assert (facts.healed, facts.server_gone) == (not ends, bool(ends))
        assert facts.retries == (None if ends else len(cells))
        assert facts.steps_reached == 1, "what a fault sends is no step"
        whole = [each.text for each in facts.replies if not each.unfinished]
        assert whole == ([] if ends else ["Done."]), "nor a reply"
        assert not any(each["say"] == "trouble" for each in serving.said)

    @pytest.mark.parametrize("happened", HAPPENED)
    def test_what_it_did_not_do_is_not_delivered(self, happened: str, declares: Declares) -> None:
        for wire, streaming, declared in applicable(declares):
            expected = happened in fits(declared)
            found, why_not = delivered(declares, tuple(log_of(happened, wire, streaming=streaming)))
            assert found is expected, (wire, streaming, why_not)


def applicable(declares: Declares) -> Iterator[tuple[str, bool, Delivery]]:
    """Yield wire, streaming and what is declared, wherever the fault has a meaning."""
    for wire, streaming in product(WIRE_REQUESTS, (False, True)):
        declared = declares(wire, streaming)
        if isinstance(declared, Delivery):
            yield wire, streaming, declared


def fits(declared: Delivery) -> set[str]:
    """Name the logs of `log_of` that show what is declared."""
    fitting = set()
    if declared.answer == "none" and declared.then == "held":
        fitting.add("silence")
    if declared.not_before_seconds is not None:
        fitting.add("silence")
    if declared.answer == "none" and declared.then == "closed":
        fitting |= {declared.how} if declared.how else {"fin", "rst"}
    if declared.answer == "none" and declared.then == "killed" and not declared.out_of_memory:
        fitting |= {"killed"} if declared.how in (None, "fin") else set()
    return fitting


def log_of(happened: str, wire: str, *, streaming: bool) -> Iterator[WireEvent]:
    """Yield the log of one faulted request, as the supplier writes it."""
    place = {"conn": 1, "request": 1, "step": 1}
    asked = {
        "t": 1.0,
        "event": "request",
        "wire": wire,
        "streaming": streaming,
        "conversation": "sha256:1",
        **place,
    }
    yield asked | {"side_call": False, "phase": "before" if happened == "too late" else "faulted"}
    end = {"t": 3.0, "event": "closed", "unacknowledged": 0, **place}
    if happened == "teapot":
        answer = {"from": "fault", "status": 418, "bytes": 99, "complete": True, "parts": 1, "first_byte": 1.1}
        yield {"t": 1.1, "event": "sent", **place, **answer}
        yield end | {"by": "peer", "how": "fin"}
    elif happened == "silence":
        yield end | {"by": "peer", "how": "fin", "held_seconds": 2.0}
    elif happened in ("fin", "rst"):
        yield end | {"by": "us", "how": happened}
    elif happened.startswith("killed"):
        by = "fault" if happened == "killed" else "other"
        yield {"t": 3.0, "event": "killed", "by": by, "connect": "refused"}


@cache
def heavy_modules_of(module: str) -> str:
    """Return which modules that are slow to start `module` brings along, as a process of its own says."""
    code = f"import sys, {module}; print([each for each in ('pydantic', 'pytest', 'h11') if each in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()
