"""The loop beside a running attempt: takes the notes at the first faulted request, holds the budgets.

It sees two processes, the supplier and the agent's supervisor, and judges nothing.
"""

import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pytest_regcase.records.observed import FaultNotes
from pytest_regcase.records.words import EndedBy
from pytest_regcase.supplier.process import SupplierProcess

CONTROL_GRACE_SECONDS = 10.0
"""How long a control may go on after it asked for the failing step; how it ends is not judged."""
END_GRACE_SECONDS = 2.0
"""Between our SIGTERM and our SIGKILL."""


class Agent(Protocol):
    """What is watched: a process of the agent, or a function of the test process."""

    done: bool
    """Nothing of it runs any more."""

    @property
    def has_exited(self) -> bool:
        """Whether it has ended by itself; what it started may not have."""

    def fileno(self) -> int:
        """Return what to wait on."""

    def read_messages(self) -> object:
        """Take in what came, without waiting."""

    def end(self, grace_seconds: float, /, *, ended_by: EndedBy) -> object:
        """End it, as far as that can be done."""


@dataclass(frozen=True)
class Budgets:
    """Seconds, by the agent's clock, after which the agent is ended."""

    cap_seconds: float
    deadline_seconds: float
    ends_by_itself: bool
    """The closing reply is the agent's own: a control must end by itself, within the cap."""
    time_scale: float = 1
    """How many times as fast the agent's clock runs from the fault on."""


@dataclass
class Watched:
    """What the loop saw; times are on the wire's clock."""

    notes: FaultNotes | None = None
    ended_by_us_at: float | None = None
    trouble: str | None = None


def watch(
    supplier: SupplierProcess,
    agent: Agent,
    budgets: Budgets,
    take_notes: Callable[[float], FaultNotes],
    *,
    t0: float,
) -> Watched:
    """Stay with the attempt until the agent and everything it started has ended.

    The supplier waits with the fault until `take_notes` is done, so partial work is what lay there before it.
    """
    seen = Watched()
    ends: dict[EndedBy, float] = {"cap": t0 + budgets.cap_seconds}
    with selectors.DefaultSelector() as selector:
        selector.register(supplier.fileno(), selectors.EVENT_READ, supplier)
        selector.register(agent.fileno(), selectors.EVENT_READ, agent)
        supplier_is_open = True
        while not agent.done:
            now = time.monotonic()
            due = [name for name, at in ends.items() if at <= now]
            if due and not agent.has_exited:
                seen.ended_by_us_at = now - t0
                agent.end(END_GRACE_SECONDS, ended_by=due[0])
                break
            pending = [at - now for at in ends.values() if at > now]
            for key, _ in selector.select(max(min(pending, default=1.0), 0.0)):
                if key.data is agent:
                    agent.read_messages()
                    continue
                for message in supplier.read_messages():
                    _act(message, seen, ends, budgets, take_notes, supplier, t0)
                if supplier.closed and supplier_is_open:
                    selector.unregister(key.fd)
                    supplier_is_open = False
    return seen


def _act(
    message: dict[str, object],
    seen: Watched,
    ends: dict[EndedBy, float],
    budgets: Budgets,
    take_notes: Callable[[float], FaultNotes],
    supplier: SupplierProcess,
    t0: float,
) -> None:
    says = message.get("say")
    if says == "first-fault":
        seen.notes = take_notes(time.monotonic() - t0)
        # From here: a look at a large work tree takes seconds, in which there is no fault yet.
        _begin(ends, budgets, t0)
        supplier.proceed()
    elif says == "clock-switched":
        # What passed since is real time: a twentieth of a second of it would else be minutes of the agent's.
        _begin(ends, budgets, t0)
    elif says == "control-reached" and not budgets.ends_by_itself:
        ends["control-done"] = time.monotonic() + CONTROL_GRACE_SECONDS
    elif says == "clock-missed":
        # In real time it could take hours.
        ends["cut-short"] = time.monotonic()
        seen.trouble = str(message["text"])
    elif says == "trouble":
        seen.trouble = str(message.get("text", "the supplier reported trouble without a text"))


def _begin(ends: dict[EndedBy, float], budgets: Budgets, t0: float) -> None:
    """Let the deadline begin now, and what is left of the cap run by the agent's clock."""
    now = time.monotonic()
    ends["deadline"] = now + budgets.deadline_seconds / budgets.time_scale
    ends["cap"] = now + (t0 + budgets.cap_seconds - now) / budgets.time_scale
