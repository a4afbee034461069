"""Brings a ledger of an earlier schema to the present one, in the caller's transaction, under its lock.

Each step goes from one version to the next and is never changed once it was released; it names what it touches by
SQL of its own, since the tables of ledger.schema are those of today. Nothing of an attempt is lost or rewritten.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import Connection, text

from pytest_regcase.ledger.columns import draw_tokens
from pytest_regcase.ledger.schema import DRAWS, FOLDS, SOURCES

_AT_ONCE = 10_000


def migrate(connection: Connection, schema: int, to: int) -> None:
    """Run every step from version `schema` to version `to`, and note the new one."""
    for version in range(schema, to):
        STEPS[version](connection)
    connection.execute(text("UPDATE meta SET value = :to WHERE name = 'schema'"), {"to": str(to)})


def _from_1_to_2(connection: Connection) -> None:
    """Where merged rows come from, draws, folds, and times that sort as text."""
    for table in (DRAWS, FOLDS, SOURCES):
        table.create(connection, checkfirst=False)
    connection.execute(text("INSERT INTO meta (name, value) VALUES ('late_changes', '0')"))
    for column in ("home_ledger VARCHAR(40)", "home_row INTEGER"):
        connection.execute(text(f"ALTER TABLE attempts ADD COLUMN {column}"))
    _times_in_utc(connection)
    _fill_draws(connection)
    connection.execute(text("DROP INDEX by_case"))
    connection.execute(text("CREATE INDEX by_scenario ON attempts (case_id, scenario, agent_digest, started_at)"))
    connection.execute(text("CREATE INDEX by_time ON attempts (case_id, agent, started_at)"))


def _times_in_utc(connection: Connection) -> None:
    others = connection.execute(
        text("SELECT seq, started_at FROM attempts WHERE started_at NOT LIKE '%+00:00'")
    ).all()
    if others:
        connection.execute(
            text("UPDATE attempts SET started_at = :at WHERE seq = :seq"),
            [{"seq": seq, "at": _utc(at)} for seq, at in others],
        )


def _utc(at: str) -> str:
    read = datetime.fromisoformat(at)
    return read.replace(tzinfo=read.tzinfo or UTC).astimezone(UTC).isoformat()


def _fill_draws(connection: Connection) -> None:
    """Note what each live row drew, some rows at a time."""
    last = 0
    while True:
        rows = connection.execute(
            text(
                "SELECT seq, case_id, agent_digest, verdict, record FROM attempts"
                " WHERE scenario = 'live' AND seq > :last ORDER BY seq LIMIT :most"
            ),
            {"last": last, "most": _AT_ONCE},
        ).all()
        if not rows:
            return
        last = rows[-1].seq
        tokens: list[dict[str, Any]] = []
        for row in rows:
            draw: Mapping[str, Any] = json.loads(row.record).get("draw") or {}
            found = draw_tokens(
                upstream_ids=draw.get("upstream_ids", ()),
                seed=draw.get("seed"),
                agent_digest=row.agent_digest,
                verdict=row.verdict,
            )
            tokens += [{"case_id": row.case_id, "token": each, "seq": row.seq} for each in found]
        if tokens:
            connection.execute(text("INSERT INTO draws VALUES (:case_id, :token, :seq)"), tokens)


STEPS: Final[Mapping[int, Callable[[Connection], None]]] = {1: _from_1_to_2}
"""Version -> the step to the next one."""
