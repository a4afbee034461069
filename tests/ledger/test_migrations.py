"""A ledger of schema 1 becomes one of the present schema: nothing lost, everything found, two at once too."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import Connection, text

from pytest_regcase.ledger.columns import attempt_columns
from pytest_regcase.ledger.lookup import held_rows, live_attempts, since_fix
from pytest_regcase.ledger.migrations import STEPS
from pytest_regcase.ledger.schema import SCHEMA_VERSION
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptRecord, Draw
from tests.ledger.conftest import MakeUrl
from tests.rules.attempt_samples import a_live_attempt, an_attempt

SCHEMA_1 = (
    "CREATE TABLE meta (name VARCHAR(100) NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name))",
    "CREATE TABLE sessions (session_id VARCHAR(200) NOT NULL, started_at VARCHAR(40) NOT NULL, "
    " finished_at VARCHAR(40),"
    " profile VARCHAR(40) NOT NULL, planned TEXT NOT NULL, source VARCHAR(40) NOT NULL, PRIMARY KEY (session_id))",
    "CREATE TABLE attempts (seq {number}, attempt_id VARCHAR(500) NOT NULL, session_id VARCHAR(200) NOT NULL,"
    " case_id VARCHAR(100) NOT NULL, agent VARCHAR(500) NOT NULL, scenario VARCHAR(100) NOT NULL,"
    " run INTEGER NOT NULL,"
    " try INTEGER NOT NULL, planned_total INTEGER NOT NULL, case_digest VARCHAR(80) NOT NULL,"
    " simulation_digest VARCHAR(80), agent_digest VARCHAR(80) NOT NULL, model_digest VARCHAR(80),"
    " started_at VARCHAR(40) NOT NULL, duration_seconds FLOAT NOT NULL, verdict VARCHAR(40) NOT NULL,"
    " reason VARCHAR(40), says TEXT, delivered BOOLEAN, fresh BOOLEAN, source VARCHAR(40), folder TEXT,"
    " record TEXT NOT NULL, invalidated_at VARCHAR(40), invalidated_why TEXT,"
    " CONSTRAINT one_row_a_try UNIQUE (case_id, agent, scenario, run, try, session_id))",
    "CREATE INDEX by_digest ON attempts (case_digest, case_id, scenario, verdict)",
    "CREATE INDEX by_session ON attempts (session_id)",
    "CREATE INDEX by_case ON attempts (case_id, scenario)",
    "CREATE TABLE transitions (seq {number}, case_id VARCHAR(100) NOT NULL, at VARCHAR(40) NOT NULL,"
    " kind VARCHAR(40) NOT NULL, why TEXT NOT NULL, who TEXT NOT NULL, evidence TEXT)",
    "CREATE TABLE decisions (seq {number}, revision TEXT, at VARCHAR(40) NOT NULL, decision TEXT NOT NULL)",
    "CREATE TABLE versions (seq {number}, active VARCHAR(500) NOT NULL, since VARCHAR(40) NOT NULL,"
    " decision INTEGER)",
    "INSERT INTO meta VALUES ('schema', '1'), ('ledger_id', 'the-old-one'), ('opened', 'by regcase')",
)
"""As version 1 made it, written out: the tables of today are no witness."""

ROWS = (
    an_attempt("recovered"),
    a_live_attempt(1, started_at=datetime(2026, 5, 20, 11, tzinfo=timezone(timedelta(hours=2)))),
    a_live_attempt(2, draw=Draw(fresh=True, seed=7, upstream_ids=("chatcmpl-1",))),
    a_live_attempt(3, "inconclusive", draw=Draw(fresh=True, seed=7)),
)


@pytest.fixture
def old_url(new_url: MakeUrl) -> str:
    """A ledger of schema 1 with a few rows."""
    url = new_url()
    with Ledger.open(url) as ledger:
        server = ledger.database.is_server
        ledger.database.write("make old", lambda connection: _make_old(connection, server))
    return url


def _make_old(connection: Connection, server: bool) -> None:
    for table in (
        "meta",
        "sessions",
        "attempts",
        "transitions",
        "decisions",
        "versions",
        "draws",
        "folds",
        "sources",
    ):
        connection.execute(text(f"DROP TABLE {table}"))
    number = "SERIAL PRIMARY KEY" if server else "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT"
    for each in SCHEMA_1:
        connection.execute(text(each.format(number=number)))
    for record in ROWS:
        values = attempt_columns(record) | {"started_at": record.started_at.isoformat()}
        del values["home_ledger"], values["home_row"]
        names = ", ".join(values)
        connection.execute(
            text(f"INSERT INTO attempts ({names}) VALUES ({', '.join(':' + each for each in values)})"), values
        )


def test_every_version_before_the_present_one_has_a_step() -> None:
    assert sorted(STEPS) == list(range(1, SCHEMA_VERSION))


def test_every_row_is_there_and_the_ledger_keeps_its_id(old_url: str) -> None:
    with Ledger.open(old_url) as ledger:
        assert (ledger.ledger_id, ledger.is_new) == ("the-old-one", False)
        assert [each.record for each in ledger.rows()] == list(ROWS)
        assert ledger.append(a_live_attempt(4))
    with Ledger.open(old_url) as again:
        assert again.row_count() == 5


def test_it_is_what_a_new_ledger_is(old_url: str, new_url: MakeUrl) -> None:
    with Ledger.open(old_url) as old, Ledger.open(new_url()) as new:
        assert _shape(old) == _shape(new)


def test_what_live_rows_drew_and_when_they_began_is_found(old_url: str) -> None:
    with Ledger.open(old_url) as ledger:
        drawn = ledger.database.read(lambda c: sorted(c.execute(text("SELECT token, seq FROM draws")).all()))
        assert [tuple(row) for row in drawn] == [("id chatcmpl-1", 2), ("id chatcmpl-1", 3), ("seed 7 of a", 3)]
        since = since_fix(
            held_rows(ledger), ledger_id="elsewhere", rows=0, at=datetime(2026, 5, 20, 8, 59, tzinfo=UTC)
        )
        found = live_attempts(ledger, "trial-37", "default", ROWS[1].digests, since)
        assert [(row.record.run, row.after) for row in found] == [(1, True), (2, True), (3, True)]


def test_two_that_open_it_at_once_migrate_it_once(old_url: str) -> None:
    def opened(_: int) -> tuple[str, list[AttemptRecord]]:
        with Ledger.open(old_url) as ledger:
            return ledger.ledger_id, [each.record for each in ledger.rows()]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(opened, range(4))) == [("the-old-one", list(ROWS))] * 4


def _shape(ledger: Ledger) -> set[tuple[str, str]]:
    """The columns of every table, and the indexes."""
    if ledger.database.is_server:
        query = (
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
            " UNION SELECT tablename, indexname FROM pg_indexes WHERE schemaname = current_schema()"
        )
        return {(row[0], row[1]) for row in ledger.database.read(lambda c: c.execute(text(query)).all())}
    file = sqlite3.connect(str(ledger.database.url.database))
    found = file.execute(
        "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type = 'table'"
        " UNION SELECT tbl_name, name FROM sqlite_master WHERE type = 'index'"
    ).fetchall()
    file.close()
    return {(row[0], row[1]) for row in found}
