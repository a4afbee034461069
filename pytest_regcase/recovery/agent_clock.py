"""The agent's clock: from real time, in which the wire log is written, to the time that the agent lives in.

Pure. Everything behind it, the facts and the judge, knows the agent's time alone.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_regcase.records.wire import WireEvent
from pytest_regcase.recovery.wire_requests import number


class AgentClock(NamedTuple):
    """Real time up to `fast_from`, `scale` times as fast from there on."""

    fast_from: float | None = None
    """`t` of the switch; None: it was never made."""
    scale: float = 1.0

    def at(self, t: float) -> float:
        """Return the agent's time at the real time `t`."""
        if self.fast_from is None or t <= self.fast_from:
            return t
        return self.fast_from + (t - self.fast_from) * self.scale


def clock_of(events: Iterable[WireEvent]) -> AgentClock:
    """Return the clock that the agent had, as the wire log shows it."""
    for event in events:
        if event.get("event") == "clock" and "missed" not in event:
            return AgentClock(number(event.get("t")), number(event.get("scale")))
    return AgentClock()


def in_agent_time(events: Sequence[WireEvent], clock: AgentClock) -> tuple[WireEvent, ...]:
    """Return the events with every moment and every span on the agent's clock."""
    return tuple(_moved(event, clock) for event in events)


def _moved(event: WireEvent, clock: AgentClock) -> WireEvent:
    t = number(event.get("t"))
    moved: WireEvent = event | {"t": clock.at(t)}
    if "first_byte" in event:
        moved["first_byte"] = clock.at(number(event["first_byte"]))
    if "held_seconds" in event:
        moved["held_seconds"] = round(clock.at(t) - clock.at(t - number(event["held_seconds"])), 4)
    return moved
