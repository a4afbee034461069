"""Decisions and versions in a real ledger, on both databases: appended, ordered by time, carried by exports."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from sqlalchemy import text

from pytest_regcase.ledger.export import export_lines
from pytest_regcase.ledger.merge import BadLine, Brought, invalidate, merge_lines
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.ledger.versions import Grounds, decided, held_of, make_active, revisions_decided, versions
from pytest_regcase.records.attempt import AttemptKey, Digests
from pytest_regcase.records.decision import GateDecision, Reason
from pytest_regcase.records.session import SessionRow
from pytest_regcase.records.version import Decided, Held, RestsOn, Version
from tests.ledger.conftest import MakeUrl
from tests.rules.attempt_samples import an_attempt

NOW = datetime(2026, 5, 20, 9, tzinfo=UTC)
AGENTS = {"default": "sha256:a"}
PASSED = GateDecision(decision="pass", profile="nightly")
FAILED = GateDecision(
    decision="fail", profile="nightly", reasons=(Reason(code="check-broken", case_id="trial-37", text="broken"),)
)
OVER = RestsOn(sessions=("s1",), held=Held(sessions=1, attempts=2, invalidated=0))


def session(ledger: Ledger, session_id: str, agents: dict[str, str] | None = None, attempts: int = 0) -> None:
    key = AttemptKey(case_id="trial-37", agent="default", scenario="control")
    row = SessionRow(session_id=session_id, started_at=NOW, profile="nightly", planned=(key,), revisions=agents)
    ledger.start_session(row)
    for number in range(attempts):
        record = an_attempt("finished", "control", session_id=session_id, try_number=number)
        ledger.append(record.model_copy(update={"attempt_id": f"{session_id}-{number}"}))


def version(active: str, seconds: int = 0, **changes: Any) -> Version:
    return Version(active=active, since=NOW + timedelta(seconds=seconds), who="mina", **changes)


def promoted(ledger: Ledger, wanted: Version) -> Version:
    return make_active(ledger, wanted.active, AGENTS, lambda _: wanted)


class TestDecisions:
    def test_what_is_kept_says_what_it_is_about_and_its_digest(self, ledger: Ledger) -> None:
        of_session = ledger.save_decision(PASSED, at=NOW, revision="r")
        of_candidate = ledger.save_decision(FAILED, at=NOW, revision="r", rests_on=OVER)
        ledger.save_decision(PASSED, at=NOW, revision="another", rests_on=OVER)
        assert decided(ledger, "r") == [of_candidate, of_session]
        assert (of_session.about, of_session.rests_on) == ("session", None)
        assert (of_candidate.about, of_candidate.rests_on) == ("candidate", OVER)
        assert of_session.digest != of_candidate.digest
        assert of_session.digest == ledger.save_decision(PASSED, at=NOW + timedelta(days=1)).digest
        assert revisions_decided(ledger) == ["another", "r"]

    def test_the_order_is_that_of_time_not_of_arrival(self, ledger: Ledger) -> None:
        for day in (2, 1, 3):
            ledger.save_decision(PASSED, at=NOW + timedelta(days=day), revision="r", rests_on=OVER)
        assert [each.at.day for each in decided(ledger, "r")] == [21, 22, 23]


class TestHeld:
    def test_everything_of_sessions_in_which_one_of_the_agents_took_part(self, ledger: Ledger) -> None:
        session(ledger, "s1", AGENTS, attempts=2)
        session(ledger, "s2", {**AGENTS, "other": "sha256:o"}, attempts=1)
        session(ledger, "s3", {"default": "sha256:b"}, attempts=1)
        session(ledger, "s4", {"other": "sha256:a"}, attempts=1)
        release = SessionRow(session_id="r", started_at=NOW, profile="release", revisions=AGENTS)
        ledger.start_session(release)
        assert held_of(ledger, AGENTS) == Held(sessions=2, attempts=3, invalidated=0)
        assert held_of(ledger, {}) == Held(sessions=0, attempts=0, invalidated=0)
        invalidate(ledger, why="wrong model", at=NOW, attempt_id="s1-0", session_id=None)
        assert held_of(ledger, AGENTS) == Held(sessions=2, attempts=3, invalidated=1)

    def test_the_agents_trials_in_sweeps_count_too(self, ledger: Ledger) -> None:
        ledger.start_session(SessionRow(session_id="sweep", started_at=NOW, profile="nightly", source="sweep"))
        ledger.append(an_attempt("recovered", "control", session_id="sweep"))
        digests = Digests(case="c", agent="sha256:a")
        ledger.append(an_attempt("recovered", session_id="sweep", digests=digests))
        ledger.append(an_attempt("recovered", session_id="sweep", digests=digests, agent="other"))
        assert held_of(ledger, AGENTS) == Held(sessions=0, attempts=1, invalidated=0)


class TestActive:
    def test_each_version_is_appended_and_the_newest_is_active(self, ledger: Ledger) -> None:
        one, other = version("a", decision="sha256:d", why="release 1"), version("b", 1)
        assert promoted(ledger, one) == one
        assert promoted(ledger, other) == other
        assert versions(ledger) == [one, other]

    def test_what_is_active_is_not_stored_again(self, ledger: Ledger) -> None:
        one = promoted(ledger, version("a"))
        assert promoted(ledger, one) == one
        assert versions(ledger) == [one]

    def test_the_judge_sees_the_last_decision_on_the_candidate_and_what_is_held(self, ledger: Ledger) -> None:
        session(ledger, "s1", AGENTS, attempts=2)
        ledger.save_decision(PASSED, at=NOW, revision="a", rests_on=OVER)
        last = ledger.save_decision(FAILED, at=NOW + timedelta(seconds=1), revision="a", rests_on=OVER)
        ledger.save_decision(PASSED, at=NOW + timedelta(seconds=2), revision="a")
        ledger.save_decision(PASSED, at=NOW + timedelta(seconds=2), revision="b", rests_on=OVER)
        active = promoted(ledger, version("b"))
        seen: list[Grounds] = []

        def judge(grounds: Grounds) -> Version:
            seen.append(grounds)
            raise RuntimeError

        with pytest.raises(RuntimeError):
            make_active(ledger, "a", AGENTS, judge)
        assert seen == [Grounds(last, OVER.held, active)]
        assert versions(ledger) == [active]

    def test_two_at_once_are_two_rows_one_after_the_other(self, ledger: Ledger) -> None:
        url = ledger.database.url.render_as_string(hide_password=False)

        def one(name: str) -> str | None:
            with Ledger.open(url) as own:
                seen: list[Version | None] = []

                def judge(grounds: Grounds) -> Version:
                    seen.append(grounds.active)
                    since = NOW if grounds.active is None else grounds.active.since + timedelta(seconds=1)
                    return Version(active=name, since=since)

                make_active(own, name, {}, judge)
                return None if seen[-1] is None else seen[-1].active

        names = ["a", "b", "c"]
        with ThreadPoolExecutor(3) as threads:
            before = list(threads.map(one, names))
        order = [each.active for each in versions(ledger)]
        assert sorted(order) == names
        assert [before[names.index(each)] for each in order] == [None, *order[:-1]]


class TestExchange:
    @pytest.fixture
    def filled(self, new_url: MakeUrl) -> Iterator[list[Ledger]]:
        ledgers = [Ledger.open(new_url()) for _ in range(3)]
        for number, each in enumerate(ledgers):
            at = NOW + timedelta(days=2 - number)
            made = each.save_decision(PASSED, at=at, revision=f"r{number}", rests_on=OVER)
            promoted(each, version(f"r{number}", 86400 * (2 - number), decision=made.digest))
        yield ledgers
        for each in ledgers:
            each.close()

    def test_whatever_the_order_the_newest_is_active(self, filled: list[Ledger], new_url: MakeUrl) -> None:
        merged: list[list[dict[str, Any]]] = []
        for order in list(permutations(filled))[:3]:
            with Ledger.open(new_url()) as target:
                for each in (*order, order[0]):
                    merge_lines(target, lambda each=each: export_lines(each))  # type: ignore[misc]
                assert [each.active for each in versions(target)] == ["r2", "r1", "r0"]
                assert [each.rests_on for each in decided(target, "r1")] == [OVER]
                merged.append(list(export_lines(target))[1:])
        assert merged[1:] == merged[:-1]

    def test_two_of_the_same_time_are_in_one_order_everywhere(self, new_url: MakeUrl) -> None:
        with Ledger.open(new_url()) as one, Ledger.open(new_url()) as other:
            promoted(one, version("a"))
            promoted(other, version("b"))
            for target, source in ((one, other), (other, one)):
                merge_lines(target, lambda source=source: export_lines(source))  # type: ignore[misc]
            assert versions(one) == versions(other)
            assert [each.active for each in versions(one)] == ["a", "b"]

    def test_an_export_of_schema_2_comes_in(self, ledger: Ledger) -> None:
        stored = json.dumps(PASSED.to_plain(), sort_keys=True, separators=(",", ":"))
        decision = {"revision": "r", "at": NOW.isoformat(), "decision": stored}
        lines: list[dict[str, Any]] = [
            {"kind": "ledger", "schema": 2, "ledger_id": "old"},
            {"kind": "decision", **decision},
            {"kind": "version", "active": "r", "since": NOW.isoformat(), "decision": decision},
            {"kind": "version", "active": "q", "since": NOW.isoformat()},
            {"kind": "end", "attempts": 0},
        ]
        assert merge_lines(ledger, lambda: lines) == Brought(others=3)
        made = ledger.save_decision(PASSED, at=NOW, revision="r")
        assert decided(ledger, "r") == [made]
        assert [(each.active, each.decision) for each in versions(ledger)] == [("q", None), ("r", made.digest)]

    def test_an_edited_decision_is_refused(self, filled: list[Ledger], new_url: MakeUrl) -> None:
        edited = list(export_lines(filled[0]))
        (line,) = (each for each in edited if each["kind"] == "decision")
        line["decision"] = line["decision"].replace("nightly", "release")
        with Ledger.open(new_url()) as target:
            with pytest.raises(BadLine, match="it was edited"):
                merge_lines(target, lambda: edited)
            assert revisions_decided(target) == []


def test_a_ledger_of_schema_2_keeps_decisions_and_versions(new_url: MakeUrl) -> None:
    url = new_url()
    with Ledger.open(url) as ledger:
        made = ledger.save_decision(PASSED, at=NOW, revision="r")
        ledger.database.write("make old", lambda connection: _to_schema_2(ledger, connection))
    with Ledger.open(url) as again:
        assert decided(again, "r") == [
            Decided(revision="r", at=NOW, about="session", digest=made.digest, decision=PASSED)
        ]
        assert versions(again) == [Version(active="r", since=NOW, decision=made.digest)]
        promoted(again, version("s", 1))
        assert [each.active for each in versions(again)] == ["r", "s"]


def _to_schema_2(ledger: Ledger, connection: Any) -> None:
    number = "SERIAL PRIMARY KEY" if ledger.database.is_server else "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT"
    seq = connection.execute(text("SELECT seq FROM decisions")).scalar()
    for column in ("digest", "about", "rests_on"):
        connection.execute(text(f"ALTER TABLE decisions DROP COLUMN {column}"))
    for column in ("run_id", "shard", "agent", '"commit"', "live_new", "revisions", "left_out", "hooked"):
        connection.execute(text(f"ALTER TABLE sessions DROP COLUMN {column}"))
    connection.execute(text("DROP TABLE versions"))
    connection.execute(
        text(
            f"CREATE TABLE versions (seq {number}, active VARCHAR(500) NOT NULL, since VARCHAR(40) NOT NULL,"
            " decision INTEGER)"
        )
    )
    connection.execute(
        text("INSERT INTO versions (active, since, decision) VALUES ('r', :at, :seq)"),
        {"at": NOW.isoformat(), "seq": seq},
    )
    connection.execute(text("UPDATE meta SET value = '2' WHERE name = 'schema'"))
