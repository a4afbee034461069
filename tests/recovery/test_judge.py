"""The attempt as a whole."""

import pytest

from pytest_regcase.records.attempt import Exit
from pytest_regcase.records.case import SymptomMatch
from pytest_regcase.records.expected_recovery import ExpectedRecovery
from pytest_regcase.records.observed import FaultNotes, Observed
from pytest_regcase.recovery.judge import checked_words, judge
from tests.recovery import observed_samples as sample

ASKED = ExpectedRecovery()


def control(**changes: object) -> Observed:
    facts = sample.wire(delivered=None, faulted_requests=0, first_fault_seconds=None)
    values: dict[str, object] = {"kind": "control", "wire": facts, "exit": Exit(code=0), "notes": None}
    return sample.observed(**{**values, **changes})


def test_recovered_is_nothing_broken() -> None:
    judgement = judge(ASKED, sample.observed(), None)
    assert (judgement.verdict, judgement.says, judgement.reason) == ("recovered", "checked 7 of 7", None)
    assert len(judgement.findings) == 7


def test_what_could_not_be_seen_is_said() -> None:
    seen = sample.observed(notes=FaultNotes(t=sample.FIRST_FAULT), work_tree=None)
    judgement = judge(ASKED, seen, None)
    assert judgement.verdict == "recovered"
    assert judgement.says == "checked 5 of 7, cannot see: no_partial_submission, keep_partial_patch"
    assert checked_words(()) == "checked 0 of 0"


def test_not_recovered_names_what_broke() -> None:
    hidden = sample.observed(artefact=sample.finished(submission=sample.submitted()), exit=Exit(code=0))
    judgement = judge(ASKED, hidden, None)
    assert judgement.verdict == "not-recovered"
    assert judgement.says == "broken: log_failure, no_partial_submission, mark_failure"


def test_a_fault_that_was_not_delivered_proves_nothing() -> None:
    undelivered = sample.observed(wire=sample.wire(delivered=False, why_not="the supplier sent 200"))
    judgement = judge(ASKED, undelivered, None)
    assert (judgement.verdict, judgement.reason) == ("inconclusive", "not-delivered")
    assert (judgement.says, len(judgement.findings)) == ("the supplier sent 200", 7)
    unknown = judge(ASKED, sample.observed(wire=sample.wire(delivered=None)), None)
    assert (unknown.reason, unknown.says) == ("not-delivered", "the wire shows no fault")


def test_off_the_prefix_is_said_before_what_follows_from_it() -> None:
    off = sample.wire(delivered=False, off_prefix=("bash is not offered at step 1", "more"))
    judgement = judge(ASKED, sample.observed(wire=off), None)
    assert (judgement.reason, judgement.says) == ("off-the-prefix", "bash is not offered at step 1")
    assert judge(ASKED, control(wire=off), None).reason == "off-the-prefix"


def test_a_required_expectation_that_cannot_be_seen_makes_the_attempt_inconclusive() -> None:
    asked = ExpectedRecovery(required=("keep_partial_patch", "max_retries"))
    blind = sample.observed(notes=FaultNotes(t=sample.FIRST_FAULT), work_tree=None)
    judgement = judge(asked, blind, None)
    assert (judgement.verdict, judgement.reason) == ("inconclusive", "machinery-broke")
    assert judgement.says == "required, but not observable: keep_partial_patch"
    assert judge(asked, sample.observed(), None).verdict == "recovered"
    broken = blind.model_copy(update={"wire": sample.wire(retries=9)})
    assert judge(asked, broken, None).verdict == "not-recovered"


@pytest.mark.parametrize("waiting", [True, False])
def test_an_agent_that_we_ended_within_its_time_to_stop_proves_nothing(waiting: bool) -> None:
    wire = sample.wire(
        open_at_end=int(waiting), last_release_seconds=None if waiting else sample.FIRST_FAULT + 0.2
    )
    soon = sample.ended_by_us("cap", wire=wire, ended_seconds=sample.FIRST_FAULT + 2.0)
    judgement = judge(ASKED, soon, None)
    assert (judgement.verdict, judgement.reason) == ("inconclusive", "cut-short")
    assert judgement.says == (
        "we ended the agent (cap) 2.0 s after the first faulted request, and it has 60 s to stop;"
        " raise the agent's cap_seconds"
    )


def test_what_broke_before_we_ended_the_agent_stays_broken() -> None:
    seen = sample.ended_by_us("cap", wire=sample.wire(retries=9), ended_seconds=sample.FIRST_FAULT + 2.0)
    assert judge(ASKED, seen, None).says == "broken: max_retries"


@pytest.mark.parametrize("kind", ["control", "simulation", "live"])
def test_a_session_that_ends_first_proves_nothing(kind: str) -> None:
    seen = sample.observed(kind=kind, exit=Exit(ended_by="cut-short"))
    assert judge(ASKED, seen, None).reason == "cut-short"


def test_a_control_finishes_once_it_asked_for_the_failing_step() -> None:
    judgement = judge(ASKED, control(), None)
    assert (judgement.verdict, judgement.findings) == ("finished", ())
    by_plan = control(exit=Exit(signal=15, ended_by="control-done"))
    assert judge(ASKED, by_plan, None).verdict == "finished"


def test_a_control_that_never_got_there_did_not_finish() -> None:
    early = sample.wire(delivered=None, asked_for_failing_step=False, steps_reached=2)
    judgement = judge(ASKED, control(wire=early), None)
    assert judgement.verdict == "did-not-finish"
    assert judgement.says == "reached step 2 of 3, then ended by itself (exit code 0)"
    all_recorded = control(wire=early, recorded_failing_step=None)
    assert judge(ASKED, all_recorded, None).verdict == "finished"
    nowhere = early.model_copy(update={"got_last_reply": False})
    judgement = judge(ASKED, control(wire=nowhere, recorded_failing_step=None), None)
    assert judgement.verdict == "did-not-finish"
    assert judgement.says == "reached step 2, then ended by itself (exit code 0)"


def test_a_control_that_must_end_by_itself_and_met_its_cap_did_not_finish() -> None:
    capped = judge(ASKED, control(exit=Exit(signal=15, ended_by="cap")), None)
    assert (capped.verdict, capped.says) == ("did-not-finish", "reached step 3 of 3, then ended by us (cap)")


def test_a_live_attempt_is_judged_by_its_symptom() -> None:
    live = sample.observed(kind="live")
    judgement = judge(ASKED, live, SymptomMatch(error_type="Authentication"))
    assert (judgement.verdict, judgement.findings) == ("recurred", ())
    assert judge(ASKED, live, SymptomMatch(error_type="Timeout")).verdict == "failed-otherwise"
