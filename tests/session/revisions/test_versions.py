"""Which revision is meant, and which may become active."""

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.config import Project, RegcaseConfig
from pytest_regcase.errors import ClaimRefused, UnknownName, UsageRefused
from pytest_regcase.ledger.merge import invalidate
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.ledger.versions import held_of, versions
from pytest_regcase.records.decision import GateDecision, Reason
from pytest_regcase.records.session import SessionRow
from pytest_regcase.records.version import Decided, RestsOn, Version
from pytest_regcase.session.revisions.git_revision import work_tree_commit
from pytest_regcase.session.revisions.revision import revision_over
from pytest_regcase.session.revisions.versions import KnownRevision, Promoted, find_revision, promote
from tests.rules.attempt_samples import an_attempt

NOW = datetime(2026, 5, 20, 9, tzinfo=UTC)
ONE = "sha256:" + "abcdef0" + "1" * 57
OTHER = "sha256:" + "abcdef0" + "2" * 57
COMMIT, LATER_COMMIT = "c0ffee0" + "1" * 33, "c0ffee0" + "2" * 33


class Bench:
    """A project with a ledger in which sessions and decisions are made by hand."""

    def __init__(self, root: Path, ledger: Ledger) -> None:
        self.project = Project(root, RegcaseConfig.model_validate({}))
        self.ledger = ledger
        self._at = NOW

    def tick(self) -> datetime:
        self._at += timedelta(minutes=1)
        return self._at

    def session(self, digest: str, commit: str | None = None, attempts: int = 1, **changes: Any) -> str:
        at = self.tick()
        session_id = f"s{at:%H%M}"
        given = {"revisions": {"default": digest}, "commit": commit, **changes}
        self.ledger.start_session(SessionRow(session_id=session_id, started_at=at, profile="nightly", **given))
        for number in range(attempts):
            self.ledger.append(an_attempt("recovered", session_id=session_id, try_number=number))
        return session_id

    def decide(self, digest: str, decision: Any = "pass", **changes: Any) -> Decided:
        red = [] if decision == "pass" else [Reason(code="check-broken", case_id="trial-37", text="it broke")]
        held = held_of(self.ledger, {"default": digest})
        return self.ledger.save_decision(
            GateDecision(decision=decision, profile="nightly", reasons=tuple(red)),
            **{"at": self.tick(), "revision": digest, "rests_on": RestsOn(sessions=(), held=held), **changes},
        )

    def find(self, name: str) -> KnownRevision:
        return find_revision(self.project, self.ledger, name)

    def promote(self, name: str, **changes: Any) -> Promoted:
        given = {"by": "mina", "at": self.tick(), **changes}
        return promote(self.project, self.ledger, self.find(name), **given)

    def refused(self, name: str, error: type[Exception] = ClaimRefused) -> str:
        before = versions(self.ledger)
        with pytest.raises(error) as caught:
            self.promote(name)
        assert versions(self.ledger) == before
        return str(caught.value)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite3'}") as ledger:
        yield Bench(tmp_path, ledger)


def git(root: Path, *words: str) -> str:
    named = ["-c", "user.name=n", "-c", "user.email=n@example.com"]
    return subprocess.run(
        ["git", *named, *words], cwd=root, check=True, capture_output=True, text=True
    ).stdout.strip()


class TestFind:
    def test_by_digest_with_and_without_its_prefix_whole_and_cut(self, bench: Bench) -> None:
        bench.session(ONE)
        for name in (ONE, ONE[7:], ONE[:14], ONE[7:14], ONE.upper().replace("SHA", "sha")):
            assert bench.find(name).digest == ONE

    def test_of_several_agents_it_is_the_digest_over_all(self, bench: Bench) -> None:
        agents = {"default": ONE, "other": OTHER}
        bench.session(ONE, revisions=agents)
        found = bench.find(revision_over(agents))
        assert found.agents == agents
        with pytest.raises(UnknownName):
            bench.find(ONE)

    def test_what_may_be_several_is_refused_with_all_of_them(self, bench: Bench) -> None:
        bench.session(ONE, COMMIT)
        bench.session(OTHER)
        with pytest.raises(UsageRefused) as error:
            bench.find("abcdef0")
        assert error.value.exit_code == 2
        assert [line.split() for line in error.value.text.splitlines()[1:3]] == [
            ["sha256:abcdef022222", "last", "run", "2026-05-20", "09:02", "UTC"],
            ["sha256:abcdef011111", "commit", "c0ffee0111", "last", "run", "2026-05-20", "09:01", "UTC"],
        ]
        assert bench.find(ONE).digest == ONE

    @pytest.mark.parametrize("name", ["abcdef", "sha256:abcdef", "", "sha256:", "no such branch", "-h"])
    def test_what_is_none_is_refused_with_those_that_are(self, bench: Bench, name: str) -> None:
        bench.session(ONE)
        with pytest.raises(UnknownName, match="no session of this ledger ran it") as error:
            bench.find(name)
        assert "sha256:abcdef011111" in error.value.text

    def test_in_an_empty_ledger_the_first_step_is_said(self, bench: Bench) -> None:
        with pytest.raises(UnknownName, match=r"pytest --regcase"):
            bench.find(ONE)

    def test_only_the_last_ones_are_listed(self, bench: Bench) -> None:
        for number in range(10):
            bench.session(f"sha256:{number}" + "0" * 63)
        with pytest.raises(UnknownName) as error:
            bench.find("abcdef0")
        lines = error.value.text.splitlines()
        assert "sha256:900000000000" in lines[2]
        assert lines[-1] == "  and 2 older ones"

    def test_by_a_recorded_commit_where_there_is_no_repository(self, bench: Bench) -> None:
        bench.session(ONE, COMMIT)
        bench.session(OTHER, LATER_COMMIT)
        assert bench.find(COMMIT).digest == ONE
        assert bench.find(COMMIT[:8]).digest == ONE
        with pytest.raises(UsageRefused, match="may be any"):
            bench.find(COMMIT[:7])
        with pytest.raises(UnknownName):
            bench.find(COMMIT[:6])

    def test_a_commit_that_was_run_with_changes_only_is_said(self, bench: Bench) -> None:
        bench.session(ONE, f"{COMMIT}-dirty")
        (notice,) = bench.find(COMMIT).notices
        assert "had uncommitted changes" in notice
        assert bench.find(ONE).notices == ()
        bench.session(ONE, COMMIT)
        assert bench.find(COMMIT).notices == ()

    def test_a_commit_with_several_digests_is_refused(self, bench: Bench) -> None:
        bench.session(ONE, COMMIT)
        bench.session(OTHER, f"{COMMIT}-dirty")
        with pytest.raises(UsageRefused, match="c0ffee0111 with uncommitted changes"):
            bench.find(COMMIT)

    def test_by_whatever_git_takes_for_the_commit(self, bench: Bench) -> None:
        root = bench.project.root
        git(root, "init", "-q", "-b", "main")
        git(root, "commit", "-q", "--allow-empty", "-m", "one")
        bench.session(ONE, git(root, "rev-parse", "HEAD"))
        git(root, "tag", "v1")
        git(root, "commit", "-q", "--allow-empty", "-m", "two")
        for name in ("v1", "HEAD~1", "main^", git(root, "rev-parse", "--short=7", "v1")):
            assert bench.find(name).digest == ONE
        with pytest.raises(UnknownName, match=r"no session of this ledger was run on commit .*, or with"):
            bench.find("main")

    def test_one_that_only_a_decision_or_a_version_names_is_known(self, bench: Bench) -> None:
        bench.decide(ONE)
        assert (bench.find(ONE).agents, bench.find(ONE).sessions) == ({}, ())


class TestPromote:
    def test_who_when_why_and_on_which_decision_is_recorded(self, bench: Bench) -> None:
        bench.session(ONE)
        made = bench.decide(ONE)
        done = bench.promote(ONE, why="release 4.2", at=NOW + timedelta(days=1))
        assert done.changed
        assert (done.before, done.decided) == (None, made)
        wanted = Version(
            active=ONE, since=NOW + timedelta(days=1), decision=made.digest, who="mina", why="release 4.2"
        )
        assert versions(bench.ledger) == [wanted]

    def test_what_is_active_already_stays_as_it_is(self, bench: Bench) -> None:
        bench.session(ONE)
        bench.decide(ONE)
        first = bench.promote(ONE)
        bench.decide(ONE, "fail")
        again = bench.promote(ONE, why="another reason")
        assert not again.changed
        assert again.version == first.version
        assert versions(bench.ledger) == [first.version]

    def test_back_to_an_earlier_one_is_one_more_entry(self, bench: Bench) -> None:
        for each in (ONE, OTHER):
            bench.session(each)
            bench.decide(each)
            bench.promote(each)
        assert bench.promote(ONE).before == versions(bench.ledger)[1]
        assert [each.active for each in versions(bench.ledger)] == [ONE, OTHER, ONE]

    def test_without_a_decision_on_the_candidate_it_is_refused(self, bench: Bench) -> None:
        bench.session(ONE)
        bench.decide(ONE, rests_on=None)
        assert "regcase gate --candidate sha256:abcdef011111" in bench.refused(ONE)

    @pytest.mark.parametrize("decision", ["fail", "unproven"])
    def test_the_last_decision_counts_not_one_before(self, bench: Bench, decision: str) -> None:
        bench.session(ONE)
        bench.decide(ONE)
        bench.decide(ONE, decision)
        said = bench.refused(ONE)
        assert f"its last decision, of 2026-05-20 09:03 UTC, is {decision}: trial-37: it broke" in said
        assert "An earlier one that passed does not count" in said
        bench.decide(ONE)
        assert bench.promote(ONE).changed

    def test_a_decision_on_another_revision_is_none_on_this(self, bench: Bench) -> None:
        bench.session(ONE)
        bench.session(OTHER)
        bench.decide(OTHER)
        assert "nothing was decided on it" in bench.refused(ONE)

    def test_what_came_since_has_to_be_decided_on(self, bench: Bench) -> None:
        session = bench.session(ONE)
        bench.decide(ONE)
        bench.session(OTHER)
        bench.session(ONE, attempts=2)
        assert "since then the ledger has 1 more session, 2 more attempts of it" in bench.refused(ONE)
        bench.decide(ONE)
        bench.ledger.append(an_attempt("recovered", session_id=session, try_number=1))
        assert "has 1 more attempt of it" in bench.refused(ONE)
        bench.decide(ONE)
        invalidate(bench.ledger, why="w", at=NOW, attempt_id=None, session_id=session)
        assert "has 2 invalidated of it" in bench.refused(ONE)
        bench.decide(ONE)
        assert bench.promote(ONE).changed

    def test_a_clock_behind_what_is_active_is_refused(self, bench: Bench) -> None:
        for each in (ONE, OTHER):
            bench.session(each)
            bench.decide(each)
        bench.promote(OTHER, at=NOW + timedelta(days=1))
        assert "sha256:abcdef022222 is active since 2026-05-21" in bench.refused(ONE, UsageRefused)

    def test_a_clock_behind_the_last_decision_is_refused(self, bench: Bench) -> None:
        bench.session(ONE)
        bench.decide(ONE, at=NOW + timedelta(days=1))
        bench.decide(ONE, "unproven")
        assert "its last decision is dated 2026-05-21" in bench.refused(ONE, UsageRefused)

    def test_a_secret_in_the_reason_is_not_kept(self, bench: Bench) -> None:
        bench.session(ONE)
        bench.decide(ONE)
        key = "sk-proj-" + "Ab3dEf6hIj9kLm2n" * 3
        done = bench.promote(ONE, why=f"works with {key}")
        assert key not in (done.version.why or "")
        assert "works with" in (done.version.why or "")


def test_the_commit_of_a_work_tree_says_that_tracked_files_are_others(tmp_path: Path) -> None:
    assert work_tree_commit(tmp_path) is None
    git(tmp_path, "init", "-q")
    assert work_tree_commit(tmp_path) is None
    (tmp_path / "agent.py").write_text("one")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "one")
    git(tmp_path, "tag", "v1")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "untracked").write_text("one")
    assert work_tree_commit(tmp_path) == commit
    (tmp_path / "agent.py").write_text("two")
    assert work_tree_commit(tmp_path) == f"{commit}-dirty"


def test_test_functions_are_no_part_of_a_revision_that_has_an_agent() -> None:
    functions = {"tests/test_a.py::test_a": "f", "tests/test_a.py::test_b": "g"}
    assert revision_over({"default": "a", **functions}) == "a"
    assert revision_over({"tests/test_a.py::test_a": "f"}) == "f"
    assert revision_over(functions) != revision_over({"default": "a", "other": "b"})
