import subprocess
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.case_files import load_case
from pytest_regcase.errors import FileError, RegcaseError, SealError, UsageRefused
from pytest_regcase.session.case_life.amend import Amended, amend_case
from tests.session.case_life.stories import CASE, ID, LifeProject, make_life_project


def git(root: Path, *words: str) -> None:
    identity = ["-c", "user.name=Mina", "-c", "user.email=mina@example.com"]
    subprocess.run(["git", "-C", str(root), *identity, *words], check=True, capture_output=True)


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a version")


@pytest.fixture
def life(tmp_path: Path) -> LifeProject:
    return make_life_project(tmp_path)


@pytest.fixture
def committed(life: LifeProject) -> LifeProject:
    git(life.root, "init", "-q", "-b", "main")
    commit(life.root)
    return life


def amend(life: LifeProject, *fields: str, **more: Any) -> Amended:
    return amend_case(life.project, life.path, why="reviewed", by="mina", fields=fields, **more)


def edit(life: LifeProject, old: str, new: str) -> None:
    text = life.path.read_text()
    assert old in text
    life.path.write_text(text.replace(old, new))


def test_a_loosening_is_made_and_recorded(life: LifeProject) -> None:
    before = life.path.read_text()
    done = amend(life, "expected_recovery.max_retries=5")
    (amendment,) = load_case(life.path).case.amendments
    assert done.amendments == (amendment,)
    assert (amendment.what, amendment.who, amendment.old_digest) == (
        "expected_recovery.max_retries 3 -> 5",
        "mina",
        None,
    )
    assert done.counts_anew
    changed = before.replace("max_retries = 3", "max_retries = 5")
    assert life.path.read_text().startswith(changed + "\n[[amendments]]\nwhat = ")
    with life.ledger() as ledger:
        (transition,) = ledger.transitions(ID)
    assert (transition.kind, transition.who, transition.why, transition.evidence) == (
        "amended",
        "mina",
        "reviewed",
        "expected_recovery.max_retries 3 -> 5",
    )


def test_an_amended_observation_is_sealed_anew_and_the_old_seal_is_kept(life: LifeProject) -> None:
    seal = life.case.case.seal
    assert seal is not None
    amend(life, "observation.failing_step=7", "observation.observed_at=2026-04-12T09:31:08Z")
    case = load_case(life.path).case
    assert case.observation.failing_step == 7
    assert [each.what for each in case.amendments] == [
        "observation.failing_step 6 -> 7",
        'observation.observed_at "2026-04-12T09:31:07Z" -> "2026-04-12T09:31:08Z"',
    ]
    assert {each.old_digest for each in case.amendments} == {seal.observation}
    assert case.seal is not None
    assert case.seal.observation != seal.observation
    assert "[observation]  # sealed\n" in life.path.read_text()


@pytest.mark.parametrize(
    ("field", "what"),
    [
        ("observation.symptom=it hung", ' -> "it hung"'),
        ('observation.symptom="it hung"', ' -> "it hung"'),
        ("observation.source_event=37", ' -> "37"'),
        ("handover.rerun_rule.risk=0.10", 'handover.rerun_rule.risk "0.30" -> "0.10"'),
        (
            'hypotheses.key.simulations=["auth-rejected-v1", "key-x"]',
            '["auth-rejected-v1"] -> ["auth-rejected-v1","key-x"]',
        ),
        ('symptom_match.termination=["error"]', 'symptom_match.termination absent -> ["error"]'),
        (
            "expected_recovery.when.deadline.max_retries=1",
            "expected_recovery.when.deadline.max_retries absent -> 1",
        ),
    ],
)
def test_values_are_toml_and_text_needs_no_quotes(life: LifeProject, field: str, what: str) -> None:
    (made,) = amend(life, field).amendments
    assert made.what.endswith(what)


@pytest.mark.parametrize(
    ("field", "says"),
    [
        ("expected_recovery.max_retries", "allowed is KEY=VALUE"),
        ("=5", "allowed is KEY=VALUE"),
        ("a b=5", "allowed is KEY=VALUE"),
        ("title=x", "title: it is neither sealed nor guarded"),
        ("expected_recovery=5", "it is neither sealed nor guarded"),
        ("handover.owner=me", "it is neither sealed nor guarded"),
        ("observation.cause_status=confirmed", "The cause status is computed"),
        ("fix.number=1", "it is neither sealed nor guarded"),
        ("hypotheses.nobody.simulations=[]", "It has: deadline, key."),
        ("hypotheses.key=[]", "a hypothesis is named by its id"),
        ("expected_recovery.when={ auth = 1 }", "is more than one value"),
        ("expected_recovery.max_retries=5\nlog_failure = false", "is more than one value"),
        ("expected_recovery.max_retries=many", "expected_recovery.max_retries"),
        ("expected_recovery.no_such=1", "no_such"),
        ("expected_recovery.max_retries=3", "nothing that is sealed or guarded has changed"),
        ("replies.source=script", "needs file"),
    ],
)
def test_what_cannot_be_set_is_one_clear_refusal_and_changes_nothing(
    life: LifeProject, field: str, says: str
) -> None:
    before = life.path.read_bytes()
    with pytest.raises(RegcaseError) as error:
        amend(life, field)
    assert says in error.value.text
    assert isinstance(error.value, UsageRefused | FileError)
    assert life.path.read_bytes() == before


def test_a_table_that_nothing_can_be_added_to_is_refused(tmp_path: Path) -> None:
    life = make_life_project(tmp_path)
    edit(life, "[expected_recovery]\nmax_retries = 3\n", "")
    edit(life, "[observation]", "expected_recovery.log_failure = true\n[observation]")
    before = life.path.read_bytes()
    with pytest.raises(UsageRefused, match="written in a form that nothing can be added to"):
        amend(life, "expected_recovery.max_retries=5")
    assert life.path.read_bytes() == before


def test_edits_by_hand_are_recorded_as_git_shows_them_and_once(committed: LifeProject) -> None:
    life = committed
    edit(life, "failing_step = 6", "failing_step = 7")
    edit(life, "max_retries = 3", "max_retries = 5")
    edit(life, 'title = "no answer', 'title = "still no answer')
    with pytest.raises(SealError):
        load_case(life.path)
    assert [each.what for each in amend(life).amendments] == [
        "observation.failing_step 6 -> 7",
        "expected_recovery.max_retries 3 -> 5",
    ]
    before = life.path.read_bytes()
    with pytest.raises(UsageRefused, match="nothing that is sealed or guarded has changed"):
        amend(life)
    assert life.path.read_bytes() == before


def test_an_edit_that_was_committed_is_found_against_the_branch_it_left(committed: LifeProject) -> None:
    life = committed
    git(life.root, "checkout", "-qb", "topic")
    edit(life, 'simulations = ["auth-rejected-v1"]', "simulations = []")
    commit(life.root)
    with pytest.raises(UsageRefused, match="nothing that is sealed or guarded"):
        amend(life)
    (made,) = amend(life, since="main").amendments
    assert made.what == 'hypotheses.key.simulations ["auth-rejected-v1"] -> []'


def test_without_git_an_edited_observation_needs_words_and_nothing_else_can_be_told(life: LifeProject) -> None:
    edit(life, "failing_step = 6", "failing_step = 7")
    before = life.path.read_bytes()
    with pytest.raises(UsageRefused, match="Say with --what"):
        amend(life)
    assert life.path.read_bytes() == before
    (made,) = amend(life, what="failing_step was read off the wrong line").amendments
    assert made.what == "failing_step was read off the wrong line"
    assert made.old_digest is not None
    with pytest.raises(UsageRefused, match="git has no version"):
        amend(life)


def test_words_for_an_observation_that_has_not_changed_are_refused(committed: LifeProject) -> None:
    edit(committed, "max_retries = 3", "max_retries = 5")
    with pytest.raises(UsageRefused, match="--what says what changed in the observation, and nothing did"):
        amend(committed, what="more retries")


def test_a_case_that_was_never_sealed_is_no_amendment(life: LifeProject) -> None:
    text = life.path.read_text()
    life.path.write_text(text[: text.index("[seal]")])
    with pytest.raises(UsageRefused, match="was never sealed"):
        amend(life, what="w")
    with pytest.raises(SealError):
        amend(life, "observation.failing_step=7")


def test_an_edit_that_is_not_allowed_is_not_amended_either(committed: LifeProject) -> None:
    edit(committed, "failing_step = 6", "failing_step = 0")
    before = committed.path.read_bytes()
    with pytest.raises(FileError, match="failing_step"):
        amend(committed)
    assert committed.path.read_bytes() == before


def test_a_revision_that_git_does_not_know_is_named(committed: LifeProject) -> None:
    with pytest.raises(UsageRefused, match="no-such"):
        amend(committed, since="no-such")


def test_words_that_name_one_key_do_not_hide_another(committed: LifeProject) -> None:
    edit(committed, "failing_step = 6", "failing_step = 5")
    edit(committed, "stopped responding at step 6", "crashed")
    made = amend(committed, what="failing_step was read off the wrong line").amendments
    assert [each.what.split(" ")[0] for each in made] == ["failing_step", "observation.symptom"]


def test_a_stop_budget_beyond_the_deadline_of_its_agent_is_refused_at_once(life: LifeProject) -> None:
    """At the next session the case would be invalid: an agent that is ended before shows nothing."""
    before = life.path.read_bytes()
    with pytest.raises(UsageRefused, match=r"stop_within_seconds is 90, but .* ended 90 s after.*\nNothing was"):
        amend(life, "expected_recovery.stop_within_seconds=90")
    assert life.path.read_bytes() == before
    with life.ledger() as ledger:
        assert ledger.transitions(ID) == []
    assert amend(life, "expected_recovery.stop_within_seconds=89").counts_anew


def test_another_key_is_no_reason_to_look_at_the_deadline(tmp_path: Path) -> None:
    text = CASE.replace("max_retries = 3", "max_retries = 3\nstop_within_seconds = 500")
    assert amend(make_life_project(tmp_path, text), "expected_recovery.max_retries=5").amendments
