"""The ledger against real files and real processes; PostgreSQL is tried where a server is."""

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
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptKey, Finding
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.session import SessionRow
from tests.rules.attempt_samples import a_live_attempt, an_attempt, findings

NOW = datetime(2026, 5, 20, 9, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
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

    def test_writes_survive_a_crash_of_the_machine(self, ledger: Ledger) -> None:
        pragmas = {
            name: ledger._connection.exec_driver_sql(f"PRAGMA {name}").scalar()
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

    def test_a_newer_schema(self, path: Path, ledger: Ledger) -> None:
        ledger.close()
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

    def test_read_only(self, path: Path, ledger: Ledger) -> None:
        ledger.close()
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

    def test_an_invalidated_row_is_kept_and_not_returned(self, ledger: Ledger, path: Path) -> None:
        ledger.append(an_attempt("recovered"))
        other = sqlite3.connect(path)
        other.execute("UPDATE attempts SET invalidated_at = '2026-05-21', invalidated_why = 'wrong model'")
        other.commit()
        other.close()
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

    def test_a_row_is_there_for_another_process_at_once(self, ledger: Ledger, path: Path) -> None:
        ledger.append(a_live_attempt(1))
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

    def test_a_full_disk_is_said_in_our_words(self, ledger: Ledger) -> None:
        pages = ledger._connection.exec_driver_sql("PRAGMA page_count").scalar()
        ledger._connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        ledger._connection.rollback()
        with pytest.raises(LedgerError) as error:
            ledger.append(an_attempt("recovered", says="x" * 100_000))
        assert error.value.slug == "ledger-disk-full"
        assert ledger.rows() == []


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

    url, session, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
    sys.stdin.readline()
    with Ledger.open(url) as ledger:
        print("opened", ledger.ledger_id, int(ledger.is_new), flush=True)
        for run in range(1, rows + 1):
            ledger.append(a_live_attempt(run, session_id=session))
            ledger.append(a_live_attempt(run, session_id="both"))
            print("stored", run, flush=True)
""")


def writer(path: Path, session: str, rows: int, repository: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, url(path), session, str(rows)],
        cwd=repository,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_first_sessions_at_once_make_one_ledger_and_lose_nothing(tmp_path: Path, repository: Path) -> None:
    for attempt in range(3):
        path = tmp_path / f"{attempt}" / "ledger.sqlite3"
        writers = [writer(path, name, 20, repository) for name in ("s1", "s2")]
        for each in writers:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        told = [each.communicate()[0].splitlines() for each in writers]
        assert [each.returncode for each in writers] == [0, 0]
        opened = [lines[0].split() for lines in told]
        assert opened[0][1] == opened[1][1]
        assert sorted(line[2] for line in opened) == ["0", "1"]
        with Ledger.open(url(path)) as ledger:
            assert len(ledger.rows()) == 60
            assert {row.record.session_id for row in ledger.rows()} == {"s1", "s2", "both"}


def test_a_killed_writer_loses_nothing_that_it_had_told(tmp_path: Path, repository: Path) -> None:
    path = tmp_path / "ledger.sqlite3"
    for attempt in range(3):
        session = f"s{attempt}"
        process = writer(path, session, 500, repository)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        for _ in range(5 + attempt):
            process.stdout.readline()
        process.kill()
        rest = process.stdout.read().splitlines()
        process.wait()
        process.stdin.close()
        process.stdout.close()
        told = max((int(line.split()[1]) for line in rest if line.startswith("stored ")), default=4 + attempt)
        with Ledger.open(url(path)) as ledger:
            stored = {row.record.run for row in ledger.rows(session_id=session)}
            assert stored >= set(range(1, told + 1))
            assert ledger._connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
