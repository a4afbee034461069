"""The ledger's tables. A change here is a new schema version and a migration in ledger.migrations.

What `FOLDS`, `DRAWS` and the indexes hold can be had from the attempts again; the rest is the record.
"""

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

SCHEMA_VERSION = 3

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
    Column("run_id", String(200)),
    Column("shard", String(20)),
    Column("agent", String(500)),
    Column("commit", String(80)),
    Column("live_new", Integer),
    Column("revisions", Text),
    Column("left_out", Text),
    Column("hooked", Text),
)
"""`planned` is a JSON list of attempt keys, `left_out` and `hooked` ones of texts, `revisions` an object: agent to
digest. Without `finished_at` it did not end by itself; without `revisions` it was made before schema 3."""

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
    Column("home_ledger", String(40)),
    Column("home_row", Integer),
    UniqueConstraint("case_id", "agent", "scenario", "run", "try", "session_id", name="one_row_a_try"),
    Index("by_digest", "case_digest", "case_id", "scenario", "verdict"),
    Index("by_session", "session_id"),
    Index("by_scenario", "case_id", "scenario", "agent_digest", "started_at"),
    Index("by_time", "case_id", "agent", "started_at"),
    sqlite_autoincrement=True,
)
"""One row an attempt. `record` is the whole attempt as JSON; the columns are its scalars, for queries.

`seq` increases and is never used again, so that "after row n" keeps its meaning. `home_ledger` and `home_row` are
set where a merge brought the row: the ledger that it was made on, and its `seq` there. `started_at` is in UTC, so
that its text sorts by time.
"""

DRAWS = Table(
    "draws",
    METADATA,
    Column("case_id", String(100), primary_key=True),
    Column("token", String(500), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Index("draws_of_row", "seq"),
)
"""What a live row drew: the supplier's answer ids and its seed, each a token. Rows that share one are one draw."""

FOLDS = Table(
    "folds",
    METADATA,
    Column("case_id", String(100), primary_key=True),
    Column("agent", String(500), primary_key=True),
    Column("before", String(40), nullable=False),
    Column("history", Text, nullable=False),
)
"""Rolling aggregates: what all checks of a case that started `before` say together, in the words of whoever folded
them. A row that comes to that time later removes the fold, and the next one is made from the rows again."""

SOURCES = Table(
    "sources",
    METADATA,
    Column("ledger_id", String(40), primary_key=True),
    Column("rows", Integer, nullable=False),
)
"""The ledgers that were merged into this one, each with the highest `seq` that it had."""

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
    Column("digest", String(80), nullable=False),
    Column("about", String(20), nullable=False),
    Column("rests_on", Text),
    sqlite_autoincrement=True,
)
"""`revision` is the one digest of the agents that were decided over, `decision` the decision's canonical JSON,
`digest` the digest of that, and `about` what it was made for: `session`, or `candidate`, which says in JSON what
it `rests_on`. None is replaced."""

VERSIONS = Table(
    "versions",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("active", String(500), nullable=False),
    Column("since", String(40), nullable=False),
    Column("decision", String(80)),
    Column("who", Text),
    Column("why", Text),
    sqlite_autoincrement=True,
)
"""What was made active, and when; none is replaced, and the one with the newest `since` is active. `decision` is
the digest of the decision that allowed it."""
