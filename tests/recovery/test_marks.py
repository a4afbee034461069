"""What the agent itself wrote about its end."""

import pytest

from pytest_regcase.records.attempt import Exit
from pytest_regcase.records.trial import TrialError
from pytest_regcase.recovery.marks import ended_badly, exit_words, handed_in_as_finished, mark_of
from tests.recovery import observed_samples as sample


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ("error", "failed"),
        ("agent_error", "failed"),
        ("AuthenticationError", "failed"),
        ("Timeout", "failed"),
        ("TimedOut", "failed"),
        ("TimeExceeded", "failed"),
        ("Gave up", "failed"),
        ("cut-off", "failed"),
        ("finished", "finished"),
        ("Submitted", "finished"),
        ("OK", "finished"),
        ("success", "finished"),
        ("executed", "unclear"),
        ("completed_without_errors", "unclear"),
        ("exit_forfeit", "unclear"),
        ("running", "nothing"),
        ("in_progress", "nothing"),
        ("", "nothing"),
    ],
)
def test_declared_status_is_read_by_its_words(status: str, says: str) -> None:
    seen = sample.observed(artefact=None, declared=sample.declared(status=status))
    assert mark_of(seen).says == says


@pytest.mark.parametrize(
    ("termination", "says"),
    [
        ("error", "failed"),
        ("limit", "failed"),
        ("cancelled", "failed"),
        ("finished", "finished"),
        ("cut-off", "nothing"),
        ("never-started", "nothing"),
        (None, "nothing"),
    ],
)
def test_termination_is_a_status_unless_it_says_that_none_is_there(termination: str | None, says: str) -> None:
    seen = sample.observed(artefact=sample.trial(termination=termination, error=None))
    assert mark_of(seen).says == says


def test_any_mark_of_failure_wins_over_a_mark_of_success() -> None:
    marked = sample.observed(artefact=sample.finished(submission=sample.submitted(mark="agent_error")))
    assert mark_of(marked) == ("failed", "submission.mark", "agent_error")
    status = sample.observed(artefact=sample.trial(), declared=sample.declared(status="finished"))
    assert mark_of(status).place == "termination"


def test_an_error_without_a_termination_is_a_mark_but_not_a_graders() -> None:
    error = TrialError(message="no answer")
    assert mark_of(sample.observed(artefact=sample.trial(termination=None, error=error))) == (
        "failed",
        "error",
        "no answer",
    )
    nameless = sample.observed(artefact=sample.trial(termination=None, error=TrialError()))
    assert mark_of(nameless).quote == "error"
    graders = TrialError(type="ScoringError", raised_by="grader")
    assert mark_of(sample.observed(artefact=sample.trial(termination=None, error=graders))).says == "nothing"


def test_what_a_harness_writes_in_answer_to_our_signal_is_no_mark() -> None:
    interrupted = sample.trial(error=TrialError(type="KeyboardInterrupt"))
    assert mark_of(sample.ended_by_us(artefact=interrupted)).says == "nothing"
    assert mark_of(sample.observed(artefact=interrupted)).says == "failed"
    cancelled = sample.trial(termination="cancelled", error=None)
    assert mark_of(sample.ended_by_us(artefact=cancelled)).says == "nothing"
    assert mark_of(sample.ended_by_us(artefact=sample.trial())).says == "failed"


def test_exit_code_counts_only_where_nothing_is_written() -> None:
    assert ended_badly(sample.observed(exit=Exit(code=1)))
    assert ended_badly(sample.observed(exit=Exit(signal=9)))
    assert not ended_badly(sample.observed(exit=Exit(code=0)))
    assert not ended_badly(sample.observed(exit=Exit()))
    assert not ended_badly(sample.ended_by_us())
    assert exit_words(sample.observed(exit=Exit(signal=9))) == "signal 9"
    assert exit_words(sample.observed(exit=Exit(code=0))) == "exit code 0"
    assert exit_words(sample.observed(exit=Exit())) == "an unknown exit code"


def test_work_is_handed_in_as_finished_unless_something_marks_it_as_failed() -> None:
    assert not handed_in_as_finished(sample.observed())
    assert handed_in_as_finished(sample.observed(artefact=sample.finished()))
    unmarked = sample.trial(termination=None, error=None)
    assert handed_in_as_finished(sample.observed(artefact=unmarked, exit=Exit(code=0)))
    assert not handed_in_as_finished(sample.observed(artefact=unmarked, exit=Exit(code=1)))
    assert not handed_in_as_finished(sample.ended_by_us())
    assert not handed_in_as_finished(sample.observed(artefact=None, declared=sample.declared(status="odd")))
