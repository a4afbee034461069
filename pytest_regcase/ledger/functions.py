"""Which test functions have attempts in the ledger: their names stand in no configuration.

Imports SQLAlchemy; knows nothing of what counts.
"""

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import select

from pytest_regcase.ledger.columns import chunks
from pytest_regcase.ledger.schema import ATTEMPTS
from pytest_regcase.ledger.store import Ledger


class LiveFunction(NamedTuple):
    """One revision of a function that made live attempts of a case."""

    case_id: str
    agent: str
    digest: str


def live_functions(ledger: Ledger, case_ids: Iterable[str]) -> list[LiveFunction]:
    """Return every revision of every function with live attempts of those cases, sorted.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    columns = ATTEMPTS.c.case_id, ATTEMPTS.c.agent, ATTEMPTS.c.agent_digest
    query = select(*columns).where(
        ATTEMPTS.c.scenario == "live", ATTEMPTS.c.agent.contains("::"), ATTEMPTS.c.invalidated_at.is_(None)
    )
    queries = [query.where(ATTEMPTS.c.case_id.in_(each)).distinct() for each in chunks(list(case_ids))]
    found = ledger.database.read(
        lambda connection: [LiveFunction(*row) for each in queries for row in connection.execute(each)]
    )
    return sorted(found)


def check_functions(ledger: Ledger, case_id: str) -> list[str]:
    """Return the names of the functions that made attempts of a case, sorted.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    query = (
        select(ATTEMPTS.c.agent)
        .where(ATTEMPTS.c.case_id == case_id, ATTEMPTS.c.agent.contains("::"), ATTEMPTS.c.invalidated_at.is_(None))
        .distinct()
    )
    return sorted(ledger.database.read(lambda connection: list(connection.execute(query).scalars())))
