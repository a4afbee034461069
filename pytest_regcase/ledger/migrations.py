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
from pytest_regcase.records.canonical import digest

_AT_ONCE = 10_000
_SESSION_COLUMNS = {
    "run_id": "VARCHAR(200)",
    "shard": "VARCHAR(20)",
    "agent": "VARCHAR(500)",
    "commit": "VARCHAR(80)",
    "live_new": "INTEGER",
    "revisions": "TEXT",
    "left_out": "TEXT",
    "hooked": "TEXT",
}


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


def _from_2_to_3(connection: Connection) -> None:
    """What a decision is about and its digest, who made which revision active on which decision, and of which run,
    shard and revision a session was."""
    for name, kind in _SESSION_COLUMNS.items():
        # `commit` is a word of SQL's own.
        connection.execute(text(f'ALTER TABLE sessions ADD COLUMN "{name}" {kind}'))
    _decisions_with_digests(connection)
    _versions_by_digest(connection)
    # They are written in other words now, and made from the rows again.
    connection.execute(text("DELETE FROM folds"))


def _decisions_with_digests(connection: Connection) -> None:
    # With defaults: SQLite adds no column without NULL to rows that are there.
    for column in (
        "digest VARCHAR(80) NOT NULL DEFAULT ''",
        "about VARCHAR(20) NOT NULL DEFAULT 'session'",
        "rests_on TEXT",
    ):
        connection.execute(text(f"ALTER TABLE decisions ADD COLUMN {column}"))
    rows = connection.execute(text("SELECT seq, decision FROM decisions")).all()
    if rows:
        connection.execute(
            text("UPDATE decisions SET digest = :digest WHERE seq = :seq"),
            [{"seq": row.seq, "digest": digest(row.decision.encode())} for row in rows],
        )


def _versions_by_digest(connection: Connection) -> None:
    """A version names its decision by digest: numbers differ between ledgers. SQLite changes no column's type."""
    query = (
        "SELECT v.seq, v.active, v.since, d.digest AS decision"
        " FROM versions v LEFT JOIN decisions d ON d.seq = v.decision ORDER BY v.seq"
    )
    rows = connection.execute(text(query)).mappings().all()
    connection.execute(text("DROP TABLE versions"))
    number = "SERIAL" if connection.dialect.name == "postgresql" else "INTEGER"
    auto = "" if connection.dialect.name == "postgresql" else " AUTOINCREMENT"
    connection.execute(
        text(
            f"CREATE TABLE versions (seq {number} NOT NULL PRIMARY KEY{auto}, active VARCHAR(500) NOT NULL,"
            " since VARCHAR(40) NOT NULL, decision VARCHAR(80), who TEXT, why TEXT)"
        )
    )
    if rows:
        connection.execute(
            text("INSERT INTO versions (active, since, decision) VALUES (:active, :since, :decision)"),
            [dict(row) for row in rows],
        )


STEPS: Final[Mapping[int, Callable[[Connection], None]]] = {1: _from_1_to_2, 2: _from_2_to_3}
"""Version -> the step to the next one."""
