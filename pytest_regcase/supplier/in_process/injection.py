"""`inject`: one fault in the place of a supplier that an agent takes as a callable, and what came of it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from traceback import format_exception
from types import EllipsisType
from typing import Any, get_args

from pytest_regcase import registry
from pytest_regcase.case_files import find_simulation
from pytest_regcase.config import load_project
from pytest_regcase.errors import UnknownName, UsageRefused
from pytest_regcase.records.attempt import Exit
from pytest_regcase.records.expected_recovery import ExpectedRecovery
from pytest_regcase.records.observed import Declared, FaultNotes, Observed
from pytest_regcase.records.simulation import Simulation
from pytest_regcase.records.trial import Trial
from pytest_regcase.records.wire import Delivery, NotApplicable, WireEvent, WireFacts
from pytest_regcase.records.words import HypothesisClass
from pytest_regcase.recovery.judge import Judgement, judge
from pytest_regcase.recovery.wire_facts import wire_facts
from pytest_regcase.supplier.in_process.callables import Callables
from pytest_regcase.supplier.in_process.reading import CallReader, ReadText
from pytest_regcase.supplier.in_process.turns import CHANNEL, Turns
from pytest_regcase.supplier.in_process.ways import NOT_GIVEN, ErrorSource, Means, Way, way_of
from pytest_regcase.supplier.inject import fault_spec
from pytest_regcase.supplier.spec import PassThrough, SupplierSpec


def inject(
    supplier: Callable[..., Any],
    simulation: Simulation | str,
    *,
    errors: Mapping[str, ErrorSource] | None = None,
    deadline_seconds: float | None = None,
    empty: Any = NOT_GIVEN,
    failing_step: int | None = None,
    task_text: str | None = None,
    wire: str = "openai-chat",
    read: ReadText | None = None,
    wire_log: Path | None = None,
) -> "Injection":
    """Return `supplier` with the fault of `simulation` in it: give the agent `.supplier` of what comes back.

    `supplier` is a function, an async function, or a generator function of either sort; the calls before the
    fault, and those after one that heals, reach it. `simulation` is one, or the id of a built-in one or of one of
    the project's.

    A callable has no bytes, so a fault is shown as its caller would see it. `errors` names the exceptions that
    your client library raises, by fault kind (``rate_limited``) or hypothesis class (``auth``).
    `deadline_seconds` is how long the agent waits for an answer that does not come; then the exception for it is
    raised (`TimeoutError` where `errors` names none). `empty` is what an empty answer looks like. A stream breaks
    off behind its first part with a text. What cannot be shown is passed through healthy, and `facts` says that it
    was not delivered and why.

    The fault meets step `failing_step` (default: the first call). Every call belongs to the main conversation,
    unless `task_text` is given: then the one with tools is it, else the one that holds that text, and the others
    are side calls. Replies are texts, objects or JSON of the API of `wire`, or what `read` returns the text of.

    Raises:
        UnknownName: there is no such simulation or wire, or `errors` has a key that is no kind and no class.
        UsageRefused: `deadline_seconds` is no time.
        FileError: the simulation holds something that is not allowed.
    """
    if not isinstance(simulation, Simulation):
        simulation = find_simulation(load_project(Path.cwd()), simulation).simulation
    if deadline_seconds is not None and not deadline_seconds > 0:
        raise UsageRefused(f"Couldn't wait for {deadline_seconds} s.\nAllowed: more than 0.")
    means = Means(_known_errors(errors or {}), deadline_seconds, empty)
    spec = SupplierSpec(
        wire_log="",
        t0=0.0,
        token="",
        failing_step=failing_step,
        task_text=task_text,
        one_conversation=task_text is None,
        fault=fault_spec(simulation, failing_step=failing_step, pass_through=True),
        pass_through=PassThrough(base_url=CHANNEL, wire=wire),
    )
    reader = CallReader(registry.load("wires", wire)(), read)
    return Injection(supplier, simulation, means, spec, reader, wire_log)


class Injection:
    """A supplier with a fault in it, and the record of every call. Made by `inject`."""

    def __init__(
        self,
        supplier: Callable[..., Any],
        simulation: Simulation,
        means: Means,
        spec: SupplierSpec,
        reader: CallReader,
        wire_log: Path | None,
    ) -> None:
        self.simulation = simulation
        self._means = means
        self._spec = spec
        self._turns = Turns(spec, wire_log)
        self.supplier = Callables(supplier, self._turns, reader, self._way, means.empty).make()
        """What the agent is given: a callable of the same kind as the one that was given."""

    @property
    def events(self) -> tuple[WireEvent, ...]:
        """The wire log so far: as of a supplier on a socket, with ``channel = "in-process"`` and no bytes."""
        return self._turns.events

    def declares(self, wire: str, streaming: bool) -> Delivery | NotApplicable:  # noqa: ARG002 - a fault's signature
        """Say what the log must show for the fault to count as delivered, or why it cannot be shown in process."""
        way = way_of(self.simulation, self._means, streaming=streaming)
        return way if isinstance(way, NotApplicable) else way.delivery

    def facts(self) -> WireFacts:
        """Return what the log shows. Call it when the agent is done."""
        assert self._spec.fault is not None
        return wire_facts(
            self.events,
            declares=self.declares,
            ended_by_us_at=None,
            last_step=None,
            failing_step=self._spec.fault.at_step,
        )

    def judge(
        self,
        expected: ExpectedRecovery | None = None,
        *,
        raised: BaseException | None = None,
        answer: str | EllipsisType | None = ...,
        status: str | EllipsisType | None = ...,
        logged: str = "",
        artefact: Trial | None = None,
    ) -> Judgement:
        """Judge the agent as an attempt is judged, by what it did and by what is told here of how it ended.

        `expected` defaults to the expectations of a case that says nothing. `raised` is what the agent raised in
        the end; `answer` and `status` what it handed out (None: nothing; left out: there is no such place);
        `logged` what it wrote after the fault. Without a place to look at, a finding is not-observable.
        """
        facts = self.facts()
        first = facts.first_fault_seconds
        told = {"stderr": "".join(format_exception(raised))} if raised is not None else {}
        observed = Observed(
            kind="simulation",
            wire=facts,
            exit=Exit(code=0 if raised is None else 1),
            ended_seconds=self._turns.now(),
            notes=FaultNotes(t=first) if first is not None else None,
            artefact=artefact,
            declared=Declared(
                answer=None if answer is ... else answer,
                answer_declared=answer is not ...,
                status=None if status is ... else status,
                status_declared=status is not ...,
            ),
            can_show=artefact.can_show if artefact is not None else (),
            written_after={**told, "log": logged},
            task_text=self._spec.task_text,
            fault_heals=self.simulation.fault.heals,
        )
        asked = (expected if expected is not None else ExpectedRecovery()).under(self.simulation.hypothesis)
        return judge(asked, observed, None)

    def _way(self, streaming: bool) -> Way | None:
        way = way_of(self.simulation, self._means, streaming=streaming)
        return way if isinstance(way, Way) else None


def _known_errors(errors: Mapping[str, ErrorSource]) -> Mapping[str, ErrorSource]:
    known = (*registry.names("faults"), *get_args(HypothesisClass))
    for name in errors:
        if name not in known:
            raise UnknownName(
                f"Couldn't tell when to raise errors[{name!r}]: it is no fault kind and no hypothesis class.\n"
                f"Known: {', '.join(known)}."
            )
    return errors
