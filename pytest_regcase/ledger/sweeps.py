"""What a ledger holds of trials that were counted from sweeps, so that each is counted once."""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, select

from pytest_regcase.ledger.columns import attempt_columns, chunks
from pytest_regcase.ledger.schema import ATTEMPTS, DRAWS
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptRecord

A = ATTEMPTS.c


def known_attempts(ledger: Ledger, case_id: str, attempt_ids: Collection[str]) -> dict[str, bool]:
    """Return which of these attempts of the case are here, and whether each was invalidated."""
    queries = [
        select(A.attempt_id, A.invalidated_at).where(A.case_id == case_id, A.attempt_id.in_(part))
        for part in chunks(attempt_ids)
    ]
    found = ledger.database.read(lambda connection: [row for each in queries for row in connection.execute(each)])
    known: dict[str, bool] = {}
    for attempt_id, invalidated_at in found:
        # A row that stands makes it a counted one, whatever became of the same trial in a ledger merged into this.
        known[attempt_id] = known.get(attempt_id, True) and invalidated_at is not None
    return known


def drawn_before(ledger: Ledger, case_id: str, tokens: Collection[str]) -> frozenset[str]:
    """Return which of these draws (`columns.draw_tokens`) rows of the case hold already."""
    queries = [
        select(DRAWS.c.token).where(DRAWS.c.case_id == case_id, DRAWS.c.token.in_(part)) for part in chunks(tokens)
    ]
    return ledger.database.read(
        lambda connection: frozenset(token for each in queries for token in connection.execute(each).scalars())
    )


def append_all(ledger: Ledger, records: Sequence[AttemptRecord]) -> int:
    """Store attempts in one transaction; return how many are new. One whose key is there already stays as it is.

    Raises:
        LedgerError: it cannot be written; none is stored then.
    """
    rows = [(record, attempt_columns(record)) for record in records]

    def work(connection: Connection) -> int:
        return sum(ledger.insert(connection, record, values) for record, values in rows)

    return ledger.database.write("store counted trials in", work)
