"""Connects to a supplier that is gone: it cannot count them, the agent's own process may have noted them.

Pure. The moments are those that `agents.connect_audit` read, on the agent's clock.
"""

from collections.abc import Sequence

from pytest_regcase.records.wire import WireEvent
from pytest_regcase.recovery.wire_requests import is_event, number


def refused_connects(
    connects: Sequence[float] | None, events: Sequence[WireEvent], first_fault: float | None
) -> tuple[float, ...] | None:
    """Return when the agent asked in vain: every connect beyond those that were accepted, the last ones.

    None where nothing can be said. An agent may connect behind Python's back (another language, uvloop), so that
    what is noted counts only where it covers every connection accepted up to the first faulted request. What was
    noted is an attempt, not its outcome; that it was refused follows from the supplier being gone, which is for
    the caller to know.
    """
    accepted = [number(each.get("t")) for each in events if is_event(each, "accept")]
    if connects is None or first_fault is None or not accepted:
        return None
    if _up_to(first_fault, connects) < _up_to(first_fault, accepted):
        return None
    return tuple(sorted(connects)[len(accepted) :])


def _up_to(moment: float, moments: Sequence[float]) -> int:
    return sum(each <= moment for each in moments)
