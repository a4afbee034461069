"""Live attempts."""

from typing import Any

import pytest

from pytest_regcase.records.attempt import Exit
from pytest_regcase.records.case import SymptomMatch
from pytest_regcase.records.observed import Observed
from pytest_regcase.records.trial import ErrorLink, TranscriptLine, TrialError
from pytest_regcase.records.wire import SentReply
from pytest_regcase.recovery.live import judge_live
from tests.recovery import observed_samples as sample

TIMED_OUT = TrialError(type="APITimeoutError", message="Request timed out.", raised_by="supplier")
SYMPTOM = SymptomMatch(termination=("error", "cut-off"), error_type="APITimeoutError|ReadTimeout", no_reply=True)


def replies(count: int) -> tuple[SentReply, ...]:
    return tuple(SentReply(step=step, origin="upstream", text=f"reply {step}") for step in range(1, count + 1))


def live(answered: int = 3, **changes: Any) -> Observed:
    """Return an attempt that ended well after `answered` replies; the recorded failure was at step 3."""
    facts = sample.wire(
        delivered=None,
        requests=answered,
        faulted_requests=0,
        retries=0,
        first_fault_seconds=None,
        replies=replies(answered),
        steps_reached=answered,
        **changes.pop("wire", {}),
    )
    values = {"kind": "live", "wire": facts, "exit": Exit(code=0), "artefact": sample.finished(), "notes": None}
    return sample.observed(**{**values, **changes})


def stalled(step: int = 3, *, error: TrialError | None = TIMED_OUT, **changes: Any) -> Observed:
    """Return an attempt whose call for `step` got no reply, so that it ended with an error."""
    seen = live(step - 1, **{"artefact": sample.trial(error=error), "exit": Exit(code=1), **changes})
    return seen.model_copy(update={"wire": seen.wire.model_copy(update={"steps_reached": step, "requests": step})})


def verdict(seen: Observed, symptom: SymptomMatch | None = SYMPTOM) -> str:
    result = judge_live(seen, symptom)
    assert result.says
    assert (result.reason is not None) == (result.verdict == "inconclusive")
    return result.verdict


def test_clean_needs_an_end_of_its_own_no_failure_and_the_failing_step() -> None:
    assert verdict(live()) == "clean"
    assert verdict(live(4)) == "clean"
    assert verdict(live(artefact=None)) == "clean"
    assert verdict(live(artefact=sample.trial(termination=None, error=None))) == "clean"
    assert verdict(live(artefact=None, declared=sample.declared(status="done"), exit=Exit(code=3))) == "clean"


def test_an_attempt_that_ended_well_before_the_failing_step_proves_nothing() -> None:
    result = judge_live(live(2), SYMPTOM)
    assert (result.verdict, result.reason) == ("inconclusive", "cut-short")
    assert result.says == "ended well after 2 of the 3 replies up to the recorded failing step"
    assert verdict(live(1, recorded_failing_step=None)) == "clean"
    assert verdict(live(0, recorded_failing_step=None)) == "inconclusive"


@pytest.mark.parametrize(
    "changes",
    [
        {"exit": Exit(signal=15, ended_by="cap")},
        {"exit": Exit(signal=15, ended_by="deadline"), "artefact": sample.trial(termination=None, error=None)},
        {"exit": Exit(signal=11)},
        {"exit": Exit(code=1), "artefact": None},
        {"exit": Exit(), "artefact": None},
        {"artefact": sample.trial(termination="limit", error=None)},
        {"artefact": sample.trial(termination="cut-off", error=None)},
        {"artefact": sample.finished(error=TIMED_OUT)},
        {"artefact": sample.finished(error=TrialError())},
        {"declared": sample.declared(status="failed")},
    ],
)
def test_a_failed_attempt_is_never_clean(changes: dict[str, Any]) -> None:
    assert verdict(live(**changes), None) == "recurred"
    assert verdict(live(**changes), SymptomMatch(error_type="NoSuchError")) == "failed-otherwise"


def test_a_graders_error_is_none_of_the_agents() -> None:
    assert verdict(live(artefact=sample.finished(error=TrialError(type="X", raised_by="grader")))) == "clean"


def test_a_supplier_failure_on_the_way_is_not_clean_though_the_agent_got_over_it() -> None:
    retried = live(wire={"upstream_failures": ("HTTP 429",)})
    result = judge_live(retried, None)
    assert result.verdict == "failed-otherwise"
    assert result.says == "ended by itself, but on the way the supplier failed: HTTP 429"
    line = TranscriptLine(step=2, role="assistant", error="HTTP 503")
    assert verdict(live(artefact=sample.finished(line)), None) == "failed-otherwise"


def test_a_status_that_we_cannot_read_proves_nothing() -> None:
    odd = live(artefact=None, declared=sample.declared(status="exit_forfeit"))
    assert judge_live(odd, None).reason == "machinery-broke"


def test_the_symptom_came_back() -> None:
    assert verdict(stalled()) == "recurred"
    chained = TrialError(type="RetryError", chain=(ErrorLink(type="APITimeoutError"), ErrorLink()))
    assert verdict(stalled(error=chained)) == "recurred"
    assert verdict(stalled(), SymptomMatch()) == "recurred"
    assert verdict(stalled(recorded_failing_step=None)) == "recurred"


def test_another_step_or_another_exception_is_another_failure() -> None:
    later = judge_live(stalled(4), SYMPTOM)
    assert later.verdict == "failed-otherwise"
    assert later.says.endswith("no reply at step 4; the symptom is at step 3")
    other = TrialError(type="AuthenticationError", message="HTTP 401")
    assert judge_live(stalled(error=other), SYMPTOM).says == (
        "AuthenticationError: HTTP 401; the symptom's error is APITimeoutError|ReadTimeout"
    )
    assert verdict(stalled(error=None), SymptomMatch(error_type="Timeout")) == "failed-otherwise"
    assert verdict(stalled(artefact=None), SymptomMatch(error_type="Timeout")) == "failed-otherwise"


def test_every_given_key_must_match() -> None:
    answered = live(artefact=sample.trial(error=TIMED_OUT))
    assert judge_live(answered, SYMPTOM).says.endswith("the failing call got a reply")
    assert verdict(answered, SymptomMatch(no_reply=False)) == "recurred"
    assert judge_live(stalled(), SymptomMatch(no_reply=False)).says.endswith("the failing call got no reply")
    assert judge_live(stalled(), SymptomMatch(termination=("limit", "cancelled"))).says.endswith(
        "the symptom ends with limit or cancelled"
    )


def test_what_we_ended_is_cut_off() -> None:
    ended = live(artefact=None, exit=Exit(signal=15, ended_by="cap"), wire={"open_at_end": 1})
    result = judge_live(ended, SymptomMatch(termination=("cut-off",)))
    assert (result.verdict, result.says) == ("recurred", "ended by us (cap) while it waited for an answer")
    assert verdict(live(artefact=None, exit=Exit(code=1)), SymptomMatch(termination=("error",))) == "recurred"


def test_a_pattern_that_is_none_is_searched_as_text() -> None:
    assert verdict(stalled(error=TrialError(type="Broken(")), SymptomMatch(error_type="Broken(")) == "recurred"


def test_a_trial_of_a_sweep_is_judged_by_its_transcript() -> None:
    def of_sweep(**changes: Any) -> Observed:
        return sample.observed(kind="live", wire=sample.wire(requests=0, replies=()), exit=Exit(), **changes)

    three = sample.finished(sample.answer("done"))
    assert verdict(of_sweep(artefact=three)) == "clean"
    assert verdict(of_sweep(artefact=sample.finished())) == "inconclusive"
    no_reply = SymptomMatch(no_reply=True)
    assert verdict(of_sweep(artefact=sample.trial(error=TIMED_OUT)), no_reply) == "recurred"
    harness = TrialError(type="Broken", raised_by="harness")
    assert verdict(of_sweep(artefact=sample.trial(error=harness)), no_reply) == "recurred"
    answered = sample.trial(sample.answer("done"), error=harness)
    assert verdict(of_sweep(artefact=answered), no_reply) == "failed-otherwise"
    failed = sample.trial(TranscriptLine(step=3, role="assistant", error="HTTP 503"), error=harness)
    assert verdict(of_sweep(artefact=failed), no_reply) == "recurred"
    assert verdict(of_sweep(artefact=sample.trial(steps=(), error=harness)), no_reply) == "failed-otherwise"
    assert verdict(of_sweep(artefact=None), no_reply) == "failed-otherwise"
