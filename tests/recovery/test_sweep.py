"""Trials of sweeps as live attempts: the rule of live attempts, and a grader's word where the symptom asks it."""

from typing import Any

import pytest

from pytest_regcase.records.case import SymptomMatch
from pytest_regcase.records.trial import ToolCall, TranscriptLine, Trial, TrialError
from pytest_regcase.recovery.sweep import judge_retried, judge_trial

NO_REPLY = SymptomMatch(termination=("error", "cut-off"), error_type="APITimeoutError", no_reply=True)
BY_OUTCOME = SymptomMatch(termination=("finished",))


def trial(replies: int = 3, **facts: Any) -> Trial:
    lines = [
        TranscriptLine(step=step, role="assistant", tool_calls=(ToolCall(name="bash"),))
        for step in range(1, replies + 1)
    ]
    given = {"termination": "finished", "steps": tuple(lines), **facts}
    return Trial(format="f", event_id="e", event_id_from="recorded", **given)


def error(kind: str, raised_by: str = "supplier") -> dict[str, Any]:
    raised = TrialError.model_validate({"type": kind, "message": "it broke", "raised_by": raised_by})
    return {"termination": "error", "error": raised}


@pytest.mark.parametrize(
    ("given", "symptom", "verdict"),
    [
        (trial(), NO_REPLY, "clean"),
        (trial(outcome="failed"), NO_REPLY, "clean"),
        (trial(replies=1), NO_REPLY, "inconclusive"),
        (trial(replies=2, failing_step=3, **error("APITimeoutError")), NO_REPLY, "recurred"),
        (trial(replies=1, failing_step=2, **error("APITimeoutError")), NO_REPLY, "failed-otherwise"),
        (trial(**error("ValueError", "agent")), NO_REPLY, "failed-otherwise"),
        (trial(**error("ValueError", "agent")), None, "recurred"),
        (trial(**error("DockerError", "environment")), NO_REPLY, "inconclusive"),
        (trial(**error("DockerError", "harness")), SymptomMatch(error_type="Docker"), "recurred"),
        (trial(termination="limit"), NO_REPLY, "failed-otherwise"),
        (trial(termination="limit"), SymptomMatch(termination=("limit",)), "recurred"),
        (trial(termination="cancelled"), SymptomMatch(termination=("cancelled",)), "inconclusive"),
        (trial(termination="never-started"), NO_REPLY, "inconclusive"),
        (trial(termination=None), NO_REPLY, "inconclusive"),
        (trial(termination=None, outcome="passed"), NO_REPLY, "inconclusive"),
        (trial(termination=None, outcome="failed"), NO_REPLY, "failed-otherwise"),
        (trial(termination=None, outcome="failed"), None, "recurred"),
        (trial(outcome="failed"), BY_OUTCOME, "recurred"),
        (trial(outcome="passed"), BY_OUTCOME, "clean"),
        (trial(), BY_OUTCOME, "inconclusive"),
        (trial(), None, "inconclusive"),
        (trial(outcome="passed"), None, "clean"),
        (trial(**{**error("TestsTimedOut", "grader"), "termination": "finished"}), NO_REPLY, "clean"),
    ],
)
def test_a_trial_is_judged_by_the_symptom(given: Trial, symptom: SymptomMatch | None, verdict: str) -> None:
    assert judge_trial(given, symptom, 3).verdict == verdict


def test_of_another_task_the_step_is_not_asked_for() -> None:
    early = trial(replies=1, failing_step=2, **error("APITimeoutError"))
    assert judge_trial(early, NO_REPLY, None).verdict == "recurred"
    assert judge_trial(trial(replies=1), NO_REPLY, None).verdict == "clean"


@pytest.mark.parametrize(
    ("raised", "symptom", "verdict"),
    [
        (error("APITimeoutError", "unknown"), NO_REPLY, "recurred"),
        (error("OSError", "unknown"), NO_REPLY, "failed-otherwise"),
        (error("OSError", "unknown"), None, "recurred"),
        (error("OSError", "unknown"), BY_OUTCOME, "failed-otherwise"),
        (error("DockerError", "environment"), NO_REPLY, "inconclusive"),
    ],
)
def test_a_retried_attempt_failed_whatever_is_lost_of_it(
    raised: dict[str, Any], symptom: SymptomMatch | None, verdict: str
) -> None:
    assert judge_retried(raised["error"], symptom).verdict == verdict
