"""From a simulation file to what the supplier process is told. Runs in the parent, so it knows the records.

Imports no fault before it is needed; the registry finds them.
"""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from itertools import product
from typing import Any, get_type_hints

from pydantic import ConfigDict, ValidationError, create_model

from pytest_regcase import registry
from pytest_regcase.errors import FileError
from pytest_regcase.records.simulation import Simulation
from pytest_regcase.records.wire import Delivery, NotApplicable
from pytest_regcase.supplier.protocol import Fault
from pytest_regcase.supplier.replies import count_replies, resolve_failing_step
from pytest_regcase.supplier.spec import FaultSpec, Line


def fault_spec(
    simulation: Simulation,
    *,
    failing_step: int | None,
    lines: Sequence[Line] = (),
    pass_through: bool = False,
) -> FaultSpec:
    """Return where, how often and with what the fault of `simulation` is injected.

    ``at = "failing-step"`` is the case's failing step, else the first step without a recorded reply; where nothing
    is recorded it is the first request.

    Raises:
        UnknownName, ExtensionError: nobody has registered the kind, or it is broken.
        FileError: the settings are not those of this fault.
    """
    settings = check_settings(simulation)
    at = simulation.fault.at
    lasts = simulation.fault.lasts
    step = at if isinstance(at, int) else None
    if at == "failing-step":
        step = resolve_failing_step(failing_step, count_replies(lines), live=pass_through)
    return FaultSpec(
        kind=simulation.fault.kind,
        entry=registry.names("faults")[simulation.fault.kind].value,
        at_step=step,
        at_request=at["request"] if isinstance(at, dict) else None,
        lasts=lasts if isinstance(lasts, int) else None,
        settings=settings,
    )


def check_settings(simulation: Simulation) -> dict[str, Any]:
    """Return the settings of the fault, checked against its settings dataclass.

    Raises:
        UnknownName, ExtensionError: nobody has registered the kind, or it is broken.
        FileError: a setting that the fault has not, or one of another type, one line each; a value that it
            refuses; or a number of requests after which a fault heals that ends the supplier.
    """
    kind = simulation.fault.kind
    cls = registry.load("faults", kind)
    given = dict(simulation.fault.settings)
    hints = get_type_hints(cls.settings_model)
    wanted: dict[str, Any] = {
        each.name: (hints[each.name], ... if each.default is MISSING and each.default_factory is MISSING else None)
        for each in fields(cls.settings_model)
    }
    model = create_model(kind, __config__=ConfigDict(strict=True, extra="forbid", allow_inf_nan=False), **wanted)
    try:
        model.model_validate(given)
    except ValidationError as error:
        known = ", ".join(hints) or "no settings"
        raise FileError(
            [
                f"simulation {simulation.id}: fault.settings.{'.'.join(map(str, each['loc']))}: {each['msg']};"
                f" {kind} takes {known}"
                for each in error.errors()
            ]
        ) from error
    try:
        fault = cls(cls.settings_model(**given))
    except ValueError as error:
        raise FileError([f"simulation {simulation.id}: fault.settings: {error}"]) from error
    _check_lasts(simulation, fault)
    return given


def _check_lasts(simulation: Simulation, fault: Fault) -> None:
    """Refuse a number of requests for a fault that ends the supplier: nobody is left to answer the next one."""
    if not simulation.fault.heals:
        return
    for wire, streaming in product(registry.names("wires"), (False, True)):
        declared = fault.declares(wire, streaming)
        if isinstance(declared, Delivery) and declared.then in ("killed", "refused"):
            raise FileError(
                [
                    f"simulation {simulation.id}: fault.lasts = {simulation.fault.lasts}; {fault.kind} ends the"
                    ' supplier, so nothing heals it; allowed: "for-ever"'
                ]
            )


def declares_for(simulation: Simulation) -> Callable[[str, bool], Delivery | NotApplicable]:
    """Return what `wire_facts` asks: what the wire log must show, by wire and streaming, for a delivered fault.

    Raises:
        UnknownName, ExtensionError, FileError: as `check_settings`.
    """
    settings = check_settings(simulation)
    cls = registry.load("faults", simulation.fault.kind)
    fault: Fault = cls(cls.settings_model(**settings))
    return fault.declares


def wire_entries() -> tuple[str, ...]:
    """Return the entries of all registered wires, for `SupplierSpec.wires`."""
    return tuple(point.value for point in registry.names("wires").values())
