"""Append-only store of sessions, attempts, transitions and decisions: SQLite by default, PostgreSQL by URL.

Imports SQLAlchemy; load it only in the one process that writes. Rules and words come from records; what counts for
what is decided above, in session.gate.
"""

import uuid
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, func, insert, inspect, select, update
from sqlalchemy.dialects import postgresql, sqlite

from pytest_regcase.ledger.columns import (
    attempt_columns,
    chunks,
    json_of,
    session_of,
    text_of,
    time_of,
    tokens_of,
    transition_of,
)
from pytest_regcase.ledger.database import RECONNECT_SECONDS, Database
from pytest_regcase.ledger.engine import is_missing, refuse
from pytest_regcase.ledger.late import COUNTER, unfold
from pytest_regcase.ledger.migrations import migrate
from pytest_regcase.ledger.prepared import Prepared
from pytest_regcase.ledger.schema import (
    ATTEMPTS,
    DECISIONS,
    DRAWS,
    META,
    METADATA,
    SCHEMA_VERSION,
    SESSIONS,
    TRANSITIONS,
)
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.canonical import digest
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.session import SessionRow, Transition
from pytest_regcase.records.version import Decided, DecidedAbout, RestsOn

BUSY_TIMEOUT_SECONDS = 10.0
"""How long a write waits for another session's; one write holds the lock for milliseconds."""
SETTLED_AFTER = timedelta(days=2)
"""No session lasts so long: what began before may be folded, and a row that comes later undoes the fold."""


class LedgerRow(NamedTuple):
    """One attempt and its place in the ledger."""

    seq: int
    """Increases with every row; never used twice."""
    record: AttemptRecord


class Ledger:
    """An open ledger. One process writes through it; any number of processes may have it open."""

    def __init__(self, database: Database, ledger_id: str, *, is_new: bool) -> None:
        self.database = database
        """For the modules of this package; whoever uses a ledger calls what is named for it."""
        self.ledger_id = ledger_id
        """Given once, when the ledger was made; `[[fix]]` records it."""
        self.is_new = is_new
        """This open made the ledger: it holds nothing yet."""
        self._insert_attempt = _ON_A_SERVER if database.is_server else _INSERT_OR_LEAVE

    @classmethod
    def open(
        cls,
        url: str,
        *,
        busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS,
        reconnect_seconds: float = RECONNECT_SECONDS,
    ) -> "Ledger":
        """Open the ledger at `url`, make it where there is none, and prove that it can be written.

        Two first sessions at once make one ledger: tables are made, and brought to the present schema, under the
        write lock.

        Raises:
            LedgerError: not a ledger's URL, no database, locked, read-only, made by a newer version, not ours.
        """
        database = Database(url, busy_timeout_seconds=busy_timeout_seconds, reconnect_seconds=reconnect_seconds)
        try:
            ledger_id, is_new = database.write("open", lambda connection: _prepare(connection), alone=True)
            return cls(database, ledger_id, is_new=is_new)
        except BaseException:
            database.close()
            raise

    @classmethod
    def open_if_there(cls, url: str) -> "Ledger | None":
        """Open the ledger at `url` as `open` does; None where it is a file that is not there, and none is made.

        For whoever only reads. Raises as `open`.
        """
        return None if is_missing(url) else cls.open(url)

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; everything that was stored is on the disk already."""
        self.database.close()

    def start_session(self, row: SessionRow) -> None:
        """Store a session with its planned keys. Storing it again changes nothing but these and the revisions."""
        values = {
            "session_id": row.session_id,
            "started_at": time_of(row.started_at),
            "finished_at": None if row.finished_at is None else time_of(row.finished_at),
            "profile": row.profile,
            "planned": json_of([key.to_plain() for key in row.planned]),
            "source": row.source,
            "run_id": None if row.run_id is None else text_of(row.run_id),
            "shard": row.shard,
            "agent": row.agent,
            "commit": row.commit,
            "live_new": row.live_new,
            "revisions": None if row.revisions is None else json_of(row.revisions),
            "left_out": json_of(row.left_out) if row.left_out else None,
            "hooked": json_of(row.hooked) if row.hooked else None,
        }
        more = {name: values[name] for name in ("planned", "revisions")}
        again = update(SESSIONS).where(SESSIONS.c.session_id == row.session_id).values(more)

        def store(connection: Connection) -> None:
            if not connection.execute(again).rowcount:
                connection.execute(insert(SESSIONS), values)

        self.database.write("store the session in", store)

    def finish_session(self, session_id: str, at: datetime) -> None:
        """Record that the session ended by itself.

        Raises:
            LedgerError: the ledger has no such session.
        """
        ended = update(SESSIONS).where(SESSIONS.c.session_id == session_id).values(finished_at=time_of(at))
        verb = "finish the session in"
        if not self.database.write(verb, lambda connection: connection.execute(ended).rowcount):
            raise refuse(
                verb,
                self.database.url,
                f"it has no session {session_id!r}",
                "Start it first.",
                slug="ledger-no-session",
            )

    def session(self, session_id: str) -> SessionRow | None:
        """Return the session of that id, or None."""
        query = select(SESSIONS).where(SESSIONS.c.session_id == session_id)
        row = self.database.read(lambda connection: connection.execute(query).mappings().one_or_none())
        return None if row is None else session_of(row)

    def append(self, record: AttemptRecord) -> bool:
        """Store one attempt; it is on the disk when this returns.

        Its key is (case, agent, scenario, run, try, session). Return False where that key is stored already: the
        first row stands and nothing is changed, so that sending a record again counts nothing twice.
        """
        values, verb = attempt_columns(record), "store an attempt in"
        if tokens_of(record) or self._may_be_folded(record, values):
            return self.database.write(verb, lambda connection: self.insert(connection, record, values))
        return bool(self.database.write_one(verb, self._insert_attempt, values))

    def insert(self, connection: Connection, record: AttemptRecord, values: dict[str, Any]) -> bool:
        """Store one attempt in the caller's transaction; return False where its key is stored already."""
        stored = self._insert_attempt.rows(connection, values)
        if not stored:
            return False
        seq = stored[0][0]
        tokens = tokens_of(record)
        if tokens:
            drawn = [{"case_id": record.case_id, "token": each, "seq": seq} for each in tokens]
            connection.execute(insert(DRAWS), drawn)
        elif self._may_be_folded(record, values):
            unfold(connection, [record.case_id])
        return True

    def rows(
        self, case_ids: Collection[str] | None = None, session_id: str | None = None, scenario: str | None = None
    ) -> list[LedgerRow]:
        """Return the attempts of those cases, that session, that scenario, in ledger order; None does not select.

        Rows that were invalidated are left out. Reads whole records: for a gate over many see ledger.lookup.
        """
        query = select(ATTEMPTS.c.seq, ATTEMPTS.c.record).where(ATTEMPTS.c.invalidated_at.is_(None))
        if session_id is not None:
            query = query.where(ATTEMPTS.c.session_id == session_id)
        if scenario is not None:
            query = query.where(ATTEMPTS.c.scenario == scenario)
        queries = [query]
        if case_ids is not None:
            queries = [query.where(ATTEMPTS.c.case_id.in_(each)) for each in chunks(case_ids)]
        found = self.database.read(
            lambda connection: [(row.seq, row.record) for each in queries for row in connection.execute(each)]
        )
        return [LedgerRow(seq, AttemptRecord.model_validate_json(record)) for seq, record in sorted(found)]

    def simulation_digests(self) -> dict[str, frozenset[str]]:
        """Return, for each simulation with attempts, the digests of the contents that those were made with."""
        query = (
            select(ATTEMPTS.c.scenario, ATTEMPTS.c.simulation_digest)
            .where(ATTEMPTS.c.simulation_digest.is_not(None), ATTEMPTS.c.invalidated_at.is_(None))
            .distinct()
        )
        found = self.database.read(lambda connection: list(connection.execute(query)))
        return {name: frozenset(row[1] for row in found if row[0] == name) for name in {row[0] for row in found}}

    def row_count(self) -> int:
        """Return the number of the last row, 0 in an empty ledger: rows that come later have a higher `seq`."""
        query = select(func.max(ATTEMPTS.c.seq))
        return int(self.database.read(lambda connection: connection.execute(query).scalar()) or 0)

    def add_transition(self, transition: Transition) -> None:
        """Append what somebody did to a case; none is replaced."""
        values = {
            "case_id": transition.case_id,
            "at": time_of(transition.at),
            "kind": transition.kind,
            "why": text_of(transition.why),
            "who": text_of(transition.who),
            "evidence": None if transition.evidence is None else text_of(transition.evidence),
        }
        self.database.write(
            "store the transition in", lambda connection: insert_new(connection, TRANSITIONS, values)
        )

    def transitions(self, case_id: str) -> list[Transition]:
        """Return what was done to the case, in the order in which it was stored."""
        query = select(TRANSITIONS).where(TRANSITIONS.c.case_id == case_id).order_by(TRANSITIONS.c.seq)
        found = self.database.read(lambda connection: list(connection.execute(query).mappings()))
        return [transition_of(row) for row in found]

    def save_decision(
        self,
        decision: GateDecision,
        *,
        at: datetime,
        revision: str | None = None,
        rests_on: RestsOn | None = None,
    ) -> Decided:
        """Append one decision, with the agent revision that it is about where that is known; none is replaced.

        One that says what it `rests_on` is about a candidate, any other about a session.
        """
        text = json_of(decision.to_plain())
        about: DecidedAbout = "session" if rests_on is None else "candidate"
        made = digest(text.encode())
        values = {
            "revision": revision,
            "at": time_of(at),
            "decision": text,
            "digest": made,
            "about": about,
            "rests_on": None if rests_on is None else json_of(rests_on.to_plain()),
        }
        # A promotion reads decisions alone: one that is being made is either before it, or behind.
        self.database.write(
            "store the decision in", lambda connection: insert_new(connection, DECISIONS, values), alone=True
        )
        return Decided(revision=revision, at=at, about=about, digest=made, decision=decision, rests_on=rests_on)

    def decisions(self, revision: str | None = None) -> list[GateDecision]:
        """Return the decisions on that revision (None: on all), oldest first."""
        query = select(DECISIONS.c.decision).order_by(DECISIONS.c.seq)
        if revision is not None:
            query = query.where(DECISIONS.c.revision == revision)
        found = self.database.read(lambda connection: list(connection.execute(query).scalars()))
        return [GateDecision.model_validate_json(each) for each in found]

    def _may_be_folded(self, record: AttemptRecord, values: Mapping[str, Any]) -> bool:
        """Say whether it comes to a time that may have been folded already."""
        return record.scenario != "live" and values["started_at"] < time_of(datetime.now(UTC) - SETTLED_AFTER)


def _prepare(connection: Connection) -> tuple[str, bool]:
    """Make or migrate the tables; the caller holds the lock. Return the ledger's id and whether it is new."""
    is_new = _make_tables(connection)
    ledger_id = _to_present_schema(connection)
    # A file that can be read only would otherwise be noticed after the first attempt was paid for.
    connection.execute(update(META).where(META.c.name == "opened").values(value=META.c.value))
    return ledger_id, is_new


def insert_new(connection: Connection, table: Table, values: Mapping[str, Any]) -> bool:
    """Append a row unless the table holds the very same: what is sent again after a lost connection is one row."""
    same = [table.c[name].is_(None) if value is None else table.c[name] == value for name, value in values.items()]
    if connection.execute(select(func.count()).select_from(table).where(*same)).scalar():
        return False
    connection.execute(insert(table), dict(values))
    return True


def _make_tables(connection: Connection) -> bool:
    """Make the tables where there are none; the caller holds the write lock. Return whether they were made."""
    names = inspect(connection).get_table_names()
    if META.name in names:
        return False
    if names:
        raise refuse(
            "open",
            connection.engine.url,
            f"it is the database of something else (it has the table {sorted(names)[0]!r})",
            "Set [tool.regcase] ledger to a file or database of its own.",
            slug="ledger-not-ours",
        )
    METADATA.create_all(connection, checkfirst=False)
    connection.execute(
        insert(META),
        [
            {"name": "schema", "value": str(SCHEMA_VERSION)},
            {"name": "ledger_id", "value": uuid.uuid4().hex},
            {"name": "opened", "value": "by regcase"},
            {"name": COUNTER, "value": "0"},
        ],
    )
    return True


def _to_present_schema(connection: Connection) -> str:
    """Migrate where the schema is an earlier one, and return the ledger's id; refuse one that we do not know."""
    meta = {row.name: row.value for row in connection.execute(select(META))}
    schema = meta.get("schema", "")
    if not schema.isdigit() or "ledger_id" not in meta:
        raise refuse(
            "open",
            connection.engine.url,
            "its table `meta` does not say which schema it has",
            "Set [tool.regcase] ledger to another file; nothing in this one was changed.",
            slug="ledger-not-ours",
        )
    if int(schema) > SCHEMA_VERSION:
        raise refuse(
            "open",
            connection.engine.url,
            f"a newer version made it (schema {schema}; this one knows up to {SCHEMA_VERSION})",
            "Upgrade pytest-regcase.",
            slug="ledger-newer",
        )
    if int(schema) < SCHEMA_VERSION:
        migrate(connection, int(schema), SCHEMA_VERSION)
    return str(meta["ledger_id"])


_COLUMNS = [each.name for each in ATTEMPTS.c if each.name != "seq"]
_INSERT_OR_LEAVE = Prepared(sqlite.insert(ATTEMPTS).on_conflict_do_nothing().returning(ATTEMPTS.c.seq), _COLUMNS)
"""Gives the new row's `seq`, or none where the key is stored already."""
_ON_A_SERVER = Prepared(postgresql.insert(ATTEMPTS).on_conflict_do_nothing().returning(ATTEMPTS.c.seq), _COLUMNS)
"""The same for PostgreSQL."""
