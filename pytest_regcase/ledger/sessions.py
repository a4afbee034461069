"""The sessions of a ledger, newest first, for whoever chooses among them."""

from collections.abc import Iterable, Iterator

from sqlalchemy import select

from pytest_regcase.ledger.columns import session_of
from pytest_regcase.ledger.schema import SESSIONS
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.session import SessionRow


def session_heads(ledger: Ledger) -> list[SessionRow]:
    """Return every session without its planned keys, the newest first: plans are long, and few are needed."""
    found = ledger.database.read(lambda connection: connection.execute(_HEADS).mappings().all())
    return [session_of(each) for each in found]


def whole(ledger: Ledger, heads: Iterable[SessionRow]) -> Iterator[SessionRow]:
    """Yield the same sessions with their planned keys, each read when it is taken."""
    for head in heads:
        found = ledger.session(head.session_id)
        if found is not None:
            yield found


_HEADS = select(*(each for each in SESSIONS.c if each.name != "planned")).order_by(
    SESSIONS.c.started_at.desc(), SESSIONS.c.session_id.desc()
)
