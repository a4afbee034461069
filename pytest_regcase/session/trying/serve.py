"""One supplier started by hand: what it answers with, its life until it is interrupted, what its log shows then.

Never prints: whoever calls is handed each event as it is recorded.
"""

import json
import selectors
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pytest_regcase import registry
from pytest_regcase.case_files import LoadedCase, find_case, find_simulation, load_case, writing
from pytest_regcase.config import ClosingReply, Project, UpstreamConfig
from pytest_regcase.errors import MachineryError, UsageRefused
from pytest_regcase.records.simulation import Simulation
from pytest_regcase.records.wire import NotApplicable, WireEvent, WireFacts
from pytest_regcase.recovery.wire_facts import wire_facts
from pytest_regcase.session.attempts.supply import supplier_spec
from pytest_regcase.session.ended_by_signal import ended_by_a_signal
from pytest_regcase.session.planning.opening import make_session_folder
from pytest_regcase.supplier.inject import declares_for
from pytest_regcase.supplier.process import SupplierProcess
from pytest_regcase.supplier.reach import resolve
from pytest_regcase.supplier.replies import count_replies, steps_followed
from pytest_regcase.supplier.spec import SupplierSpec
from pytest_regcase.supplier.wire_log import read_wire_log

FIXED_TEXT = "This is a fixed answer of regcase serve."
"""What is answered without a case."""
_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Served:
    """What is to be served, before anything is started."""

    loaded: LoadedCase | None
    simulation: Simulation | None
    spec: SupplierSpec
    key_name: str | None
    """Name of the variable that holds a real supplier's key."""
    notices: tuple[str, ...]
    """On which of the wires the fault has no meaning, and why."""

    @property
    def replies(self) -> int:
        """How many recorded replies are replayed."""
        return 0 if self.spec.pass_through is not None else count_replies(self.spec.lines)


def to_be_served(
    project: Project,
    *,
    case: str | None = None,
    simulation_id: str | None = None,
    wires: Sequence[str] = (),
    port: int = 0,
    reach: str | None = None,
) -> Served:
    """Return what `serve` starts: the replies of `case` (else a fixed text) and the fault of a simulation.

    `wires` are those that are spoken, by default all that are installed. Makes the folder of the wire log.

    Raises:
        UnknownName: there is no such case, simulation or wire.
        FileError: the case or the simulation holds something that is not allowed.
        UsageRefused: the fault means nothing on any of the wires, `reach` is no address of this machine, or the
            case's replies are those of a real supplier and none is configured.
    """
    loaded = load_case(find_case(project.case_folders, case)) if case is not None else None
    simulation = find_simulation(project, simulation_id).simulation if simulation_id is not None else None
    spoken = {name: registry.names("wires")[name].value for name in _known_wires(wires)}
    upstream = _upstream(project, loaded)
    notices = _meaningless(simulation, tuple(spoken))
    agent = project.config.agents.get(loaded.case.agent) if loaded is not None else None
    where = reach if reach is not None else project.config.supplier.reach
    resolve(where)  # refused before a folder is made for its log
    spec = supplier_spec(
        loaded,
        simulation,
        wire_log=_new_folder(project) / "wire.jsonl",
        t0=0.0,
        task_text=loaded.task_text() if loaded is not None else None,
        closing=ClosingReply(text=FIXED_TEXT) if loaded is None else agent.closing_reply if agent else None,
        upstream=upstream,
        reach=where,
    )
    spec = replace(spec, wires=tuple(spoken.values()), port=port, one_conversation=loaded is None)
    return Served(loaded, simulation, spec, upstream.api_key_env if upstream is not None else None, notices)


def serve(
    served: Served,
    *,
    on_start: Callable[[SupplierProcess], None],
    on_event: Callable[[WireEvent], None],
) -> WireFacts:
    """Run the supplier until Ctrl-C (or SIGTERM), and return what its whole wire log shows.

    A supplier that its fault ended leaves the port refused until then. `t` in the events counts from the call.

    Raises:
        UsageRefused: the port cannot be had.
        MachineryError: it did not come up, or broke down.
    """
    spec = replace(served.spec, t0=time.monotonic())
    tail = _Tail(Path(spec.wire_log), on_event)
    trouble: str | None = None
    try:
        supplier = SupplierProcess.start(spec, env_key=served.key_name)
    except OSError as error:
        raise UsageRefused(
            f"Couldn't listen on port {spec.port}: {error.strerror or error}.\nName another one, or none: --port."
        ) from error
    with supplier, ended_by_a_signal():
        try:
            on_start(supplier)
            trouble = _run(supplier, tail)
        except KeyboardInterrupt:
            supplier.stop()
    tail.read()
    if trouble is not None:
        raise MachineryError(f"Couldn't go on: {trouble}.\nIts own words are in {Path(spec.wire_log).parent}.")
    last_step, failing_step = steps_followed(spec)
    return wire_facts(
        read_wire_log(spec.wire_log),
        declares=declares_for(served.simulation) if served.simulation is not None else None,
        ended_by_us_at=None,
        last_step=last_step,
        failing_step=failing_step,
    )


def _run(supplier: SupplierProcess, tail: "_Tail") -> str:
    """Stay until an interrupt; returns what broke down, where something did."""
    with selectors.DefaultSelector() as selector:
        selector.register(supplier.fileno(), selectors.EVENT_READ)
        while True:
            if selector.select(_LOOK_SECONDS):
                for message in supplier.read_messages():
                    if message["say"] == "first-fault":
                        supplier.proceed()
                    elif message["say"] == "trouble":
                        return str(message["text"])
                    elif message["say"] == "exited":
                        selector.unregister(supplier.fileno())
            tail.read()


class _Tail:
    """Hands on the events of a wire log as they are written."""

    def __init__(self, path: Path, on_event: Callable[[WireEvent], None]) -> None:
        self._path = path
        self._on_event = on_event
        self._offset = 0

    def read(self) -> None:
        """Hand on the whole events that have come since the last call.

        Each is written at once, but a file grows page by page: who reads meanwhile may see half a line.
        """
        with self._path.open("rb") as log:
            log.seek(self._offset)
            *whole, _ = log.read().split(b"\n")
        self._offset += sum(len(line) + 1 for line in whole)
        for line in whole:
            self._on_event(json.loads(line))


def _known_wires(asked: Sequence[str]) -> tuple[str, ...]:
    known = registry.names("wires")
    for name in asked:
        registry.load("wires", name)
    return tuple(dict.fromkeys(asked)) or tuple(known)


def _upstream(project: Project, loaded: LoadedCase | None) -> UpstreamConfig | None:
    if loaded is None or not loaded.case.passes_through:
        return None
    if project.config.upstream is None:
        raise UsageRefused(
            f"Couldn't serve {loaded.id}: its replies are those of a real supplier, and there is no"
            " [tool.regcase.upstream].\nAdd one to pyproject.toml."
        )
    return project.config.upstream


def _meaningless(simulation: Simulation | None, wires: Sequence[str]) -> tuple[str, ...]:
    """Return on which of `wires` the fault has no meaning.

    Raises:
        UsageRefused: on none of them it has one.
    """
    if simulation is None:
        return ()
    declares = declares_for(simulation)
    notices: list[str] = []
    meaningful = False
    for wire in wires:
        whole, streamed = declares(wire, False), declares(wire, True)
        meaningful |= not (isinstance(whole, NotApplicable) and isinstance(streamed, NotApplicable))
        if isinstance(whole, NotApplicable) and isinstance(streamed, NotApplicable):
            notices.append(f"not on {wire}: {whole.reason}")
        elif isinstance(whole, NotApplicable):
            notices.append(f"only in streams on {wire}: {whole.reason}")
        elif isinstance(streamed, NotApplicable):
            notices.append(f"not in streams on {wire}: {streamed.reason}")
    if not meaningful:
        raise UsageRefused(
            f"Couldn't serve {simulation.id}: {'; '.join(notices)}.\nName another wire, or another simulation."
        )
    return tuple(notices)


def _new_folder(project: Project) -> Path:
    folder = project.root / ".regcase" / "serve" / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    with writing(folder):
        make_session_folder(project, folder)
    return folder
