"""Which cases fit into the minutes that a session has. Pure: times and dates are handed in.

What changed, never ran or did not come out well comes first, then what was not run for longest, so that short
sessions go round.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

_BEGINNING = datetime.min.replace(tzinfo=UTC)


class CaseTime(NamedTuple):
    """What a case would take, and when all of it had last been run as it is now."""

    case_id: str
    seconds: float
    last: datetime | None
    """None: some check of it never ran on the case and the simulation as they are, or did not come out well."""


def left_out(cases: Iterable[CaseTime], minutes: float) -> tuple[str, ...]:
    """Return the ids of the cases that do not fit into `minutes`, sorted.

    A case that does not fit any more is passed over, and shorter ones behind it may still fit. The first in the
    order is left out only where it alone takes longer.
    """
    room = minutes * 60
    out: list[str] = []
    for each in sorted(cases, key=_order):
        if each.seconds <= room:
            room -= each.seconds
        else:
            out.append(each.case_id)
    return tuple(sorted(out))


def _order(case: CaseTime) -> tuple[bool, datetime, str]:
    return case.last is not None, case.last or _BEGINNING, case.case_id
