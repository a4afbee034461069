"""What was last done to the quarantine of each case. Imports SQLAlchemy; knows nothing of what follows from it."""

from typing import Final

from sqlalchemy import select

from pytest_regcase.ledger.columns import transition_of
from pytest_regcase.ledger.schema import TRANSITIONS
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.session import Transition
from pytest_regcase.records.words import TransitionKind

OF_QUARANTINE: Final[tuple[TransitionKind, ...]] = ("quarantined", "lifted", "on-probation")
"""The transitions that begin or end one."""


def last_of_quarantine(ledger: Ledger) -> dict[str, Transition]:
    """Return for each case the latest transition of its quarantine, by its time; that order survives a merge.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    query = (
        select(TRANSITIONS)
        .where(TRANSITIONS.c.kind.in_(OF_QUARANTINE))
        .order_by(TRANSITIONS.c.at, TRANSITIONS.c.seq)
    )
    rows = ledger.database.read(lambda connection: list(connection.execute(query).mappings()))
    return {row["case_id"]: transition_of(row) for row in rows}
