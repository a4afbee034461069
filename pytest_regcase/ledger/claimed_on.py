"""The ledger that a fix is claimed on: the one whose rows show later that none was lost. Knows the tables."""

from typing import NamedTuple

from sqlalchemy import Connection, select

from pytest_regcase.ledger.schema import ATTEMPTS, SOURCES
from pytest_regcase.ledger.store import Ledger

_HOME = ATTEMPTS.c.home_ledger
_MADE_HERE = select(ATTEMPTS.c.seq).where(_HOME.is_(None)).limit(1)
_NEWEST_HOME = select(_HOME).order_by(ATTEMPTS.c.started_at.desc(), ATTEMPTS.c.seq.desc()).limit(1)


class ClaimedOn(NamedTuple):
    """What a fix names."""

    ledger_id: str
    rows: int
    """How many that ledger has, as far as they are here."""


def claimed_on(ledger: Ledger) -> ClaimedOn:
    """Return the ledger that a fix claimed here names, and its length.

    That is this one. Where it only holds what others made (an import of an export), nobody else will ever hold it,
    and the ledger of the newest row is named: whoever has that, and appends to one ledger after another, has all
    that was before it.

    Raises:
        LedgerError: it cannot be read.
    """

    def read(connection: Connection) -> ClaimedOn | None:
        if connection.execute(_MADE_HERE).first() is not None:
            return None
        newest = connection.execute(_NEWEST_HOME).scalar()
        if newest is None:
            return None
        rows = connection.execute(select(SOURCES.c.rows).where(SOURCES.c.ledger_id == newest)).scalar()
        return ClaimedOn(newest, int(rows or 0))

    return ledger.database.read(read) or ClaimedOn(ledger.ledger_id, ledger.row_count())
