"""Which sessions one decision is made over."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pytest_regcase.records.attempt import AttemptKey
from pytest_regcase.records.session import SessionRow
from pytest_regcase.records.words import Profile
from pytest_regcase.session.gating.gate_sessions import Chosen, dated_ahead, newest_of_each, newest_run, with_due

NOW = datetime(2026, 5, 20, tzinfo=UTC)
AGENTS = {"a": "default", "b": "default"}
NOW_RUN = {"default": "sha256:now"}


def session(hours_ago: int, **changes: Any) -> SessionRow:
    at = NOW - timedelta(hours=hours_ago)
    given = {"session_id": f"s{hours_ago}", "started_at": at, "profile": "pull-request", "revisions": NOW_RUN}
    return SessionRow.model_validate({**given, **changes})


def key(case_id: str, scenario: str = "control", agent: str = "default", run: int = 1) -> AttemptKey:
    return AttemptKey(case_id=case_id, agent=agent, scenario=scenario, run=run)


def choose(*sessions: SessionRow, run_id: str | None = None, profile: Profile | None = None) -> Chosen:
    """Hand the sessions in newest first, as the ledger does."""
    return newest_run(sessions, run_id=run_id, profile=profile, revisions=NOW_RUN)


def ids(chosen: Chosen) -> list[str]:
    return [each.session_id for each in chosen.rows]


def texts(chosen: Chosen) -> list[str]:
    assert all(each.red and each.code == "no-session" for each in chosen.found)
    return [each.text for each in chosen.found]


def test_only_what_is_dated_later_than_clocks_differ_hides_others() -> None:
    rows = [session(2), session(0), session(-1)]
    (reason,) = dated_ahead(rows, NOW - timedelta(minutes=5))
    assert (reason.code, reason.red) == ("dated-ahead", True)
    assert reason.text.startswith("session s-1 is dated 2026-05-20 01:00 UTC, later than now")
    assert len(dated_ahead(rows, NOW - timedelta(minutes=6))) == 2


class TestNewestRun:
    def test_the_newest_one_of_the_present_agents(self) -> None:
        other = session(1, revisions={"default": "sha256:another"})
        old = session(2, revisions=None)
        assert ids(choose(other, old, session(3), session(4))) == ["s3"]

    def test_agents_that_are_not_known_now_decide_nothing(self) -> None:
        row = session(1, revisions={**NOW_RUN, "tests/test_x.py::test_y": "sha256:f"})
        assert ids(choose(row, session(2))) == ["s1"]

    def test_one_that_ran_nothing_is_passed_over(self) -> None:
        assert ids(choose(session(1, profile="release"), session(2, source="sweep"), session(3))) == ["s3"]

    def test_the_profile_that_is_asked_for(self) -> None:
        rows = session(1), session(2, profile="nightly")
        assert ids(choose(*rows)) == ["s1"]
        assert ids(choose(*rows, profile="nightly")) == ["s2"]
        assert texts(choose(rows[0], profile="nightly")) == [
            "no session in profile nightly in this ledger ran the agent as it is now"
        ]

    def test_none_is_said(self) -> None:
        assert texts(choose()) == ["no session in this ledger ran the agent as it is now"]
        assert choose().rows == ()

    def test_a_run_of_a_ci_is_its_own_sessions_whatever_they_ran(self) -> None:
        rows = session(1), session(2, run_id="77", revisions={"default": "sha256:another"}), session(3)
        assert ids(choose(*rows, run_id="77")) == ["s2"]
        assert texts(choose(*rows, run_id="78")) == ["the CI run 78 left no session in this ledger"]
        assert choose(*rows, run_id="78").rows == ()


class TestShards:
    def test_the_newest_of_each_shard_in_their_order(self) -> None:
        rows = [session(hours, shard=f"{number}/3") for hours, number in enumerate([2, 1, 2, 3, 1], 1)]
        assert ids(choose(*rows)) == ["s2", "s1", "s4"]
        assert texts(choose(*rows)) == []

    def test_a_missing_one_is_said(self) -> None:
        chosen = choose(session(1, shard="2/3"), session(2, shard="1/3"))
        assert ids(chosen) == ["s2", "s1"]
        assert texts(chosen) == ["shard 3/3 left no session, so nothing of it is shown"]

    @pytest.mark.parametrize(
        "other",
        [
            {"shard": "2/3"},
            {"shard": None},
            {"profile": "nightly"},
            {"commit": "b"},
            {"run_id": "9"},
            {"revisions": {}},
        ],
        ids=lambda changes: "-".join(map(str, *changes.items())),
    )
    def test_what_does_not_belong_to_the_newest(self, other: dict[str, Any]) -> None:
        newest = session(1, shard="1/2", commit="a")
        assert ids(choose(newest, session(2, **{"shard": "2/2", "commit": "a", **other}))) == ["s1"]
        assert ids(choose(newest, session(2, shard="2/2", commit="a"))) == ["s1", "s2"]

    def test_shards_of_one_run_need_nothing_else_in_common(self) -> None:
        rows = session(1, shard="1/2", run_id="9", commit="a"), session(2, shard="2/2", run_id="9")
        assert ids(choose(*rows)) == ids(choose(*rows, run_id="9")) == ["s1", "s2"]

    def test_a_whole_session_that_is_newer_stands_alone(self) -> None:
        assert ids(choose(session(1), session(2, shard="1/2"), session(3, shard="2/2"))) == ["s1"]


class TestNewestOfEach:
    def chosen(self, *sessions: SessionRow, agents: dict[str, str] | None = None) -> list[tuple[str, list[str]]]:
        found = newest_of_each(sessions, agents or AGENTS, {**NOW_RUN, "other": "sha256:o"})
        return [(each.session_id, [str(key) for key in each.planned]) for each in found]

    def test_each_case_has_its_own(self) -> None:
        rows = session(1, planned=(key("b"),)), session(2, planned=(key("a"), key("b"), key("c")))
        assert self.chosen(*rows) == [("s1", ["b::control::check"]), ("s2", ["a::control::check"])]

    def test_live_runs_belong_to_no_session(self) -> None:
        row = session(1, planned=(key("a"), key("a", "live", run=3)))
        assert self.chosen(row) == [("s1", ["a::control::check"])]

    def test_only_the_cases_agent_as_it_is_now(self) -> None:
        rows = (
            session(1, planned=(key("a", agent="other"),), revisions={**NOW_RUN, "other": "sha256:o"}),
            session(2, planned=(key("a"),), revisions={"default": "sha256:before"}),
            session(3, planned=(key("a"),), revisions=None),
            session(4, planned=(key("a"),)),
        )
        assert [name for name, _ in self.chosen(*rows)] == ["s4"]
        assert [name for name, _ in self.chosen(*rows, agents={"a": "other"})] == ["s1"]

    def test_a_function_counts_beside_the_agent_by_its_newest_session(self) -> None:
        function = key("a", agent="tests/test_x.py::test_y")
        rows = (session(1, planned=(function,)), session(2, planned=(key("a"), function)))
        assert [name for name, _ in self.chosen(*rows)] == ["s1", "s2"]
        assert [len(keys) for _, keys in self.chosen(*rows)] == [1, 1]

    def test_no_session_is_read_that_is_not_needed(self) -> None:
        def sessions() -> Any:
            yield session(1, planned=(key("a"), key("b")))
            raise AssertionError("read further")

        assert len(newest_of_each(sessions(), AGENTS, NOW_RUN)) == 1

    def test_what_was_left_out_of_it_is_no_matter(self) -> None:
        (found,) = newest_of_each([session(1, planned=(key("a"),), left_out=("b",))], AGENTS, NOW_RUN)
        assert found.left_out == ()


class TestDue:
    def test_a_check_that_is_new_since_is_planned_and_not_run(self) -> None:
        rows = session(1, planned=(key("a"),)), session(2, planned=(key("b"),))
        due = [key("a"), key("a", "new-v1"), key("b"), key("c")]
        filled = with_due(rows, due)
        assert [list(map(str, each.planned)) for each in filled] == [
            ["a::control::check", "a::new-v1::check"],
            ["b::control::check"],
        ]

    def test_only_for_the_agent_that_ran_the_case(self) -> None:
        row = session(1, planned=(key("a", agent="tests/test_x.py::test_y"),))
        assert with_due([row], [key("a")]) == (row,)
