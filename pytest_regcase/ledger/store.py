"""Append-only store of sessions, attempts and decisions: SQLite by default, PostgreSQL by URL.

Imports SQLAlchemy; load it only in the one process that writes. Rules and words come from records; what counts for
what is decided above, in session.gate.
"""

import json
import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, NamedTuple

from sqlalchemy import URL, Connection, Insert, func, insert, inspect, select, update
from sqlalchemy.dialects import postgresql, sqlite

from pytest_regcase.errors import LedgerError
from pytest_regcase.ledger.engine import LedgerFile, connect, reading, refuse, saying, writing
from pytest_regcase.ledger.schema import ATTEMPTS, DECISIONS, META, METADATA, SCHEMA_VERSION, SESSIONS
from pytest_regcase.records.attempt import AttemptKey, AttemptRecord
from pytest_regcase.records.canonical import canonical_json
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.session import SessionRow

BUSY_TIMEOUT_SECONDS = 10.0
"""How long a write waits for another session's; one write holds the lock for milliseconds."""

_IN_LIST_LIMIT = 500


class LedgerRow(NamedTuple):
    """One attempt and its place in the ledger."""

    seq: int
    """Increases with every row; never used twice."""
    record: AttemptRecord


class Ledger:
    """An open ledger. One process writes through it; any number of processes may have it open."""

    def __init__(self, connection: Connection, ledger_id: str, *, is_new: bool) -> None:
        self._connection = connection
        self.ledger_id = ledger_id
        """Given once, when the ledger was made; `[[fix]]` records it."""
        self.is_new = is_new
        """This open made the ledger: it holds nothing yet."""
        self._file = LedgerFile(connection.engine.url)
        self._insert_attempt = _insert_or_leave(connection)

    @classmethod
    def open(cls, url: str, *, busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS) -> "Ledger":
        """Open the ledger at `url`, make it where there is none, and prove that it can be written.

        Two first sessions at once make one ledger: tables are made under the write lock.

        Raises:
            LedgerError: not a ledger's URL, no database, locked, read-only, made by a newer version, not ours.
        """
        connection = _connect_patiently(url, busy_timeout_seconds)
        try:
            with saying("open", connection.engine.url), writing(connection, alone=True):
                is_new = _make_tables(connection)
                found = _check_schema(connection)
                # A file that can be read only would otherwise be noticed after the first attempt was paid for.
                connection.execute(update(META).where(META.c.name == "opened").values(value=META.c.value))
            return cls(connection, found, is_new=is_new)
        except BaseException:
            connection.close()
            connection.engine.dispose()
            raise

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; everything that was stored is on the disk already."""
        self._connection.close()
        self._connection.engine.dispose()

    def start_session(self, row: SessionRow) -> None:
        """Store a session with its planned keys. Storing it again changes nothing but the planned keys."""
        values = {
            "session_id": row.session_id,
            "started_at": _time(row.started_at),
            "finished_at": None if row.finished_at is None else _time(row.finished_at),
            "profile": row.profile,
            "planned": _json([key.to_plain() for key in row.planned]),
            "source": row.source,
        }
        with self._write("store the session in"):
            known = self._connection.execute(
                update(SESSIONS).where(SESSIONS.c.session_id == row.session_id).values(planned=values["planned"])
            ).rowcount
            if not known:
                self._connection.execute(insert(SESSIONS), values)

    def finish_session(self, session_id: str, at: datetime) -> None:
        """Record that the session ended by itself.

        Raises:
            LedgerError: the ledger has no such session.
        """
        with self._write("finish the session in"):
            done = self._connection.execute(
                update(SESSIONS).where(SESSIONS.c.session_id == session_id).values(finished_at=_time(at))
            ).rowcount
            if not done:
                raise refuse(
                    "finish the session in",
                    self._url,
                    f"it has no session {session_id!r}",
                    "Start it first.",
                    slug="ledger-no-session",
                )

    def session(self, session_id: str) -> SessionRow | None:
        """Return the session of that id, or None."""
        with self._read():
            row = (
                self._connection.execute(select(SESSIONS).where(SESSIONS.c.session_id == session_id))
                .mappings()
                .one_or_none()
            )
        if row is None:
            return None
        planned = [AttemptKey.model_validate(each) for each in json.loads(row["planned"])]
        return SessionRow(
            session_id=row["session_id"],
            started_at=datetime.fromisoformat(row["started_at"]),
            finished_at=None if row["finished_at"] is None else datetime.fromisoformat(row["finished_at"]),
            profile=row["profile"],
            planned=tuple(planned),
            source=row["source"],
        )

    def append(self, record: AttemptRecord) -> bool:
        """Store one attempt; it is on the disk when this returns.

        Its key is (case, agent, scenario, run, try, session). Return False where that key is stored already: the
        first row stands and nothing is changed, so that sending a record again counts nothing twice.
        """
        with self._write("store an attempt in"):
            return self._connection.execute(self._insert_attempt, _columns(record)).rowcount == 1

    def rows(
        self, case_ids: Collection[str] | None = None, session_id: str | None = None, scenario: str | None = None
    ) -> list[LedgerRow]:
        """Return the attempts of those cases, that session, that scenario, in ledger order; None does not select.

        Rows that were invalidated are left out.
        """
        query = select(ATTEMPTS.c.seq, ATTEMPTS.c.record).where(ATTEMPTS.c.invalidated_at.is_(None))
        if session_id is not None:
            query = query.where(ATTEMPTS.c.session_id == session_id)
        if scenario is not None:
            query = query.where(ATTEMPTS.c.scenario == scenario)
        queries = [query]
        if case_ids is not None:
            ids = sorted(set(case_ids))
            queries = [
                query.where(ATTEMPTS.c.case_id.in_(ids[start : start + _IN_LIST_LIMIT]))
                for start in range(0, len(ids), _IN_LIST_LIMIT)
            ]
        with self._read():
            found = [(row.seq, row.record) for each in queries for row in self._connection.execute(each)]
        return [LedgerRow(seq, AttemptRecord.model_validate_json(record)) for seq, record in sorted(found)]

    def row_count(self) -> int:
        """Return the number of the last row, 0 in an empty ledger: rows that come later have a higher `seq`."""
        with self._read():
            return int(self._connection.execute(select(func.max(ATTEMPTS.c.seq))).scalar() or 0)

    def save_decision(self, decision: GateDecision, *, at: datetime, revision: str | None = None) -> None:
        """Append one decision, with the agent revision that it is about where that is known; none is replaced."""
        values = {"revision": revision, "at": _time(at), "decision": _json(decision.to_plain())}
        with self._write("store the decision in"):
            self._connection.execute(insert(DECISIONS), values)

    def decisions(self, revision: str | None = None) -> list[GateDecision]:
        """Return the decisions on that revision (None: on all), oldest first."""
        query = select(DECISIONS.c.decision).order_by(DECISIONS.c.seq)
        if revision is not None:
            query = query.where(DECISIONS.c.revision == revision)
        with self._read():
            found = list(self._connection.execute(query).scalars())
        return [GateDecision.model_validate_json(each) for each in found]

    @property
    def _url(self) -> URL:
        return self._connection.engine.url

    @contextmanager
    def _write(self, verb: str) -> Iterator[None]:
        self._file.check(verb)
        with saying(verb, self._url), writing(self._connection):
            yield
        self._file.check(verb)

    @contextmanager
    def _read(self) -> Iterator[None]:
        with saying("read", self._url), reading(self._connection):
            yield


def _connect_patiently(url: str, busy_timeout_seconds: float) -> Connection:
    """SQLite's own time-out does not cover every step of the switch to WAL, where two first sessions may meet."""
    give_up = time.monotonic() + busy_timeout_seconds
    while True:
        try:
            return connect(url, busy_timeout_seconds=busy_timeout_seconds)
        except LedgerError as error:
            if error.slug != "ledger-locked" or time.monotonic() >= give_up:
                raise
        time.sleep(0.02)


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
        ],
    )
    return True


def _check_schema(connection: Connection) -> str:
    """Return the ledger's id; refuse a schema that we do not know."""
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
    return str(meta["ledger_id"])


def _insert_or_leave(connection: Connection) -> Insert:
    """One constant statement: a new one for every row costs three times as much."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(ATTEMPTS).on_conflict_do_nothing()
    return sqlite.insert(ATTEMPTS).on_conflict_do_nothing()


def _columns(record: AttemptRecord) -> dict[str, Any]:
    return {
        "attempt_id": record.attempt_id,
        "session_id": record.session_id,
        "case_id": record.case_id,
        "agent": record.agent,
        "scenario": record.scenario,
        "run": record.run,
        "try": record.try_number,
        "planned_total": record.planned_total,
        "case_digest": record.digests.case,
        "simulation_digest": record.digests.simulation,
        "agent_digest": record.digests.agent,
        "model_digest": record.digests.model,
        "started_at": _time(record.started_at),
        "duration_seconds": record.duration_seconds,
        "verdict": record.verdict,
        "reason": record.reason,
        "says": None if record.says is None else _text(record.says),
        "delivered": record.wire.delivered,
        "fresh": None if record.draw is None else record.draw.fresh,
        "source": None if record.draw is None else record.draw.source,
        "folder": None if record.folder is None else _text(record.folder),
        "record": _record_json(record),
        "invalidated_at": None,
        "invalidated_why": None,
    }


def _text(text: str) -> str:
    """What both databases can hold: no NUL (PostgreSQL), no lone surrogate (SQLite)."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _time(at: datetime) -> str:
    return at.isoformat()


def _record_json(record: AttemptRecord) -> str:
    try:
        return record.model_dump_json(by_alias=True)
    except ValueError:  # a lone surrogate
        return _json(record.to_plain())


def _json(value: object) -> str:
    # A lone surrogate (half a character, as a broken tool may print it) has no UTF-8.
    return canonical_json(value).decode("utf-8", "replace")
