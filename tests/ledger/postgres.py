"""A PostgreSQL server for tests: the one of REGCASE_TEST_POSTGRES, an empty schema of it for each ledger."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

from pytest_regcase.ledger.store import Ledger


def postgres_server() -> str:
    """Return the server's URL; skip the test with the reason where there is none, fail where CI promised it."""
    server = os.environ.get("REGCASE_TEST_POSTGRES")
    if not server:
        reason = "needs a PostgreSQL server: set REGCASE_TEST_POSTGRES (see CONTRIBUTING.md)"
        if os.environ.get("REGCASE_REQUIRE_POSTGRES"):
            pytest.fail(reason)
        pytest.skip(reason)
    return server


def run_on(server: str, *statements: str) -> list[tuple[object, ...]]:
    """Run statements outside of any transaction; return what the last one gives."""
    url = make_url(server).set(drivername="postgresql+psycopg")
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for each in statements:
            found = connection.execute(text(each))
        rows = [tuple(row) for row in found] if found.returns_rows else []
    engine.dispose()
    return rows


@contextmanager
def an_empty_schema() -> Iterator[str]:
    """Give the URL of a ledger that is not there yet; everything of it is removed at the end."""
    server = postgres_server()
    name = f"t{uuid.uuid4().hex}"
    run_on(server, f"CREATE SCHEMA {name}")
    try:
        yield f"{server}{'&' if '?' in server else '?'}options={quote(f'-csearch_path={name}')}"
    finally:
        run_on(server, f"DROP SCHEMA {name} CASCADE")


def backend_of(ledger: Ledger) -> int:
    """Return the id of the server's process that serves this ledger."""
    return int(ledger.database.read(lambda c: c.execute(text("SELECT pg_backend_pid()")).scalar()) or 0)


def kill_backend(process_id: int) -> None:
    """End one of the server's processes, whatever it is doing."""
    run_on(postgres_server(), f"SELECT pg_terminate_backend({process_id})")
