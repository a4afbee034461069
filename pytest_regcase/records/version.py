"""Decisions as they are kept, and what was made active on them. Both are appended, neither is ever replaced."""

from datetime import datetime
from typing import Literal

from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.decision import GateDecision

DecidedAbout = Literal["session", "candidate"]
"""``session``: over what one run of pytest was asked for. ``candidate``: over all cases; it allows a promotion."""


class Held(Record):
    """How much a ledger holds of a revision. No row is ever removed: with equal numbers, nothing came since."""

    sessions: int
    attempts: int
    """All that these sessions made, and the trials of sweeps; the invalidated ones too."""
    invalidated: int


class RestsOn(Record):
    """What a decision on a candidate was made over."""

    sessions: Many[str]
    """Whose attempts decided."""
    held: Held
    """What the ledger held of the revision before it was decided."""


class Decided(Record):
    """One kept decision."""

    revision: str | None = None
    """The one digest of the agents that were decided over; None: not recorded."""
    at: datetime
    about: DecidedAbout = "session"
    digest: str
    """Of the decision's canonical JSON as it was when it was kept."""
    decision: GateDecision
    rests_on: RestsOn | None = None
    """Of a candidate."""


class Version(Record):
    """A revision that was made active, and on what."""

    active: str
    """The one digest of its agents."""
    since: datetime
    decision: str | None = None
    """The digest of the decision that allowed it; None: not recorded."""
    who: str | None = None
    why: str | None = None
