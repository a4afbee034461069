"""Rows that come to a time long ago, or are invalidated: what was folded over that time is made anew.

A counter in `meta` tells whoever folds that something came meanwhile. Works in the caller's transaction.
"""

from collections.abc import Iterable

from sqlalchemy import Connection, cast, delete, select, update
from sqlalchemy.types import Integer, Text

from pytest_regcase.ledger.schema import FOLDS, META

COUNTER = "late_changes"


def late_changes(connection: Connection, *, lock: bool = False) -> int:
    """Return how often that happened; `lock` keeps it from happening until the transaction ends."""
    query = select(META.c.value).where(META.c.name == COUNTER)
    return int(connection.execute(query.with_for_update() if lock else query).scalar_one())


def unfold(connection: Connection, case_ids: Iterable[str]) -> None:
    """Remove what was folded of these cases."""
    # The counter first: whoever saves a fold holds it, and what was saved until then is removed too.
    more = cast(cast(META.c.value, Integer) + 1, Text)
    connection.execute(update(META).where(META.c.name == COUNTER).values(value=more))
    for case_id in sorted(set(case_ids)):
        connection.execute(delete(FOLDS).where(FOLDS.c.case_id == case_id))
