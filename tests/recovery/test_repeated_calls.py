"""Which tool calls were done again after the fault."""

from typing import Any

import pytest

from pytest_regcase.records.expected_recovery import ExpectedRecovery
from pytest_regcase.records.observed import Observed
from pytest_regcase.records.trial import ToolCall, TranscriptLine, Trial
from pytest_regcase.records.wire import SentReply
from pytest_regcase.recovery.expectations import findings_of, no_repeated_side_effect
from pytest_regcase.recovery.judge import judge
from pytest_regcase.recovery.repeated_calls import calls_done
from tests.recovery import observed_samples as sample

ASKED = ExpectedRecovery(no_repeated_side_effect=True)
AGAIN = sample.line(step=2, role="tool", text="", tool_call_id="call_1", origin="messages[5]")
SAME = ToolCall(id="call_2", name="bash", arguments='{ "command":"sed -i s/-/+/ calc.py" }')
OTHER = ToolCall(id="call_2", name="bash", arguments='{"command": "sed -i mean calc.py"}')
LABELLED = (*sample.STEPS[:4], sample.STEPS[4].model_copy(update={"tool_call_id": "call_1"}))


def seen(*more: TranscriptLine, steps: tuple[TranscriptLine, ...] = LABELLED, **wire: Any) -> Observed:
    return sample.observed(artefact=sample.finished(steps=(*steps, *more)), wire=sample.wire(**wire))


def healed(step: int, *calls: ToolCall) -> dict[str, Any]:
    after = SentReply(step=step, origin="replay", text="Going on.", tool_calls=calls, after_fault=True)
    return {"replies": (*sample.REPLIES, after), "healed": True}


def test_calls_of_before_that_are_not_done_again() -> None:
    assert calls_done(seen()) == (2, None)
    assert calls_done(seen(sample.answer("Done."))) == (2, None)
    assert calls_done(seen(sample.answer(None, calls=(OTHER,)))) == (2, None)


def test_a_further_result_of_a_call_is_a_repetition() -> None:
    found = calls_done(seen(AGAIN)).repeated
    assert found == ("messages[5]", 'bash({"command": "sed -i s/-/+/ calc.py"})')
    nameless = AGAIN.model_copy(update={"origin": None})
    assert calls_done(seen(nameless)).repeated == ("transcript line 6", found[1])


def test_a_second_result_of_before_the_fault_is_none_after_it() -> None:
    part = sample.STEPS[2].model_copy(update={"text": "more of the file"})
    assert calls_done(seen(steps=(*LABELLED[:3], part, *LABELLED[3:]))).repeated is None


def test_examples_of_the_prompt_were_not_done() -> None:
    example = sample.answer("Like this.", calls=(sample.FIX,), step=0)
    assert calls_done(seen(steps=(LABELLED[0], example, *LABELLED[1:]))) == (2, None)


def test_ids_that_are_used_for_several_calls_are_no_repetition() -> None:
    ids = {"tool_call_id": "call_0"}
    reused = sample.STEPS[3].model_copy(update={"tool_calls": (sample.FIX.model_copy(update={"id": "call_0"}),)})
    steps = (*sample.STEPS[:3], reused, sample.STEPS[4].model_copy(update=ids))
    assert calls_done(seen(steps=steps)).repeated is None
    assert calls_done(seen(AGAIN.model_copy(update=ids), steps=steps)).repeated is not None


def test_the_same_call_in_a_later_answer_is_one_whatever_its_spelling() -> None:
    found = calls_done(seen(sample.answer(None, calls=(SAME,)))).repeated
    assert found is not None
    assert found.place == "messages[5]"


def test_what_a_reply_after_the_fault_asks_for_anew_is_the_models_decision() -> None:
    once = sample.answer("Going on.", calls=(SAME,))
    assert calls_done(seen(once, **healed(3, SAME))).repeated is None
    twice = (once, sample.answer(None, calls=(SAME,), step=4))
    assert calls_done(seen(*twice, **healed(3, SAME))).repeated is not None


def test_an_earlier_step_that_is_asked_for_again_is_a_restart() -> None:
    assert calls_done(seen(sample.answer("Going on.", calls=(SAME,)), **healed(2, SAME))).repeated is not None


def test_without_calls_before_the_fault_there_is_nothing_to_repeat() -> None:
    assert calls_done(seen(sample.answer(None, calls=(SAME,)), replies=())) == (0, None)


@pytest.mark.parametrize(
    ("changed", "status", "says"),
    [
        (seen(), "kept", "none of 2 tool calls of before the fault was done again"),
        (
            seen(steps=LABELLED[:3], replies=sample.REPLIES[:1]),
            "kept",
            "the one tool call of before the fault was not done again",
        ),
        (seen(AGAIN), "broken", "a tool call of before the fault was done again, in messages[5]"),
        (seen(replies=()), "not-applicable", "no tool was called before the fault"),
        (seen(first_fault_seconds=None), "not-observable", "no request was faulted"),
        (sample.observed(artefact=None, artefact_missing="no file"), "not-observable", "no file"),
        (
            sample.observed(artefact=sample.trial(can_show=())),
            "not-observable",
            "its output shows no transcript, so its tool calls cannot be seen",
        ),
    ],
)
def test_the_finding(changed: Observed, status: str, says: str) -> None:
    finding = no_repeated_side_effect(ASKED, changed)
    assert (finding.status, finding.says) == (status, says)


def test_it_is_judged_only_where_it_is_asked_for_and_stands_behind_the_others() -> None:
    assert [each.expectation for each in findings_of(ASKED, seen())][-1] == "no_repeated_side_effect"
    required = ExpectedRecovery(required=("no_repeated_side_effect",))
    assert [each.expectation for each in findings_of(required, seen())][7:] == ["no_repeated_side_effect"]
    for expected in (ExpectedRecovery(), ExpectedRecovery(no_repeated_side_effect=False)):
        assert len(findings_of(expected, seen())) == 7
    failed = sample.observed(artefact=sample.trial(AGAIN, steps=(*LABELLED, AGAIN)))
    assert judge(ASKED, failed, None).verdict == "not-recovered"
    assert judge(ExpectedRecovery(), failed, None).verdict == "recovered"
    assert isinstance(failed.artefact, Trial)


def test_it_changes_no_digest_of_a_case_that_does_not_ask_for_it() -> None:
    assert "no_repeated_side_effect" not in ExpectedRecovery().to_sparse()
    assert ASKED.under("auth").no_repeated_side_effect is True
