"""Stopping: when the agent stopped asking its supplier, on the wire's clock.

Time to end is not time to stop: a harness may render a traceback for a minute after its last call. Must not import
the expectations.
"""

from typing import Literal, NamedTuple

from pytest_regcase.records.observed import Observed
from pytest_regcase.recovery.marks import ended_by_us, mark_of


class Stop(NamedTuple):
    """When and how the agent stopped."""

    seconds: float | None
    """From the first faulted request to the stop; None when it did not stop by itself, or that is not known."""
    watched_seconds: float | None
    """From the first faulted request to the end of the process; None without a faulted request."""
    how: Literal["let-go", "process-end", "still-waiting", "ended-by-us", "not-seen"]


def stop_of(observed: Observed) -> Stop:
    """Return when the agent let go of its last open request or sent its last one, whichever is later.

    A client that still waits when we end it has not stopped, though it sends nothing; nor has an agent that we end
    while it may sleep in a back-off, unless its own final status was already written. Once the supplier is gone,
    connects leave no trace with us: unless its own process noted them, the end of the process is the stop.
    """
    wire = observed.wire
    first = wire.first_fault_seconds
    unseen = wire.server_gone and wire.refused_connects is None
    if first is None:
        return Stop(None, None, "not-seen")
    watched = max(0.0, observed.ended_seconds - first)
    if ended_by_us(observed):
        if wire.open_at_end > 0 or (wire.last_release_seconds is None and not unseen):
            return Stop(None, watched, "still-waiting")
        if mark_of(observed).says == "nothing":
            return Stop(None, watched, "ended-by-us")
        if unseen or wire.last_release_seconds is None:
            return Stop(None, watched, "not-seen")
    elif unseen or wire.last_release_seconds is None:
        return Stop(watched, watched, "process-end")
    return Stop(max(0.0, wire.last_release_seconds - first), watched, "let-go")
