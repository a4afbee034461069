"""A ledger as JSON Lines: written line by line, in an order that does not depend on how it came together.

First line `{"kind": "ledger", ...}`, last line `{"kind": "end", ...}`; between them session, attempt, transition,
decision and version lines, and one `source` line for each ledger that it holds. Knows the tables, and no file.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, Table, func, select

from pytest_regcase.ledger.columns import json_of
from pytest_regcase.ledger.schema import (
    ATTEMPTS,
    DECISIONS,
    SCHEMA_VERSION,
    SESSIONS,
    SOURCES,
    TRANSITIONS,
    VERSIONS,
)
from pytest_regcase.ledger.store import Ledger

_AT_ONCE: Final = 2000
A = ATTEMPTS.c


def export_lines(ledger: Ledger) -> Iterator[dict[str, Any]]:
    """Yield every line of an export, all of one state. Equal ledgers give equal lines but for the first one's id.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    with ledger.database.snapshot() as connection:
        yield {"kind": "ledger", "schema": SCHEMA_VERSION, "ledger_id": ledger.ledger_id}
        yield from _sources(connection, ledger.ledger_id)
        found = connection.execute(select(SESSIONS)).mappings().all()
        yield from sorted(({"kind": "session", **_present(row)} for row in found), key=json_of)
        count = 0
        for line in _attempts(connection, ledger.ledger_id):
            count += 1
            yield line
        yield from _plain_table(connection, TRANSITIONS, "transition")
        yield from _plain_table(connection, DECISIONS, "decision")
        yield from _plain_table(connection, VERSIONS, "version")
        yield {"kind": "end", "attempts": count}


def _sources(connection: Connection, own_id: str) -> Iterator[dict[str, Any]]:
    """The ledgers that rows came from. A ledger that only holds other ones' rows is no source itself."""
    rows = {row.ledger_id: row.rows for row in connection.execute(select(SOURCES))}
    made_here = connection.execute(select(func.max(A.seq)).where(A.home_ledger.is_(None))).scalar()
    if made_here is not None:
        rows[own_id] = max(made_here, rows.get(own_id, 0))
    for ledger_id in sorted(rows):
        yield {"kind": "source", "ledger_id": ledger_id, "rows": rows[ledger_id]}


def _attempts(connection: Connection, own_id: str) -> Iterator[dict[str, Any]]:
    """The attempts by key, some at a time: a ledger may be larger than the memory."""
    key: list[Any] = [A.case_id, A.agent, A.scenario, A.session_id]
    if connection.dialect.name == "postgresql":
        key = [each.collate("C") for each in key]
    columns = (A.seq, A.record, A.invalidated_at, A.invalidated_why, A.home_ledger, A.home_row)
    query = select(*columns).order_by(*key, A.run, A["try"])
    with closing(connection.execute(query, execution_options={"yield_per": _AT_ONCE})) as rows:
        for seq, record, at, why, home, row in rows:
            line = {"kind": "attempt", "record": record, "home": home or own_id, "row": home_row(home, row, seq)}
            yield line if at is None else line | {"invalidated_at": at, "invalidated_why": why}


def home_row(home_ledger: str | None, row: int | None, seq: int) -> int:
    """Return the number of a row on the ledger that it was made on."""
    return seq if home_ledger is None or row is None else row


def _plain_table(connection: Connection, table: Table, kind: str) -> Iterator[dict[str, Any]]:
    found = connection.execute(select(*(each for each in table.c if each.name != "seq"))).mappings().all()
    lines: list[dict[str, Any]] = []
    for row in found:
        values = _present(row)
        if "kind" in values:  # a transition's own; a line's says what the line is
            values["what"] = values.pop("kind")
        lines.append({"kind": kind, **values})
    yield from sorted(lines, key=lambda line: (line.get("at") or line["since"], json_of(line)))


def _present(row: RowMapping) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value is not None}
