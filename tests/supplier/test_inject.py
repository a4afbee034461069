from typing import Any

import pytest

from pytest_regcase.errors import FileError, UnknownName
from pytest_regcase.records.simulation import Simulation
from pytest_regcase.records.wire import Delivery
from pytest_regcase.supplier.inject import check_settings, declares_for, fault_spec, wire_entries
from pytest_regcase.supplier.server import load_entry, load_fault
from tests.supplier.serving import TWO_STEPS


def simulation(**fault: Any) -> Simulation:
    return Simulation.model_validate(
        {"id": "x-v1", "hypothesis": "hidden", "title": "t", "fault": {"kind": "empty_answer", **fault}}
    )


@pytest.mark.parametrize(
    ("at", "failing_step", "step", "request_number"),
    [("failing-step", 7, 7, None), ("failing-step", None, 3, None), (2, 7, 2, None), ({"request": 4}, 7, None, 4)],
)
def test_where_a_fault_fires(
    at: Any, failing_step: int | None, step: int | None, request_number: int | None
) -> None:
    spec = fault_spec(simulation(at=at), failing_step=failing_step, lines=TWO_STEPS)
    assert (spec.at_step, spec.at_request) == (step, request_number)


def test_without_a_recorded_reply_the_first_request_is_met() -> None:
    assert fault_spec(simulation(), failing_step=7).at_step == 1
    assert fault_spec(simulation(), failing_step=7, pass_through=True).at_step == 7


@pytest.mark.parametrize(("lasts", "expected"), [("for-ever", None), (3, 3)])
def test_how_long_it_lasts(lasts: Any, expected: int | None) -> None:
    assert fault_spec(simulation(lasts=lasts), failing_step=1).lasts == expected


def test_settings_are_checked_and_reach_the_fault() -> None:
    chosen = simulation(settings={"finish": "length"})
    spec = fault_spec(chosen, failing_step=1)
    assert load_fault(spec).settings.finish == "length"  # type: ignore[attr-defined]
    assert declares_for(chosen)("openai-chat", True) == Delivery(answer="complete", status=200, then="answered")


@pytest.mark.parametrize("settings", [{"finish": 3}, {"finnish": "x"}])
def test_wrong_settings_name_the_simulation_and_the_key(settings: dict[str, Any]) -> None:
    with pytest.raises(FileError, match=rf"x-v1.*{next(iter(settings))}.*empty_answer takes finish"):
        check_settings(simulation(settings=settings))


@pytest.mark.parametrize("kind", ["process_killed", "memory_exhausted", "connection_refused", "engine_dead"])
def test_what_ends_the_supplier_cannot_heal(kind: str) -> None:
    assert fault_spec(simulation(kind=kind), failing_step=1).lasts is None
    for read in (check_settings, declares_for):
        with pytest.raises(FileError, match=rf'x-v1: fault.lasts = 2; {kind} ends .* allowed: "for-ever"'):
            read(simulation(kind=kind, lasts=2))


def test_an_unknown_kind_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="no_answer"):
        fault_spec(simulation(kind="nonsense"), failing_step=1)


def test_every_registered_wire_can_be_loaded() -> None:
    assert "openai-chat" in [load_entry(each).name for each in wire_entries()]


@pytest.mark.parametrize(
    ("kind", "settings", "says"),
    [
        ("keep_alive_only", {"every_seconds": 0.0}, "every_seconds = 0.0; allowed: more than 0"),
        ("byte_trickle", {"seconds_a_byte": 0}, "seconds_a_byte = 0; allowed: more than 0"),
        ("slow_answer", {"seconds": -1.0}, "seconds = -1.0; allowed: more than 0"),
        ("gateway_timeout", {"pause_seconds": -1.0}, "pause_seconds = -1.0; allowed: 0 or more"),
        ("rate_limited", {"wait_seconds": -1.0}, "wait_seconds = -1.0; allowed: 0 to 315360000"),
        ("rate_limited", {"wait_seconds": 1e12}, "wait_seconds = 1000000000000.0; allowed: 0 to 315360000"),
    ],
)
def test_a_time_that_is_none_is_refused_before_anything_runs(
    kind: str, settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(FileError) as caught:
        check_settings(simulation(kind=kind, settings=settings))
    assert caught.value.problems == [f"simulation x-v1: fault.settings: {says}"]


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_an_endless_time_is_refused(value: float) -> None:
    with pytest.raises(FileError, match=r"x-v1: fault\.settings\.wait_seconds: .*finite number"):
        check_settings(simulation(kind="rate_limited", settings={"wait_seconds": value}))
