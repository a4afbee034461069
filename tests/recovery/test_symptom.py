"""One rule says whether a failure is a case's: its symptom, at its step, on its task."""

from typing import Any

import pytest

from pytest_regcase.case_builder import draft_case
from pytest_regcase.records.case import RegressionCase, SymptomMatch
from pytest_regcase.records.trial import ErrorLink, ToolCall, TranscriptLine, Trial, TrialError
from pytest_regcase.records.words import Outcome, Termination
from pytest_regcase.recovery.symptom import differs, ending_of, likeness, signature

TIMED_OUT = TrialError(type="APITimeoutError", message="Request timed out.", raised_by="supplier")

NO_TYPE = TrialError(message="model overloaded", raised_by="supplier")


def trial(step: int = 3, **facts: Any) -> Trial:
    """A trial whose call for `step` got no reply."""
    lines = [TranscriptLine(step=0, role="user", text="Fix calc.py.")]
    for each in range(1, step):
        call = ToolCall(id=f"c{each}", name="bash")
        lines.append(TranscriptLine(step=each, role="assistant", tool_calls=(call,)))
        lines.append(TranscriptLine(step=each, role="tool", tool_call_id=f"c{each}", text="ok"))
    defaults: dict[str, Any] = {
        "format": "x",
        "event_id": "e",
        "event_id_from": "recorded",
        "task_id": "calc",
        "task_text": "Fix calc.py.",
        "steps": tuple(lines),
        "failing_step": step,
        "termination": "error",
        "error": TIMED_OUT,
    }
    return Trial(**{**defaults, **facts})


def finished(outcome: Outcome = "failed", **facts: Any) -> Trial:
    steps = (TranscriptLine(step=1, role="assistant", text="Done."),)
    defaults = {"steps": steps, "failing_step": 1, "termination": "finished", "error": None, "outcome": outcome}
    return trial(**{**defaults, **facts})


def cut_off(step: int = 3, **facts: Any) -> Trial:
    return trial(step, **{"termination": "cut-off", "error": None, **facts})


def case(of: Trial, **changes: Any) -> RegressionCase:
    drafted = draft_case(of, owner="x").case
    return drafted.model_copy(update=changes)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (trial(), "error:APITimeoutError:no-reply"),
        (trial(7, task_id="other"), "error:APITimeoutError:no-reply"),
        (cut_off(), "cut-off:no-reply"),
        (finished(), "finished:failed"),
        (finished(termination=None), "end-not-recorded:failed"),
        (finished(termination="limit"), "limit"),
        (finished(termination="error", error=TrialError(type="E")), "error:E"),
        (trial(error=TrialError(type="a whole text\nof lines")), "error:unnamed-error:no-reply"),
        (trial(error=TrialError(message="no type")), "error:no-reply"),
    ],
)
def test_a_signature_is_how_it_ended_whatever_the_task_and_step(made: Trial, expected: str) -> None:
    assert signature(made) == expected


@pytest.mark.parametrize(
    "made",
    [
        trial(),
        trial(1),
        cut_off(),
        cut_off(1),
        finished(),
        finished(termination="limit", outcome="undetermined"),
        finished(termination="error", error=TrialError(type="E")),
        trial(termination="cancelled"),
        # An empty reply was recorded, then the call failed.
        trial(
            steps=(TranscriptLine(step=1, role="assistant"), TranscriptLine(step=2, role="assistant", error="x")),
            failing_step=2,
        ),
    ],
)
def test_every_trial_has_the_symptom_of_its_own_case(made: Trial) -> None:
    assert likeness(case(made), made.task_text, made) == "same"


SYMPTOM = SymptomMatch(termination=("error", "cut-off"), error_type="APITimeout|ReadTimeout", no_reply=True)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (trial(), None),
        (trial(error=TrialError(type="Outer", chain=(ErrorLink(type="httpx.ReadTimeout"),))), None),
        (trial(termination="limit"), "the symptom ends with error or cut-off"),
        (trial(termination=None), None),  # what was raised and not called anything else is an error
        (trial(error=TrialError(type="RateLimitError")), "the symptom's error is APITimeout|ReadTimeout"),
        (trial(error=None), "the symptom's error is APITimeout|ReadTimeout"),
        (trial(4), "no reply at step 4; the symptom is at step 3"),
        (finished(error=TrialError(type="ReadTimeout"), termination="error"), "the failing call got a reply"),
    ],
)
def test_every_given_key_must_match(made: Trial, expected: str | None) -> None:
    assert differs(ending_of(made), SYMPTOM, 3) == expected


def test_a_step_that_is_not_recorded_is_any_step() -> None:
    assert differs(ending_of(trial(9)), SYMPTOM, None) is None


def test_a_pattern_that_is_none_is_taken_for_a_text() -> None:
    symptom = SymptomMatch(error_type="a(b")
    assert differs(ending_of(trial(error=TrialError(type="xa(by"))), symptom, 3) is None


@pytest.mark.parametrize(
    ("known", "made", "expected"),
    [
        (trial(), trial(event_id="f"), "same"),
        (trial(), trial(4), "other-step"),
        (trial(), trial(task_id="other"), "other-task"),  # the ids decide, though the texts are equal
        (trial(), trial(task_id=None), "same"),
        (trial(), trial(task_id=None, task_text=" Fix calc.py.\n"), "same"),
        (trial(task_id=None), trial(task_text="Fix it."), "other-task"),
        (trial(task_id=None), trial(task_text=None), "task-not-recorded"),
        (trial(), trial(error=TrialError(type="RateLimitError")), None),
        (trial(), finished(), None),
        # How it ended is all that these share: on another task that says nothing.
        (finished(), finished(event_id="f"), "same"),
        (finished(), finished(task_id="other"), None),
        # So does an unanswered call, where one of the two has no error type: formats without one would match all.
        (trial(error=NO_TYPE), trial(task_id="other"), None),
        (trial(error=NO_TYPE), trial(task_id="other", error=NO_TYPE), None),
        (trial(task_id=None, task_text=None, error=NO_TYPE), trial(task_id=None, task_text=None), None),
        (trial(task_id=None, task_text=None), trial(task_id=None, task_text=None), "task-not-recorded"),
        (trial(error=NO_TYPE), trial(4, error=NO_TYPE), "other-step"),
        (cut_off(), cut_off(task_id="other"), None),
        # An empty text is no task that two trials could share.
        (trial(task_id=None, task_text=" "), trial(task_id=None, task_text=""), "task-not-recorded"),
        # Whoever cut a waiting trial off did not wait for the error.
        (cut_off(), trial(), "same"),
        (trial(), cut_off(), None),
    ],
)
def test_only_the_same_task_and_step_is_the_failure_come_back(
    known: Trial, made: Trial, expected: str | None
) -> None:
    assert likeness(case(known), known.task_text, made) == expected


def test_without_a_symptom_any_failure_of_the_task_is_one() -> None:
    nothing = case(trial(), symptom_match=None)
    ends: tuple[Termination, ...] = ("error", "limit", "finished")
    assert {likeness(nothing, None, trial(termination=each)) for each in ends} == {"same"}
    assert likeness(nothing, None, trial(task_id="other")) is None
