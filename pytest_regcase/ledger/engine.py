"""One durable connection to a ledger's database, and our words for everything that can go wrong with it.

Knows SQLite's and PostgreSQL's ways of locking; knows no table.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from pytest_regcase.errors import LedgerError

_POSTGRES_LOCK = 0x7265_6763  # "regc": one number for all ledgers of a server; held for a moment only
_WRITE = "regcase_write"


def connect(url: str, *, busy_timeout_seconds: float) -> Connection:
    """Return an open connection whose commits are on the disk when they return.

    Raises:
        LedgerError: the URL is not one of a ledger, its folder cannot be made, or nothing answers there.
    """
    parsed = _parsed(url)
    with saying("open", parsed):
        engine = _engine(parsed, busy_timeout_seconds)
        return engine.connect()


@contextmanager
def writing(connection: Connection, *, alone: bool = False) -> Iterator[None]:
    """Run the block in one transaction that holds SQLite's write lock from its start, and commit it.

    `alone` keeps every other `alone` block out on PostgreSQL too, where appends need no such lock.
    """
    connection.execution_options(**{_WRITE: True})
    with connection.begin():
        if alone and connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _POSTGRES_LOCK})
        yield


@contextmanager
def reading(connection: Connection) -> Iterator[None]:
    """Run the block in one transaction that sees one state and takes no write lock."""
    connection.execution_options(**{_WRITE: False})
    with connection.begin():
        yield


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
        self._path = None if path is None or path.startswith("file:") else Path(path)
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
            found = self._path.stat()
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
        return create_engine(url, poolclass=NullPool)
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
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

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
    return refuse(verb, url, said, "Nothing was written. See what the database says about it.", slug="ledger")


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
