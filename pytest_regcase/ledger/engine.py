"""One durable connection to a ledger's database, and our words for everything that can go wrong with it.

Knows SQLite's and PostgreSQL's ways of locking and of failing; knows no table.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from pytest_regcase.errors import LedgerError

_POSTGRES_LOCK = 0x7265_6763  # "regc": one number for all ledgers of a server; held for a moment only
_WRITE = "regcase_write"


CONNECT_SECONDS = 10
"""How long a server has to take one connection."""


def connect(url: str, *, busy_timeout_seconds: float) -> Connection:
    """Return an open connection whose commits are on the disk when they return.

    Raises:
        LedgerError: the URL is not one of a ledger, its folder cannot be made, or nothing answers there.
    """
    parsed = _parsed(url)
    with saying("open", parsed):
        engine = _engine(parsed, busy_timeout_seconds)
        return engine.connect()


def is_missing(url: str) -> bool:
    """Say whether `url` means a file of SQLite that is not there; what cannot be told, opening it will tell."""
    parsed = _parsed(url)
    path = parsed.database if parsed.get_backend_name() == "sqlite" else None
    return path is not None and not path.startswith("file:") and not Path(path).exists()


def is_lost(error: BaseException | None) -> bool:
    """Say whether the error, or what it was made of, means that a connection to a server was lost or never made.

    Whether the last transaction was stored is not known then: what is sent again must be safe to send twice.
    """
    while error is not None:
        if isinstance(error, DBAPIError) and not isinstance(error.orig, sqlite3.Error):
            # Without a code the server never answered: an OperationalError of its own (a full disk) has one.
            code = getattr(error.orig, "sqlstate", None)
            unanswered = isinstance(error, OperationalError) and (code is None or code.startswith(_GOING_DOWN))
            return error.connection_invalidated or unanswered
        error = error.__cause__
    return False


@contextmanager
def writing(connection: Connection, *, alone: bool = False) -> Iterator[None]:
    """Run the block in one transaction that holds SQLite's write lock from its start, and commit it.

    `alone` keeps every other `alone` block out on PostgreSQL too, where appends need no such lock.
    """
    _will_write(connection, True)
    with connection.begin():
        if alone and connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _POSTGRES_LOCK})
        yield


@contextmanager
def reading(connection: Connection) -> Iterator[None]:
    """Run the block in one transaction that sees one state and takes no write lock."""
    _will_write(connection, False)
    with connection.begin():
        yield


def _will_write(connection: Connection, writes: bool) -> None:
    """Say which lock the next transaction takes. Attempt after attempt is written, and to say it again costs."""
    if connection.get_execution_options().get(_WRITE) is not writes:
        connection.execution_options(**{_WRITE: writes})


@contextmanager
def saying(verb: str, url: URL) -> Iterator[None]:
    """Turn every error of the database into a LedgerError that says what could not be done, and what to do."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, ModuleNotFoundError) as error:
        raise _in_our_words(verb, url, error) from error


def refuse(verb: str, url: URL, why: str, what_to_do: str, *, slug: str) -> LedgerError:
    """Return the error; a password in the URL is not shown."""
    return LedgerError(f"Couldn't {verb} the ledger {shown(url)}: {why}.\n{what_to_do}", slug=slug)


def shown(url: URL) -> str:
    """Return the file of an SQLite ledger, or the URL without its password."""
    if url.get_backend_name() == "sqlite" and url.database:
        return url.database
    return url.render_as_string(hide_password=True)


class LedgerFile:
    """The file of an SQLite ledger as it was when it was opened; a server has none, and nothing is watched."""

    def __init__(self, url: URL) -> None:
        self._url = url
        path = url.database if url.get_backend_name() == "sqlite" else None
        self._path = None if path is None or path.startswith("file:") else path
        self._identity = self._now()

    def check(self, verb: str) -> None:
        """Raise LedgerError where the file is gone or another: SQLite would go on writing what nobody finds."""
        if self._now() != self._identity:
            raise refuse(
                verb,
                self._url,
                "its file was removed or replaced while it was open",
                "Leave the ledger where it is while a session runs, and run again.",
                slug="ledger-removed",
            )

    def _now(self) -> tuple[int, int] | None:
        if self._path is None:
            return None
        try:
            found = os.stat(self._path)
        except OSError:
            return (0, 0)
        return found.st_dev, found.st_ino


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, ValueError):
        raise LedgerError(
            "Couldn't open the ledger: what was configured is not a database URL.\n"
            "Write a path, sqlite:////absolute/path, or postgresql://user@host/database.",
            slug="ledger-url",
        ) from None
    if backend == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise refuse(
                "open", parsed, "a ledger in memory forgets everything", "Give it a file.", slug="ledger-url"
            )
        return parsed
    if backend == "postgresql":
        # Without a driver SQLAlchemy would ask for one that we do not require.
        return parsed.set(drivername="postgresql+psycopg") if parsed.drivername == "postgresql" else parsed
    raise refuse(
        "open",
        parsed,
        f"{backend!r} is not a database that a ledger can be kept in",
        "Use SQLite (a path) or PostgreSQL (postgresql://...).",
        slug="ledger-url",
    )


def _engine(url: URL, busy_timeout_seconds: float) -> Engine:
    if url.get_backend_name() != "sqlite":
        return _server_engine(url, busy_timeout_seconds)
    _make_folder(url)
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": busy_timeout_seconds})

    @event.listens_for(engine, "connect")
    def _set_up(connection: sqlite3.Connection, _record: object) -> None:
        # We say ourselves when a transaction begins: the driver would begin one late, without the write lock.
        connection.isolation_level = None
        # The time-out comes first: switching to WAL needs a lock, and two first sessions may meet there.
        connection.execute(f"PRAGMA busy_timeout = {int(busy_timeout_seconds * 1000)}")
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get(_WRITE, True)
        # The driver's own call: SQLAlchemy's takes as long as a row.
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.execute("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _server_engine(url: URL, busy_timeout_seconds: float) -> Engine:
    arguments = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_SECONDS}
    engine = create_engine(url, poolclass=NullPool, connect_args=arguments)

    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {int(busy_timeout_seconds * 1000)}")
        connection.commit()

    return engine


def _make_folder(url: URL) -> None:
    assert url.database is not None
    if url.database.startswith("file:"):
        return
    folder = Path(url.database).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refuse(
            "open",
            url,
            f"its folder cannot be made ({error.strerror})",
            "Set [tool.regcase] ledger (or REGCASE_LEDGER) to a place that can be written.",
            slug="ledger-folder",
        ) from error


def _in_our_words(verb: str, url: URL, error: Exception) -> LedgerError:
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    said = str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
    low = said.lower()
    if isinstance(error, NoSuchModuleError | ModuleNotFoundError):
        return refuse(
            verb,
            url,
            "the driver for this database is not installed",
            'Install it: pip install "pytest-regcase[postgres]".',
            slug="ledger-driver",
        )
    for mark, why, what_to_do, slug in _KNOWN:
        if mark in low:
            return refuse(verb, url, why, what_to_do, slug=slug)
    if is_lost(error):
        return refuse(
            verb,
            url,
            f"the connection to its server is lost or could not be made ({said})",
            "See that the server runs and can be reached, then run again.",
            slug=LOST,
        )
    return refuse(verb, url, said, "Nothing was written. See what the database says about it.", slug="ledger")


LOST = "ledger-lost"
_GOING_DOWN = ("08", "57P")
"""SQLSTATE of lost connections, and of a server that ends them (an administrator, a crash, a start-up)."""

_KNOWN = (
    (
        "not a database",
        "the file is no SQLite database",
        "Move the file away, or set [tool.regcase] ledger to another one; nothing in it was changed.",
        "ledger-garbage",
    ),
    (
        "malformed",
        "the database is damaged",
        "Restore it from a copy or an export; nothing in it was changed.",
        "ledger-garbage",
    ),
    (
        "locked",
        "another process has locked it and did not let go",
        "Wait for the other session or end it, then run again.",
        "ledger-locked",
    ),
    (
        "lock timeout",
        "another session has locked it and did not let go",
        "Wait for the other session or end it, then run again.",
        "ledger-locked",
    ),
    (
        "read-only transaction",
        "it can be read but not written",
        "Point REGCASE_LEDGER to the primary server, or a database that is no copy.",
        "ledger-read-only",
    ),
    (
        "permission denied",
        "it may not be written as this user",
        "Grant the user all rights on the ledger's schema, or give the ledger a database of its own.",
        "ledger-read-only",
    ),
    (
        "authentication failed",
        "the server takes neither user nor password",
        "Check user and password in REGCASE_LEDGER.",
        "ledger-refused",
    ),
    (
        "does not exist",
        "the server has no such database or user",
        "Make an empty database (createdb), or correct the URL; the tables are made by regcase.",
        "ledger-no-database",
    ),
    (
        "no space left on device",
        "the server's disk is full",
        "Make room and run again; attempts that were not stored count as not run.",
        "ledger-disk-full",
    ),
    (
        "could not extend file",
        "the server's disk is full",
        "Make room and run again; attempts that were not stored count as not run.",
        "ledger-disk-full",
    ),
    (
        "i/o error",
        "the disk does not read or write what it is told to",
        "See what the system says about the disk; attempts that were not stored count as not run.",
        "ledger-disk",
    ),
    (
        "readonly",
        "it can be read but not written",
        "Make file and folder writable, or point REGCASE_LEDGER to a copy that is.",
        "ledger-read-only",
    ),
    (
        "unable to open",
        "the file cannot be opened",
        "Check that the path is a file, and that file and folder can be written.",
        "ledger-unopened",
    ),
    (
        "disk is full",
        "the disk is full",
        "Make room and run again; attempts that were not stored count as not run.",
        "ledger-disk-full",
    ),
)
