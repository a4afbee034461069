"""A ledger's database for as long as it is open: transactions that outlive a lost connection to a server.

Knows how to begin, repeat and end a transaction; knows no table.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, text

from pytest_regcase.errors import LedgerError
from pytest_regcase.ledger.engine import LOST, LedgerFile, connect, reading, saying, writing
from pytest_regcase.ledger.prepared import Prepared

RECONNECT_SECONDS = 15.0
"""How long a lost server is tried again before what was to be written is given up."""
_PAUSE_SECONDS = 0.1
T = TypeVar("T")


class Database:
    """One connection, made anew where a server lost it."""

    def __init__(
        self, url: str, *, busy_timeout_seconds: float, reconnect_seconds: float = RECONNECT_SECONDS
    ) -> None:
        self._connection = _connect_patiently(url, busy_timeout_seconds)
        self._file = LedgerFile(self.url)
        self._reconnect_seconds = reconnect_seconds

    @property
    def url(self) -> URL:
        """Where it is."""
        return self._connection.engine.url

    @property
    def is_server(self) -> bool:
        """It is PostgreSQL, not a file."""
        return self._connection.dialect.name == "postgresql"

    def write(self, verb: str, work: Callable[[Connection], T], *, alone: bool = False) -> T:
        """Run `work` in one transaction and commit it; `alone` keeps every other such block out meanwhile.

        After a lost connection `work` runs again, though it may have been stored already: it must be safe to run
        twice.

        Raises:
            LedgerError: it could not be written, said with `verb`; nothing of it is stored then.
        """
        self._file.check(verb)
        found = self._again(verb, lambda: self._written(work, alone=alone))
        self._file.check(verb)
        return found

    def write_one(self, verb: str, statement: Prepared, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run one statement that writes, in a transaction of its own, and return the rows that it gives.

        As `write`, for less: SQLite's driver needs nobody to begin and commit a lone statement.
        """
        if self.is_server:
            return self.write(verb, lambda connection: statement.rows(connection, values))
        found = self._again(verb, lambda: statement.rows(self._connection, values))
        self._file.check(verb)
        return found

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction that writes nothing.

        Raises:
            LedgerError: it could not be read.
        """
        return self._again("read", lambda: self._read(work))

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Read one state for as long as it takes. A lost connection ends it.

        Raises:
            LedgerError: it cannot be read, or not to its end.
        """
        self.read(lambda _: None)
        with saying("read", self.url), reading(self._connection):
            if self.is_server:
                self._connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
            yield self._connection

    def close(self) -> None:
        """Close the connection; everything that was stored is on the disk already."""
        self._connection.close()
        self._connection.engine.dispose()

    def _written(self, work: Callable[[Connection], T], *, alone: bool) -> T:
        with writing(self._connection, alone=alone):
            return work(self._connection)

    def _read(self, work: Callable[[Connection], T]) -> T:
        with reading(self._connection):
            return work(self._connection)

    def _again(self, verb: str, once: Callable[[], T]) -> T:
        give_up: float | None = None
        while True:
            try:
                with saying(verb, self.url):
                    if self._connection.closed:
                        self._connection = self._connection.engine.connect()
                    return once()
            except LedgerError as error:
                if error.slug != LOST:
                    raise
                if not self._connection.closed:
                    self._connection.invalidate()
                    self._connection.close()
                give_up = give_up or time.monotonic() + self._reconnect_seconds
                if time.monotonic() >= give_up:
                    raise
            time.sleep(_PAUSE_SECONDS)


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
