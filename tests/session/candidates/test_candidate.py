"""What a decision on a candidate is made over, and where it is kept."""

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_regcase.errors import UnknownName, UsageRefused, WriteError
from pytest_regcase.ledger.versions import decided
from pytest_regcase.records.attempt import AttemptKey
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.words import Profile
from pytest_regcase.session.candidates.candidate import CandidateAnswer, decide_candidate
from pytest_regcase.session.candidates.decision_files import decision_files, decisions_folder
from pytest_regcase.session.revisions.versions import find_revision
from tests.plugin.gate_project import write_case
from tests.session.candidates.candidate_project import CASE, SIMULATION, CandidateProject


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CandidateProject:
    for name in ("REGCASE_RUN_ID", "GITHUB_RUN_ID", "CI_PIPELINE_ID"):
        monkeypatch.delenv(name, raising=False)
    return CandidateProject(tmp_path)


def decide(bench: CandidateProject, revision: str, profile: Profile | None = None) -> CandidateAnswer:
    with bench.ledger() as ledger:
        known = find_revision(bench.project, ledger, revision)
        return decide_candidate(bench.project, ledger, known, profile=profile)


def test_the_candidates_sessions_count_not_those_of_the_checkout(bench: CandidateProject) -> None:
    first = bench.revision
    bench.session(broken=True)
    newest = bench.session(broken=True)
    bench.change_agent("second")
    bench.session()
    answer = decide(bench, first)
    assert answer.decided.decision.decision == "fail"
    assert [each.session_id for each in answer.answer.sessions] == [newest]
    assert answer.decided.rests_on is not None
    assert answer.decided.rests_on.sessions == (newest,)
    held = answer.decided.rests_on.held
    assert (held.sessions, held.attempts, held.invalidated) == (2, 8, 0)
    assert decide(bench, bench.revision).decided.decision.decision == "pass"


def test_the_decision_is_in_the_ledger_and_in_a_file_whatever_it_is(bench: CandidateProject) -> None:
    for broken in (False, True):
        bench.session(broken=broken, commit="c0ffee")
        answer = decide(bench, bench.revision)
        with bench.ledger() as ledger:
            assert decided(ledger, bench.revision)[-1] == answer.decided
            ledger_id = ledger.ledger_id
        (*_, file) = decision_files(bench.project, bench.revision)
        assert file.path == answer.file
        assert file.holds(answer.decided)
        document = json.loads(file.path.read_text())
        assert (document["ledger_id"], document["commit"]) == (ledger_id, "c0ffee")
    assert [each.path.name for each in decision_files(bench.project, bench.revision)] == ["0001.json", "0002.json"]


def test_a_case_that_was_edited_or_added_since_was_not_run(bench: CandidateProject) -> None:
    revision = bench.revision
    bench.session()
    bench.change_case(failing_step=7)
    edited = decide(bench, revision).decided.decision
    assert edited.decision == "unproven"
    assert [each.result for each in edited.cases[0].scenarios] == ["not-run", "not-run"]
    bench.change_case(failing_step=6)
    assert decide(bench, revision).decided.decision.decision == "pass"
    write_case(bench.root, "trial-38", [SIMULATION])
    added = decide(bench, revision).decided.decision
    assert added.decision == "unproven"
    assert {each.case_id for each in added.reasons} == {"trial-38"}


@pytest.mark.parametrize(
    ("more", "left_out"),
    [("", ["trial-38"]), ('\n[replies]\nsource = "pass-through"\n', [])],
    ids=["its-time", "its-model-calls"],
)
def test_a_case_that_its_session_left_out_was_not_run(
    bench: CandidateProject, more: str, left_out: list[str]
) -> None:
    write_case(bench.root, "trial-38", [SIMULATION], more)
    bench.session()
    bench.change_agent("second")
    planned = [AttemptKey(case_id=CASE, agent="default", scenario=each) for each in ("control", SIMULATION)]
    bench.session(left_out=left_out, planned=planned)
    decision = decide(bench, bench.revision).decided.decision
    assert decision.decision == "unproven"
    assert [each.case_id for each in decision.reasons if each.red] == ["trial-38"]


def test_a_session_without_an_end_or_a_missing_shard_is_unproven(bench: CandidateProject) -> None:
    bench.session(ends=False)
    assert decide(bench, bench.revision).decided.decision.decision == "unproven"
    write_case(bench.root, "trial-38", [SIMULATION])
    bench.session(shard="1/2")
    assert decide(bench, bench.revision).decided.decision.decision == "unproven"
    bench.session(shard="2/2")
    whole = decide(bench, bench.revision)
    assert whole.decided.decision.decision == "pass"
    assert len(whole.answer.sessions) == 2


def test_the_run_of_a_ci_that_decides_is_not_the_one_that_ran(
    bench: CandidateProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.session()
    monkeypatch.setenv("GITHUB_RUN_ID", "42")
    assert decide(bench, bench.revision).decided.decision.decision == "pass"


def test_a_profile_in_which_it_was_not_run_is_unproven(bench: CandidateProject) -> None:
    bench.session()
    answer = decide(bench, bench.revision, "nightly")
    assert answer.decided.decision.decision == "unproven"
    assert any("in profile nightly" in each.text for each in answer.decided.decision.reasons)


def test_in_a_release_the_newest_session_of_each_case_decides(bench: CandidateProject) -> None:
    revision = bench.revision
    bench.session()
    bench.change_agent("second")
    bench.session(broken=True)
    assert decide(bench, revision, "release").decided.decision.decision == "pass"
    assert decide(bench, bench.revision, "release").decided.decision.decision == "fail"


def test_without_a_session_that_says_what_it_ran_it_is_refused(bench: CandidateProject) -> None:
    revision = "sha256:" + "ab" * 32
    with bench.ledger() as ledger:
        ledger.save_decision(
            GateDecision(decision="pass", profile="nightly"), at=datetime.now(UTC), revision=revision
        )
    with pytest.raises(UsageRefused, match="no session of this ledger says that it ran it"):
        decide(bench, revision)


def test_where_the_file_cannot_be_written_the_ledger_has_it(bench: CandidateProject) -> None:
    bench.session()
    folder = decisions_folder(bench.project, bench.revision)
    folder.parent.mkdir(parents=True)
    folder.write_text("in the way")
    with pytest.raises(WriteError, match="The ledger holds it"):
        decide(bench, bench.revision)
    with bench.ledger() as ledger:
        assert [each.about for each in decided(ledger, bench.revision)] == ["candidate"]


def test_a_commit_that_changes_no_agent_is_the_revision_that_ran(bench: CandidateProject) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=mina", "-c", "user.email=mina@example.com")
        subprocess.run(["git", *who, *words], cwd=bench.root, check=True, capture_output=True)

    git("init", "-q")
    git("add", "pyproject.toml", "agent.py", "cases", "fixtures")
    git("commit", "-q", "-m", "an agent")
    bench.session()
    (bench.root / "NOTES.md").write_text("Only words.\n")
    git("add", "NOTES.md")
    git("commit", "-q", "-m", "words")
    with bench.ledger() as ledger:
        found = find_revision(bench.project, ledger, "HEAD")
    assert found.digest == bench.revision
    assert "no session was run on commit" in " ".join(found.notices)
    bench.change_agent("second")
    git("commit", "-q", "-am", "another agent")
    with bench.ledger() as ledger, pytest.raises(UnknownName, match="Run pytest --regcase on it first"):
        find_revision(bench.project, ledger, "HEAD")
