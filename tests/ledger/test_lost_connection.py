"""The server ends a connection, between inserts, in one, or for good: nothing is lost, nothing is stored twice."""

import random
from collections.abc import Iterator
from threading import Event, Thread

import pytest
from sqlalchemy import Connection, text

from pytest_regcase.errors import LedgerError
from pytest_regcase.ledger.columns import attempt_columns
from pytest_regcase.ledger.store import Ledger
from tests.ledger.postgres import an_empty_schema, backend_of, kill_backend, postgres_server, run_on
from tests.rules.attempt_samples import a_live_attempt, an_attempt


@pytest.fixture
def url() -> Iterator[str]:
    with an_empty_schema() as url:
        yield url


@pytest.fixture
def on_server(url: str) -> Iterator[Ledger]:
    with Ledger.open(url) as opened:
        yield opened


def test_between_two_inserts(on_server: Ledger) -> None:
    for run in range(1, 6):
        assert on_server.append(a_live_attempt(run))
        kill_backend(backend_of(on_server))
    assert [row.record.run for row in on_server.rows()] == [1, 2, 3, 4, 5]


def test_in_an_insert(on_server: Ledger) -> None:
    dead: list[int] = []

    def insert(connection: Connection) -> bool:
        record = an_attempt("recovered")
        stored = on_server.insert(connection, record, attempt_columns(record))
        if not dead:
            dead.append(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
            kill_backend(dead[0])
        return stored

    assert on_server.database.write("store an attempt in", insert)
    assert len(on_server.rows()) == 1
    assert backend_of(on_server) != dead[0]


def test_after_the_row_was_stored_and_before_that_was_known(on_server: Ledger) -> None:
    """The commit went through and its answer did not: sent again, the row stands once."""
    record = an_attempt("recovered")
    with Ledger.open(on_server.database.url.render_as_string(hide_password=False)) as other:
        other.append(record)
    assert not on_server.append(record)
    assert on_server.row_count() == len(on_server.rows()) == 1


def test_at_random_points_of_many_inserts(on_server: Ledger) -> None:
    luck, done = random.Random(8), Event()

    def kill() -> None:
        while not done.wait(luck.uniform(0.001, 0.03)):
            run_on(
                postgres_server(),
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'killed'",
            )

    url = on_server.database.url.update_query_dict({"application_name": "killed"})
    killer = Thread(target=kill)
    with Ledger.open(url.render_as_string(hide_password=False)) as killed:
        killer.start()
        try:
            for run in range(1, 61):
                killed.append(a_live_attempt(run))
        finally:
            done.set()
            killer.join()
    assert [row.record.run for row in on_server.rows()] == list(range(1, 61))
    drawn = on_server.database.read(lambda c: c.execute(text("SELECT count(*) FROM draws")).scalar_one())
    assert drawn == 60


def test_for_good(url: str) -> None:
    """A role that may no longer log in: for it the server is gone."""
    server, role = postgres_server(), url.rpartition("%3D")[2]
    run_on(server, f"CREATE ROLE {role} LOGIN SUPERUSER")
    try:
        with Ledger.open(url.replace("regcase@", f"{role}@"), reconnect_seconds=0.2) as ledger:
            backend = backend_of(ledger)
            run_on(server, f"ALTER ROLE {role} CONNECTION LIMIT 0 NOSUPERUSER")
            kill_backend(backend)
            with pytest.raises(LedgerError, match="Couldn't store an attempt in the ledger postgresql") as error:
                ledger.append(an_attempt("recovered"))
            assert error.value.slug == "ledger-lost"
            assert "run again" in error.value.text
            run_on(server, f"ALTER ROLE {role} CONNECTION LIMIT -1 SUPERUSER")
            assert ledger.append(an_attempt("recovered"))
    finally:
        run_on(server, f"REASSIGN OWNED BY {role} TO CURRENT_USER", f"DROP ROLE {role}")


class TestMessages:
    def refused(self, url: str, *, wait_seconds: float = 60) -> LedgerError:
        """Return the refusal; one lock is for all ledgers of a server, and other tests may hold it for long."""
        with pytest.raises(LedgerError) as error:
            Ledger.open(url, busy_timeout_seconds=wait_seconds)
        assert error.value.text.startswith("Couldn't open the ledger postgresql")
        assert "\n" in error.value.text, "it says what to do"
        return error.value

    def test_no_server(self) -> None:
        error = self.refused("postgresql://somebody:secret@127.0.0.1:1/db")
        assert error.slug == "ledger-lost"
        assert "secret" not in error.text

    def test_no_such_database(self) -> None:
        error = self.refused(postgres_server().replace("/postgres?", "/nowhere?"))
        assert error.slug == "ledger-no-database"
        assert "createdb" in error.text

    def test_a_database_that_may_only_be_read(self, url: str) -> None:
        Ledger.open(url).close()
        only = url.replace("options=", "options=-cdefault_transaction_read_only%3Don%20")
        assert self.refused(only).slug == "ledger-read-only"

    def test_a_database_of_something_else(self, url: str) -> None:
        schema = url.rpartition("%3D")[2]
        run_on(postgres_server(), f"CREATE TABLE {schema}.invoices (id INTEGER)")
        error = self.refused(url)
        assert error.slug == "ledger-not-ours"
        assert "'invoices'" in error.text

    def test_a_newer_schema(self, url: str) -> None:
        with Ledger.open(url) as ledger:
            newer = text("UPDATE meta SET value = '7' WHERE name = 'schema'")
            ledger.database.write("change", lambda c: c.execute(newer))
        assert self.refused(url).slug == "ledger-newer"

    def test_locked(self, on_server: Ledger, url: str) -> None:
        def hold(_: Connection) -> LedgerError:
            return self.refused(url, wait_seconds=0.2)

        assert on_server.database.write("hold", hold, alone=True).slug == "ledger-locked"
