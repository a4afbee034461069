"""Exports and merges: whatever the order, the same ledger; again, nothing new; wrong lines, nothing at all."""

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import insert

from pytest_regcase.errors import UsageRefused
from pytest_regcase.ledger.export import export_lines
from pytest_regcase.ledger.lookup import held_rows, since_fix
from pytest_regcase.ledger.merge import BadLine, Brought, import_records, invalidate, merge_lines
from pytest_regcase.ledger.schema import SCHEMA_VERSION, VERSIONS
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptKey
from pytest_regcase.records.canonical import digest
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.session import SessionRow, Transition
from tests.ledger.conftest import MakeUrl
from tests.rules.attempt_samples import a_live_attempt, an_attempt

NOW = datetime(2026, 5, 20, 9, tzinfo=UTC)


def bring(target: Ledger, *others: Ledger) -> list[Brought]:
    return [merge_lines(target, lambda other=other: export_lines(other)) for other in others]  # type: ignore[misc]


def content(ledger: Ledger) -> list[dict[str, Any]]:
    """Everything but the ledger's own id."""
    return list(export_lines(ledger))[1:]


def fill(ledger: Ledger, session: str) -> None:
    """A session of everything that a ledger keeps."""
    key = AttemptKey(case_id="trial-37", agent="default", scenario="control")
    ledger.start_session(SessionRow(session_id=session, started_at=NOW, profile="nightly", planned=(key,)))
    ledger.append(an_attempt("finished", "control", session_id=session))
    ledger.append(a_live_attempt(1, "recurred", session_id=session))
    ledger.add_transition(Transition(case_id="trial-37", at=NOW, kind="fix", why=f"in {session}", who="somebody"))
    ledger.save_decision(GateDecision(decision="fail", profile="nightly"), at=NOW, revision=session)
    version = {"active": session, "since": NOW.isoformat(), "decision": 1}
    ledger.database.write("store", lambda c: c.execute(insert(VERSIONS), version))
    ledger.finish_session(session, NOW)


class TestExport:
    def test_it_says_what_it_is_and_that_it_is_whole(self, ledger: Ledger) -> None:
        fill(ledger, "s1")
        lines = list(export_lines(ledger))
        assert lines[0] == {"kind": "ledger", "schema": SCHEMA_VERSION, "ledger_id": ledger.ledger_id}
        assert lines[-1] == {"kind": "end", "attempts": 2}
        kinds = [line["kind"] for line in lines[1:-1]]
        assert kinds == ["source", "session", "attempt", "attempt", "transition", "decision", "version"]
        assert json.loads(json.dumps(lines)) == lines

    def test_an_empty_ledger_has_an_export_too(self, ledger: Ledger) -> None:
        assert [line["kind"] for line in export_lines(ledger)] == ["ledger", "end"]


class TestMerge:
    def test_everything_comes_over_and_stays_as_it_was(self, new_url: MakeUrl) -> None:
        with Ledger.open(new_url()) as one, Ledger.open(new_url()) as other:
            fill(one, "s1")
            assert bring(other, one) == [Brought(attempts=2, others=4)]
            assert content(other) == content(one)
            assert [each.record for each in other.rows()] == [each.record for each in one.rows()]
            assert other.session("s1") == one.session("s1")
            assert other.decisions("s1") == one.decisions("s1")
            assert bring(other, one) == [Brought(known=2)]

    def test_the_order_does_not_matter(self, new_url: MakeUrl) -> None:
        with ExitStack() as stack:
            shards = [stack.enter_context(Ledger.open(new_url())) for _ in range(3)]
            for number, each in enumerate(shards):
                fill(each, f"s{number}")
            merged = []
            for order in list(permutations(shards))[:4]:
                target = stack.enter_context(Ledger.open(new_url()))
                bring(target, *order)
                merged.append(content(target))
            assert all(each == merged[0] for each in merged)
            # Through one of them in between, or into one of them: the same.
            bring(shards[1], shards[2])
            bring(shards[0], shards[1], shards[2])
            assert content(shards[0]) == merged[0]

    def test_between_the_two_databases(self, ledger: Ledger, tmp_path: Path) -> None:
        fill(ledger, "s1")
        with Ledger.open(f"sqlite:///{tmp_path / 'file'}") as file:
            fill(file, "S2")
            bring(file, ledger)
            bring(ledger, file)
            assert content(file) == content(ledger)

    def test_what_was_invalidated_anywhere_is_invalidated(self, new_url: MakeUrl) -> None:
        with Ledger.open(new_url()) as one, Ledger.open(new_url()) as other:
            record = an_attempt("recovered")
            one.append(record)
            bring(other, one)
            invalidate(one, why="wrong model", at=NOW, attempt_id=record.attempt_id, session_id=None)
            assert bring(other, one) == [Brought(known=1, invalidated=1)]
            assert other.rows() == []
            later = NOW + timedelta(days=1)
            assert invalidate(other, why="x", at=later, attempt_id=None, session_id="s1") == 0
            assert content(other) == content(one)

    def test_a_session_ended_if_it_ended_anywhere(self, new_url: MakeUrl) -> None:
        row = SessionRow(session_id="s", started_at=NOW, profile="nightly")
        with Ledger.open(new_url()) as one, Ledger.open(new_url()) as other:
            for each in (one, other):
                each.start_session(row)
            one.finish_session("s", NOW)
            bring(one, other)
            bring(other, one)
            assert one.session("s") == other.session("s") == row.model_copy(update={"finished_at": NOW})

    def test_another_record_of_the_same_attempt_is_refused_and_nothing_comes(self, new_url: MakeUrl) -> None:
        with Ledger.open(new_url()) as one, Ledger.open(new_url()) as other:
            one.append(an_attempt("finished", "control"))
            one.append(an_attempt("recovered"))
            other.append(an_attempt("not-recovered"))
            with pytest.raises(UsageRefused, match=r"Couldn't bring in the attempt .*\n.*Nothing was changed"):
                bring(other, one)
            assert [each.record.verdict for each in other.rows()] == ["not-recovered"]

    def test_a_merge_that_holds_a_ledger_counts_as_that_one(self, new_url: MakeUrl) -> None:
        with Ledger.open(new_url()) as home, Ledger.open(new_url()) as merged:
            for run in (1, 2, 3):
                home.append(a_live_attempt(run))
            before = since_fix(held_rows(merged), ledger_id=home.ledger_id, rows=2, at=NOW)
            bring(merged, home)
            assert not before.at_hand
            assert since_fix(held_rows(merged), ledger_id=home.ledger_id, rows=3, at=NOW).at_hand
            assert not since_fix(held_rows(merged), ledger_id=home.ledger_id, rows=4, at=NOW).at_hand


class TestWrongLines:
    @pytest.fixture
    def lines(self, tmp_path: Path) -> list[dict[str, Any]]:
        with Ledger.open(f"sqlite:///{tmp_path / 'other'}") as other:
            fill(other, "s1")
            return list(export_lines(other))

    def refused(self, ledger: Ledger, lines: Sequence[Any]) -> str:
        with pytest.raises(BadLine) as error:
            merge_lines(ledger, lambda: lines)
        assert content(ledger) == [{"kind": "end", "attempts": 0}]
        return str(error.value)

    def test_cut_off(self, ledger: Ledger, lines: list[dict[str, Any]]) -> None:
        assert "cut off" in self.refused(ledger, lines[:-1])

    def test_a_line_that_is_missing(self, ledger: Ledger, lines: list[dict[str, Any]]) -> None:
        without = [line for place, line in enumerate(lines) if place != 3]
        assert self.refused(ledger, without) == "it ends after 2 attempts, and holds 1"

    def test_a_newer_one(self, ledger: Ledger, lines: list[dict[str, Any]]) -> None:
        assert "newer version made it (schema 9" in self.refused(ledger, [{**lines[0], "schema": 9}, *lines[1:]])

    @pytest.mark.parametrize(
        ("place", "line", "says"),
        [
            (0, {"kind": "session"}, "the first line of an export"),
            (2, {"kind": "ledger"}, "the first line of an export"),
            (2, {"kind": "invoice"}, "kind 'invoice' is none of an export"),
            (2, {"kind": ["x"]}, "is none of an export"),
            (2, {"kind": "session"}, "a session line has no 'session_id'"),
            (3, {"kind": "attempt", "record": "{}", "home": "x", "row": 1}, "holds no attempt"),
            (3, {"kind": "attempt", "record": 7, "home": "x", "row": 1}, "holds no attempt"),
            (-1, {"kind": "end", "attempts": 5}, "it ends after 5 attempts, and holds 2"),
        ],
    )
    def test_what_is_no_line_of_an_export(
        self, ledger: Ledger, lines: list[dict[str, Any]], place: int, line: dict[str, Any], says: str
    ) -> None:
        lines[place] = line
        assert says in self.refused(ledger, lines)

    @pytest.mark.parametrize(
        ("kind", "change", "says"),
        [
            ("source", {"ledger_id": 2**70}, "ledger_id is no text"),
            ("source", {"rows": "many"}, "rows is no number"),
            ("source", {"rows": 2**31}, "rows is no number"),
            ("session", {"started_at": "yesterday"}, "yesterday"),
            ("session", {"profile": "weekly"}, "profile"),
            ("session", {"planned": "[{}]"}, "case_id"),
            ("session", {"planned": "[" * 100_000}, "recursion"),
            ("session", {"revisions": "5"}, "revisions"),
            ("session", {"shard": "4/3"}, "i/n"),
            ("session", {"run_id": "\ud800"}, "run_id is no text that a database holds"),
            ("session", {"live_new": True}, "live_new is no number"),
            ("attempt", {"home": None}, "ledger_id is not there"),
            ("attempt", {"row": -1}, "rows is no number"),
            ("attempt", {"invalidated_at": 5}, "invalidated_at is no text"),
            ("transition", {"at": "yesterday"}, "yesterday"),
            ("transition", {"what": "closed-by-magic"}, "kind"),
            ("decision", {"at": 5}, "at is no text"),
            ("decision", {"decision": "{}", "digest": digest(b"{}")}, "decision"),
            ("decision", {"rests_on": "[]"}, "an object"),
            ("decision", {"about": None}, "about is not there"),
            ("version", {"since": ""}, "isoformat"),
        ],
    )
    def test_what_nobody_could_read_again(
        self, ledger: Ledger, lines: list[dict[str, Any]], kind: str, change: dict[str, Any], says: str
    ) -> None:
        place = next(place for place, line in enumerate(lines) if line["kind"] == kind)
        lines[place] |= change
        said = self.refused(ledger, lines)
        assert kind in said
        assert says in said


class TestImport:
    def test_attempts_are_stored_once_as_made_here(self, ledger: Ledger) -> None:
        records = [a_live_attempt(run) for run in (1, 2)]
        ledger.append(records[0])
        assert import_records(ledger, records) == Brought(attempts=1, known=1)
        assert import_records(ledger, records) == Brought(known=2)
        assert [row.record for row in ledger.rows()] == records

    def test_two_ledgers_that_took_the_same_ones_merge_to_the_same(self, new_url: MakeUrl) -> None:
        with ExitStack() as stack:
            a, b, ab, ba = (stack.enter_context(Ledger.open(new_url())) for _ in range(4))
            a.append(a_live_attempt(9))
            for each in (a, b):
                import_records(each, [a_live_attempt(1), a_live_attempt(2)])
            bring(ab, a, b)
            bring(ba, b, a)
            assert content(ab) == content(ba)
            assert bring(ab, ba) == [Brought(known=3)]

    def test_one_that_differs_is_refused_and_none_is_stored(self, ledger: Ledger) -> None:
        ledger.append(an_attempt("recovered"))
        with pytest.raises(UsageRefused, match="another record"):
            import_records(ledger, [a_live_attempt(1), an_attempt("not-recovered")])
        assert ledger.row_count() == 1


ATTEMPTS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(1, 2), st.sampled_from(["s1", "s2"]), st.booleans()), max_size=3
)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:
        Ledger.open(f"sqlite:///{made}/empty").close()
        yield Path(made)


@settings(max_examples=12)
@given(
    held=st.lists(ATTEMPTS, min_size=3, max_size=3),
    order=st.permutations(range(3)),
    repeats=st.lists(st.integers(0, 2), max_size=2),
)
def test_any_merges_in_any_order_with_any_repeats_give_one_ledger(
    folder: Path, held: list[list[tuple[str, int, str, bool]]], order: list[int], repeats: list[int]
) -> None:
    with ExitStack() as stack:
        ledgers = [stack.enter_context(_empty(folder)) for _ in held]
        for ledger, rows in zip(ledgers, held, strict=True):
            for case_id, run, session, wrong in rows:
                record = a_live_attempt(run, case_id=case_id, session_id=session)
                ledger.append(record)
                if wrong:
                    invalidate(ledger, why=case_id, at=NOW, attempt_id=record.attempt_id, session_id=None)
        straight, other = stack.enter_context(_empty(folder)), stack.enter_context(_empty(folder))
        bring(straight, *ledgers)
        bring(other, *(ledgers[place] for place in [*repeats, *order, *repeats]))
        found = content(straight)
        assert content(other) == found
        bring(straight, other)
        assert content(straight) == found


def _empty(folder: Path) -> Ledger:
    """A copy of a ledger that was just made, under an id of its own: faster than to make one."""
    path = folder / f"{len(list(folder.iterdir()))}.sqlite3"
    shutil.copy(folder / "empty", path)
    file = sqlite3.connect(path)
    file.execute("UPDATE meta SET value = ? WHERE name = 'ledger_id'", (path.name,))
    file.commit()
    file.close()
    return Ledger.open(f"sqlite:///{path}")
