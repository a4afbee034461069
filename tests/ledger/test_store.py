"""The ledger against real databases and real processes."""

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pytest_regcase.errors import LedgerError
from pytest_regcase.ledger.merge import invalidate
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptKey, Finding
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.session import SessionRow, Transition
from tests.ledger.conftest import MakeUrl
from tests.rules.attempt_samples import a_live_attempt, an_attempt, findings

NOW = datetime(2026, 5, 20, 9, tzinfo=UTC)


def set_aside(ledger: Ledger, attempt_id: str) -> int:
    return invalidate(ledger, why="wrong model", at=NOW, attempt_id=attempt_id, session_id=None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


@pytest.fixture
def on_file(path: Path) -> Iterator[Ledger]:
    with Ledger.open(url(path)) as opened:
        yield opened


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def refused(path_or_url: Path | str, *, wait_seconds: float = 0.2) -> LedgerError:
    where = url(path_or_url) if isinstance(path_or_url, Path) else path_or_url
    with pytest.raises(LedgerError) as error:
        Ledger.open(where, busy_timeout_seconds=wait_seconds)
    first, *others = error.value.text.split("\n")
    assert first.startswith("Couldn't open the ledger")
    assert others, "it says what to do"
    assert error.value.exit_code == 4
    return error.value


class TestOpen:
    def test_a_new_ledger_is_said_to_be_new_and_keeps_its_id(self, path: Path) -> None:
        with Ledger.open(url(path)) as first:
            assert first.is_new
            assert first.row_count() == 0
        with Ledger.open(url(path)) as second:
            assert not second.is_new
            assert second.ledger_id == first.ledger_id

    def test_two_ledgers_have_two_ids(self, tmp_path: Path) -> None:
        with Ledger.open(url(tmp_path / "a")) as one, Ledger.open(url(tmp_path / "b")) as other:
            assert one.ledger_id != other.ledger_id

    def test_a_missing_folder_is_made(self, tmp_path: Path) -> None:
        path = tmp_path / "deep" / "er" / "ledger.sqlite3"
        Ledger.open(url(path)).close()
        assert path.is_file()

    def test_writes_survive_a_crash_of_the_machine(self, on_file: Ledger) -> None:
        pragmas = {
            name: on_file.database._connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "busy_timeout")
        }
        assert pragmas == {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 10000}

    def test_garbage(self, path: Path) -> None:
        path.write_bytes(b"this is no database, whatever its name says\n" * 50)
        before = path.read_bytes()
        assert refused(path).slug == "ledger-garbage"
        assert path.read_bytes() == before

    def test_a_database_of_something_else(self, path: Path) -> None:
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE invoices (id INTEGER)")
        other.commit()
        error = refused(path)
        assert error.slug == "ledger-not-ours"
        assert "'invoices'" in error.text
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("invoices",)]
        other.close()

    def test_a_table_of_the_same_name_is_not_taken_for_ours(self, path: Path) -> None:
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE meta (name TEXT, value TEXT)")
        other.commit()
        other.close()
        assert refused(path).slug == "ledger-not-ours"

    def test_a_newer_schema(self, path: Path, on_file: Ledger) -> None:
        on_file.close()
        other = sqlite3.connect(path)
        other.execute("UPDATE meta SET value = '7' WHERE name = 'schema'")
        other.commit()
        other.close()
        error = refused(path)
        assert error.slug == "ledger-newer"
        assert "schema 7" in error.text
        assert "Upgrade pytest-regcase" in error.text

    def test_locked(self, path: Path) -> None:
        Ledger.open(url(path)).close()
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert refused(path).slug == "ledger-locked"
        other.close()
        Ledger.open(url(path)).close()

    def test_read_only(self, path: Path, on_file: Ledger) -> None:
        on_file.close()
        assert refused(f"sqlite:///file:{path}?mode=ro&uri=true").slug == "ledger-read-only"

    def test_a_folder_where_the_file_should_be(self, path: Path) -> None:
        path.mkdir()
        assert refused(path).slug == "ledger-unopened"

    def test_a_file_where_the_folder_should_be(self, path: Path) -> None:
        path.write_text("")
        assert refused(path / "ledger.sqlite3").slug == "ledger-folder"

    @pytest.mark.parametrize(
        "where",
        ["nonsense", "mysql://somebody:secret@host/db", "sqlite://", "sqlite:///:memory:", "oracle://x:y/z"],
    )
    def test_what_is_no_url_of_a_ledger(self, where: str) -> None:
        error = refused(where)
        assert error.slug == "ledger-url"
        assert "secret" not in error.text

    def test_postgresql_without_its_driver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "psycopg", None)
        error = refused("postgresql://somebody:secret@localhost:1/db")
        assert error.slug == "ledger-driver"
        assert "secret" not in error.text


class TestAppend:
    def test_a_record_comes_back_as_it_was(self, ledger: Ledger) -> None:
        record = a_live_attempt(1, findings=findings(broken=["max_retries"]), says="because", folder="a/b")
        assert ledger.append(record)
        assert [row.record for row in ledger.rows()] == [record]

    def test_the_same_key_is_stored_once_and_the_first_stands(self, ledger: Ledger) -> None:
        first = an_attempt("inconclusive", reason="worker-crashed")
        assert ledger.append(first)
        assert not ledger.append(first)
        assert not ledger.append(an_attempt("recovered"))
        assert [row.record for row in ledger.rows()] == [first]

    def test_every_part_of_the_key_makes_another_row(self, ledger: Ledger) -> None:
        variants: list[dict[str, Any]] = [
            {},
            {"case_id": "other"},
            {"agent": "other"},
            {"run": 2},
            {"try_number": 1},
            {"session_id": "other"},
        ]
        for number, changes in enumerate(variants):
            assert ledger.append(an_attempt("recovered", **changes)), changes
            assert ledger.row_count() == number + 1
        assert ledger.append(an_attempt("recovered", "another-simulation"))

    def test_rows_are_in_the_order_in_which_they_came(self, ledger: Ledger) -> None:
        for run in (3, 1, 2):
            ledger.append(a_live_attempt(run))
        assert [row.record.run for row in ledger.rows()] == [3, 1, 2]
        sequence = [row.seq for row in ledger.rows()]
        assert sequence == sorted(set(sequence))

    def test_rows_that_come_later_have_a_higher_number_than_row_count(self, ledger: Ledger) -> None:
        ledger.append(a_live_attempt(1))
        ledger.append(a_live_attempt(1))
        before = ledger.row_count()
        ledger.append(a_live_attempt(2))
        assert [row.record.run for row in ledger.rows() if row.seq > before] == [2]

    def test_rows_are_chosen_by_case_session_and_scenario(self, ledger: Ledger) -> None:
        ledger.append(an_attempt("recovered", case_id="a"))
        ledger.append(an_attempt("recovered", case_id="b", session_id="s2"))
        ledger.append(a_live_attempt(1, case_id="c", session_id="s2"))
        assert [row.record.case_id for row in ledger.rows(case_ids={"c", "a"})] == ["a", "c"]
        assert [row.record.case_id for row in ledger.rows(session_id="s2")] == ["b", "c"]
        assert [row.record.case_id for row in ledger.rows(session_id="s2", scenario="live")] == ["c"]
        assert ledger.rows(case_ids=[]) == []

    def test_many_cases_are_asked_for_at_once(self, ledger: Ledger) -> None:
        ledger.append(an_attempt("recovered", case_id="case-1200"))
        ids = [f"case-{number}" for number in range(2000)]
        assert len(ledger.rows(case_ids=ids)) == 1

    def test_an_invalidated_row_is_kept_and_not_returned(self, ledger: Ledger) -> None:
        record = an_attempt("recovered")
        ledger.append(record)
        assert set_aside(ledger, record.attempt_id) == 1
        assert set_aside(ledger, record.attempt_id) == 0
        assert ledger.rows() == []
        assert ledger.row_count() == 1

    def test_whatever_an_agent_printed_can_be_stored(self, ledger: Ledger) -> None:
        odd = Finding(
            expectation="log_failure",
            status="broken",
            says="half \ud800 \0 \x1b[31m 💥",
            facts={"share": float("nan"), "text": "\udcff"},
        )
        assert ledger.append(an_attempt("not-recovered", findings=(odd,), says="\0\ud800"))
        (row,) = ledger.rows()
        assert row.record.findings[0].facts["share"] is None
        assert "\0 \x1b[31m 💥" in row.record.findings[0].says

    def test_a_row_is_there_for_another_process_at_once(self, on_file: Ledger, path: Path) -> None:
        on_file.append(a_live_attempt(1))
        other = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        assert other.execute("SELECT scenario, run, verdict FROM attempts").fetchall() == [("live", 1, "clean")]
        other.close()

    def test_a_ledger_that_is_locked_meanwhile_loses_nothing(self, path: Path) -> None:
        with Ledger.open(url(path), busy_timeout_seconds=0.1) as ledger:
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerError, match="Couldn't store an attempt in the ledger") as error:
                ledger.append(a_live_attempt(1))
            assert error.value.slug == "ledger-locked"
            other.close()
            assert ledger.append(a_live_attempt(1))

    def test_a_full_disk_is_said_in_our_words(self, on_file: Ledger) -> None:
        pages = on_file.database._connection.exec_driver_sql("PRAGMA page_count").scalar()
        on_file.database._connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        on_file.database._connection.rollback()
        with pytest.raises(LedgerError) as error:
            on_file.append(an_attempt("recovered", says="x" * 100_000))
        assert error.value.slug == "ledger-disk-full"
        assert on_file.rows() == []


class TestSessions:
    ROW = SessionRow(
        session_id="s1",
        started_at=NOW,
        profile="nightly",
        planned=(AttemptKey(case_id="a", agent="default", scenario="live", run=3),),
    )

    def test_a_session_comes_back_with_its_planned_keys(self, ledger: Ledger) -> None:
        ledger.start_session(self.ROW)
        assert ledger.session("s1") == self.ROW
        ledger.finish_session("s1", NOW)
        assert ledger.session("s1") == self.ROW.model_copy(update={"finished_at": NOW})
        assert ledger.session("s2") is None

    def test_starting_it_again_replaces_the_planned_keys_alone(self, ledger: Ledger) -> None:
        ledger.start_session(self.ROW)
        ledger.start_session(self.ROW.model_copy(update={"planned": (), "profile": "release"}))
        assert ledger.session("s1") == self.ROW.model_copy(update={"planned": ()})

    def test_only_a_session_that_was_started_can_end(self, ledger: Ledger) -> None:
        with pytest.raises(LedgerError, match="no session 's1'"):
            ledger.finish_session("s1", NOW)

    def test_what_is_stored_again_word_for_word_is_one_row(self, ledger: Ledger) -> None:
        passed = GateDecision(decision="pass", profile="nightly")
        done = Transition(case_id="a", at=NOW, kind="closed", why="29 of 29", who="somebody")
        for _ in range(2):
            ledger.save_decision(passed, at=NOW)
            ledger.add_transition(done)
        ledger.add_transition(done.model_copy(update={"evidence": "numbers"}))
        assert ledger.decisions() == [passed]
        assert [each.evidence for each in ledger.transitions("a")] == [None, "numbers"]

    def test_decisions_are_appended(self, ledger: Ledger) -> None:
        failed = GateDecision(decision="fail", profile="nightly")
        passed = GateDecision(decision="pass", profile="nightly")
        ledger.save_decision(failed, at=NOW, revision="agent@1")
        ledger.save_decision(passed, at=NOW)
        ledger.save_decision(passed, at=NOW, revision="agent@1")
        assert ledger.decisions("agent@1") == [failed, passed]
        assert len(ledger.decisions()) == 3


WRITER = dedent("""
    import sys
    from pytest_regcase.ledger.store import Ledger
    from tests.rules.attempt_samples import a_live_attempt

    session, rows = sys.argv[1], int(sys.argv[2])
    print("ready", flush=True)
    for url in sys.stdin:
        with Ledger.open(url.strip()) as ledger:
            print("opened", ledger.ledger_id, int(ledger.is_new), flush=True)
            for run in range(1, rows + 1):
                ledger.append(a_live_attempt(run, session_id=session))
                ledger.append(a_live_attempt(run, session_id="both"))
                print("stored", run, flush=True)
            print("done", flush=True)
""")

FIRST_SESSIONS = 50
"""Rounds of two first sessions at once, on each database."""


class Writer:
    """A process that writes a session's rows into every ledger that it is told of."""

    def __init__(self, session: str, rows: int, repository: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, session, str(rows)],
            cwd=repository,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def write_to(self, where: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{where}\n")
        self.process.stdin.flush()

    def told(self) -> list[str]:
        """Return what it says until it is done."""
        return list(iter(self.line, "done"))


def test_two_first_sessions_at_once_make_one_ledger_and_lose_nothing(new_url: MakeUrl, repository: Path) -> None:
    with Writer("s1", 3, repository) as one, Writer("s2", 3, repository) as other:
        assert one.line() == other.line() == "ready"
        for _ in range(FIRST_SESSIONS):
            where = new_url()
            one.write_to(where)
            other.write_to(where)
            opened = [each.told()[0].split() for each in (one, other)]
            assert opened[0][1] == opened[1][1]
            assert sorted(line[2] for line in opened) == ["0", "1"]
            with Ledger.open(where) as ledger:
                assert len(ledger.rows()) == 9
                assert {row.record.session_id for row in ledger.rows()} == {"s1", "s2", "both"}


def test_a_killed_writer_loses_nothing_that_it_had_told(new_url: MakeUrl, repository: Path) -> None:
    where = new_url()
    with Writer("s1", 5000, repository) as killed:
        killed.write_to(where)
        seen = [killed.line() for _ in range(8)]
        killed.process.kill()
        seen += killed.process.communicate()[0].splitlines()
    told = {int(line.split()[1]) for line in seen if re.fullmatch(r"stored \d+", line)}
    with Ledger.open(where) as ledger:
        stored = {row.record.run for row in ledger.rows(session_id="s1")}
        assert len(told) >= 6
        assert stored >= told
        assert len(stored) < 5000
        if not ledger.database.is_server:
            checked = ledger.database.read(lambda c: c.exec_driver_sql("PRAGMA integrity_check").scalar())
            assert checked == "ok"
