"""The ledger's tables. A change here is a new schema version and a migration in ledger.store."""

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

SCHEMA_VERSION = 1

METADATA = MetaData()

META = Table(
    "meta",
    METADATA,
    Column("name", String(100), primary_key=True),
    Column("value", Text, nullable=False),
)
"""`schema`, `ledger_id`, and `opened` (rewritten at every open: the test that the ledger can be written)."""

SESSIONS = Table(
    "sessions",
    METADATA,
    Column("session_id", String(200), primary_key=True),
    Column("started_at", String(40), nullable=False),
    Column("finished_at", String(40)),
    Column("profile", String(40), nullable=False),
    Column("planned", Text, nullable=False),
    Column("source", String(40), nullable=False),
)
"""`planned` is a JSON list of attempt keys. Without `finished_at` the session did not end by itself."""

ATTEMPTS = Table(
    "attempts",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("attempt_id", String(500), nullable=False),
    Column("session_id", String(200), nullable=False),
    Column("case_id", String(100), nullable=False),
    Column("agent", String(500), nullable=False),
    Column("scenario", String(100), nullable=False),
    Column("run", Integer, nullable=False),
    Column("try", Integer, nullable=False),
    Column("planned_total", Integer, nullable=False),
    Column("case_digest", String(80), nullable=False),
    Column("simulation_digest", String(80)),
    Column("agent_digest", String(80), nullable=False),
    Column("model_digest", String(80)),
    Column("started_at", String(40), nullable=False),
    Column("duration_seconds", Float, nullable=False),
    Column("verdict", String(40), nullable=False),
    Column("reason", String(40)),
    Column("says", Text),
    Column("delivered", Boolean),
    Column("fresh", Boolean),
    Column("source", String(40)),
    Column("folder", Text),
    Column("record", Text, nullable=False),
    Column("invalidated_at", String(40)),
    Column("invalidated_why", Text),
    UniqueConstraint("case_id", "agent", "scenario", "run", "try", "session_id", name="one_row_a_try"),
    Index("by_digest", "case_digest", "case_id", "scenario", "verdict"),
    Index("by_session", "session_id"),
    Index("by_case", "case_id", "scenario"),
    sqlite_autoincrement=True,
)
"""One row an attempt. `record` is the whole attempt as JSON; the columns are its scalars, for queries.

`seq` increases and is never used again, so that "after row n" keeps its meaning.
"""

TRANSITIONS = Table(
    "transitions",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("case_id", String(100), nullable=False),
    Column("at", String(40), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("why", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("evidence", Text),
    sqlite_autoincrement=True,
)

DECISIONS = Table(
    "decisions",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("revision", Text),
    Column("at", String(40), nullable=False),
    Column("decision", Text, nullable=False),
    sqlite_autoincrement=True,
)

VERSIONS = Table(
    "versions",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("active", String(500), nullable=False),
    Column("since", String(40), nullable=False),
    Column("decision", Integer),
    sqlite_autoincrement=True,
)
