"""By which ways work leaves the agent's hands."""

import pytest

from pytest_regcase.records.words import EXPECTATIONS
from pytest_regcase.recovery.handed_in import (
    Grade,
    HandedIn,
    grade_of,
    handed_in,
    held_by_commits,
    why_grade_unknown,
)
from tests.recovery import observed_samples as sample

INVALID = "harbor:reward:reward=0.0"


def test_everything_that_was_handed_in_has_its_place_and_mark() -> None:
    marked = sample.submitted(text="the answer", mark="agent_error")
    seen = sample.observed(
        artefact=sample.trial(submission=marked), declared=sample.declared(answer="42", submission="+x")
    )
    assert handed_in(seen) == [
        HandedIn("submission", f"{sample.PARTIAL_DIFF}\nthe answer", "agent_error"),
        HandedIn("submission", "+x", None),
        HandedIn("answer", "42", None),
    ]
    assert handed_in(sample.observed()) == []
    by_status = sample.declared(submission="+x", status="agent_error")
    assert handed_in(sample.observed(declared=by_status)) == [HandedIn("submission", "+x", "agent_error")]


@pytest.mark.parametrize(
    ("labels", "outcome", "grade"),
    [
        ((), "failed", Grade("outcome", "failed")),
        ((INVALID,), "passed", Grade("outcome", "passed")),
        (("harbor:reward_valid=false", INVALID), "undetermined", Grade("label", INVALID)),
        (("inspect:score:tests_pass=I",), "undetermined", Grade("label", "inspect:score:tests_pass=I")),
        (("harbor:reward_valid=false", "inspect:status:error", "seen: harbor:score:3"), "undetermined", None),
    ],
)
def test_a_grade_is_an_outcome_or_the_harness_own_word_even_where_it_does_not_count(
    labels: tuple[str, ...], outcome: str, grade: Grade | None
) -> None:
    trial = sample.trial(labels=labels, outcome=outcome)
    assert grade_of(sample.observed(artefact=trial, submits_by="score")) == grade


def test_only_who_hands_in_by_being_graded_has_a_grade() -> None:
    trial = sample.trial(labels=(INVALID,), outcome="failed")
    assert grade_of(sample.observed(artefact=trial, submits_by="file")) is None
    assert grade_of(sample.observed(artefact=trial)) is None
    assert grade_of(sample.observed(artefact=None, submits_by="score")) is None


def test_a_missing_grade_shows_that_nothing_was_graded_only_in_a_log_that_would_hold_it() -> None:
    assert why_grade_unknown(sample.observed()) is None
    assert why_grade_unknown(sample.observed(artefact=None, artefact_missing="no file")) == "no file"
    assert why_grade_unknown(sample.observed(artefact=None)) is not None
    for termination in (None, "cut-off"):
        cut = sample.observed(artefact=sample.trial(termination=termination, error=None))
        assert why_grade_unknown(cut) == "its log breaks off before a grade could stand in it"
    silent = sample.trial(can_show=("no_fabricated_output",))
    assert "trial-jsonl" in (why_grade_unknown(sample.observed(artefact=silent)) or "")
    assert why_grade_unknown(sample.observed(artefact=silent, can_show=EXPECTATIONS)) is None


def test_commits_count_from_the_fault_on_or_where_they_are_the_way() -> None:
    partial = sample.PARTIAL_DIFF
    later = sample.tree(head=sample.LATER, committed_diff=partial)
    found = held_by_commits(partial, sample.observed(work_tree=later))
    assert found is not None
    assert found.whole
    same = sample.tree(committed_diff=partial)
    assert held_by_commits(partial, sample.observed(work_tree=same)) is None
    assert held_by_commits(partial, sample.observed(work_tree=same, submits_by="commit")) == (2, 2, None)
    assert held_by_commits(partial, sample.observed(notes=None)) is None
    assert held_by_commits(partial, sample.observed(work_tree=None)) is None
