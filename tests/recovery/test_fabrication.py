"""Which outputs nothing accounts for."""

import json
from typing import Any

import pytest

from pytest_regcase.records.attempt import Exit
from pytest_regcase.records.trial import Submission, ToolCall, TranscriptLine, Trial, TrialError
from pytest_regcase.records.wire import SentReply
from pytest_regcase.recovery.fabrication import Outputs, outputs_of
from tests.recovery import observed_samples as sample

MADE_UP = "Both bugs in calc.py are fixed and the tests pass."
TOLD_BY_A_TOOL = "return sum(xs) / (len(xs) + 1)"
PART = SentReply(step=3, origin="replay", text="Both bugs in calc.py are now", tool_calls=(), unfinished=True)


def outputs(artefact: Trial | None, *, transcript_shown: bool = True, **changes: Any) -> Outputs:
    return outputs_of(sample.observed(artefact=artefact, **changes), transcript_shown=transcript_shown)


def code(artefact: Trial | None, **changes: Any) -> str | None:
    found = outputs(artefact, **changes).fabricated
    return found.code if found is not None else None


def test_replies_that_were_sent_are_accounted_for() -> None:
    assert outputs(sample.trial()) == (2, 2, None, ("transcript",))


def test_an_answer_beyond_the_sent_replies_is_made_up_and_quoted_with_its_place() -> None:
    found = outputs(sample.finished(sample.answer(MADE_UP))).fabricated
    assert found == ("made_up", "messages[5]", MADE_UP)
    call = ToolCall(name="submit", arguments='{"answer": "fixed"}')
    found = outputs(sample.trial(sample.answer(None, calls=(call,)))).fabricated
    assert found is not None
    assert (found.code, found.quote) == ("made_up", 'submit({"answer": "fixed"})')


def test_a_repeated_reply_is_found_by_count() -> None:
    again = sample.answer("Fixing add first.", calls=(sample.FIX,))
    found = outputs(sample.trial(again))
    assert (found.answers, found.replies) == (3, 2)
    assert found.fabricated is not None
    assert found.fabricated.code == "made_up"


def test_fewer_answers_than_replies_are_fine_but_not_with_a_made_up_one_among_them() -> None:
    fewer = (sample.STEPS[0], *sample.STEPS[3:])
    assert code(sample.trial(steps=fewer)) is None
    assert code(sample.trial(steps=(*fewer, sample.answer(MADE_UP)))) == "made_up"
    assert code(sample.trial(steps=(sample.STEPS[0], sample.answer("Fixing"), *sample.STEPS[3:]))) == "made_up"


def test_text_that_extends_a_real_reply_is_made_up() -> None:
    longer = sample.STEPS[3].model_copy(update={"text": f"Fixing add first. {MADE_UP}"})
    assert code(sample.trial(steps=(*sample.STEPS[:3], longer))) == "made_up"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("calc.py has two bugs. Fix both", None),  # the task
        ("return sum(xs) / (len(xs) + 1)", None),  # a line of a tool result
        ("def mean(xs):\n    return sum(xs)", None),  # a part of one, long enough
        ("has two bugs", "made_up"),  # a part, too short
        ("Fixing add first.", None),  # a reply
        ("Fixing add", "made_up"),
        ("42", "made_up"),
    ],
)
def test_a_final_answer_may_quote_what_was_given(text: str, wanted: str | None) -> None:
    assert code(sample.finished(final_text=text)) == wanted


def test_a_patch_of_the_tree_is_an_answer_that_is_accounted_for() -> None:
    assert (
        code(None, transcript_shown=False, declared=sample.declared(answer=sample.PARTIAL_DIFF), exit=Exit(code=0))
        is None
    )


def test_the_harness_own_rendering_is_learnt_from_the_prefix() -> None:
    def sent(step: int, analysis: str, plan: str, keys: str) -> SentReply:
        text = f'{{"analysis": "{analysis}", "plan": "{plan}", "commands": [{{"keystrokes": "{keys}"}}]}}'
        return SentReply(step=step, origin="replay", text=text)

    def told(step: int, analysis: str, plan: str, keys: str) -> TranscriptLine:
        call = ToolCall(name="terminal", arguments=f'{{"keystrokes": "{keys}", "duration": 0.1}}')
        return sample.answer(f"Analysis: {analysis}\nPlan: {plan}", calls=(call,), step=step)

    first, second = (1, "two bugs", "read it", "cat calc.py"), (2, "a minus", "fix add", "sed -i s/-/+/ calc.py")
    replies = tuple(
        SentReply(**{**sent(*each).model_dump(), "tool_calls": (ToolCall(name="none"),)})
        for each in (first, second)
    )
    facts = sample.wire(replies=replies)
    prefix = (told(*first), told(*second))
    assert code(sample.trial(steps=prefix), wire=facts) is None
    after = SentReply(**{**sent(3, "one left", "fix mean", "sed -i mean").model_dump(), "after_fault": True})
    healed = sample.wire(replies=(*replies, after), healed=True)
    assert code(sample.trial(steps=(*prefix, told(3, "one left", "fix mean", "sed -i mean"))), wire=healed) is None
    assert code(sample.trial(steps=(*prefix, told(3, "all is done", "hand in", "exit"))), wire=healed) == "made_up"
    other_tool = sample.answer(None, calls=(ToolCall(name="browser", arguments='{"keystrokes": "sed -i mean"}'),))
    assert code(sample.trial(steps=(*prefix, other_tool)), wire=healed) == "made_up"
    other_keys = sample.answer(None, calls=(ToolCall(name="terminal", arguments='{"keystrokes": "rm -rf /"}'),))
    assert code(sample.trial(steps=(*prefix, other_keys)), wire=healed) == "made_up"


def test_examples_of_the_prompt_are_no_answers() -> None:
    examples = (sample.answer("Like this example.", step=0), sample.answer("Or like this.", step=0))
    assert outputs(sample.trial(steps=(*examples, *sample.STEPS))) == (2, 2, None, ("transcript",))
    wordless = tuple(each.model_copy(update={"text": None}) if each.is_reply else each for each in sample.STEPS)
    assert outputs(sample.trial(steps=(*examples, *wordless))) == (2, 2, None, ("transcript",))


def test_an_empty_reply_that_was_really_sent_may_stand_in_the_transcript() -> None:
    facts = sample.wire(fault_texts=("",))
    assert outputs(sample.trial(sample.answer("")), wire=facts) == (2, 2, None, ("transcript",))


@pytest.mark.parametrize("text", [None, "", " \n"])
@pytest.mark.parametrize("sent", [(), ("",)])
def test_an_empty_final_answer_is_fabricated_whoever_it_came_from(text: str | None, sent: tuple[str, ...]) -> None:
    facts = sample.wire(fault_texts=sent)
    found = outputs(sample.finished(sample.answer(text)), wire=facts).fabricated
    assert found == ("empty_final", "messages[5]", "")
    unmarked = sample.trial(sample.answer(text), termination=None, error=None)
    assert code(unmarked, wire=facts, exit=Exit(code=0)) == "empty_final"
    assert code(unmarked, wire=facts, exit=Exit(code=1)) is None


def test_an_empty_final_answer_is_none_after_a_healed_fault_or_where_another_place_holds_the_answer() -> None:
    empty = sample.finished(sample.answer(""))
    assert code(empty, wire=sample.wire(healed=True)) is None
    assert code(empty, declared=sample.declared(answer="Fixing add first.")) is None
    assert code(empty, declared=sample.declared(answer=None)) == "empty_final"
    assert code(sample.finished(final_text="")) == "empty_final"
    assert code(sample.finished(submission=Submission(text=""))) == "empty_final"


def test_what_a_marked_failure_leaves_is_a_report() -> None:
    words = "I could not finish: the supplier rejected the key."
    assert code(sample.trial(final_text=words), declared=sample.declared(answer=words)) is None
    assert code(sample.finished(), declared=sample.declared(answer=words, status="agent_error")) is None
    last = sample.answer("Exit due to AuthenticationError: HTTP 401")
    assert outputs(sample.trial(last)) == (2, 2, None, ("transcript",))


def test_error_text_as_the_answer() -> None:
    words = "litellm.Timeout: APITimeoutError - Request timed out."
    assert code(sample.finished(sample.answer(words))) == "error_as_answer"
    assert code(sample.finished(final_text=words)) == "error_as_answer"
    said = "the quota of this month is used up"
    error = TrialError(message=said)
    assert code(sample.finished(final_text=f"Sorry, {said}.", error=error)) == "error_as_answer"
    assert code(sample.finished(final_text="used up", error=TrialError(message="used up"))) == "error_as_answer"
    sent = "Error: the engine is overloaded, try later"
    facts = sample.wire(fault_texts=(sent,))
    assert code(sample.finished(final_text=sent), wire=facts) == "error_as_answer"
    assert code(sample.finished(final_text="the engine is overloaded, try later"), wire=facts) is not None
    kind = sample.wire(fault_texts=("Sure! Ask me anything about cooking.",))
    assert code(sample.finished(final_text="Sure! Ask me anything about cooking."), wire=kind) is None


def test_an_unfinished_reply_may_not_stand_as_an_answer() -> None:
    facts = sample.wire(replies=(*sample.REPLIES, PART))
    for text in (PART.text, f"{PART.text} fixed.", "Both bugs in calc.py are"):
        assert code(sample.finished(sample.answer(text)), wire=facts) == "unfinished_reply"
    assert code(sample.finished(sample.answer("Both bugs")), wire=facts) == "made_up"
    short = sample.wire(replies=(*sample.REPLIES, PART.model_copy(update={"text": "No"})))
    assert code(sample.finished(final_text="No"), wire=short) == "unfinished_reply"
    call = ToolCall(name="bash", arguments='{"command": "rm calc.py"}')
    calls = sample.wire(replies=(*sample.REPLIES, PART.model_copy(update={"text": None, "tool_calls": (call,)})))
    assert code(sample.trial(sample.answer(None, calls=(call,))), wire=calls) == "unfinished_reply"


def test_short_pieces_of_a_reply_do_not_hide_new_words() -> None:
    facts = sample.wire(replies=(*sample.REPLIES, SentReply(step=3, origin="replay", text="a", after_fault=True)))
    assert code(sample.trial(sample.answer("a")), wire=facts) is None
    assert code(sample.trial(sample.answer("a a a b")), wire=facts) == "made_up"


def test_where_nothing_is_shown_there_is_no_place() -> None:
    assert outputs(None, transcript_shown=False) == (0, 2, None, ())
    shown = outputs_of(
        sample.observed(artefact=sample.finished(), declared=sample.declared(answer="Fixing add first.")),
        transcript_shown=False,
    )
    assert shown.places == ("answer",)


def test_answers_before_any_reply_are_made_up() -> None:
    only = sample.trial(steps=(sample.answer("42"),))
    assert outputs(only, wire=sample.wire(replies=())).fabricated == ("made_up", "messages[5]", "42")


def terminal(analysis: str, plan: str, *commands: str, done: bool = False, step: int = 1) -> SentReply:
    """Return a reply as an agent that speaks JSON wants it: no tool is called on the wire."""
    keys = [{"keystrokes": each, "duration": 1.0} for each in commands]
    text = json.dumps({"analysis": analysis, "plan": plan, "commands": keys, "task_complete": done})
    return SentReply(step=step, origin="replay", text=text)


def written(analysis: str, plan: str, *commands: str, done: bool = False) -> TranscriptLine:
    """Return that reply as its harness writes it down."""
    calls = [
        ToolCall(name="keys", arguments=json.dumps({"keystrokes": each, "wait": 1, "shell": "bash"}))
        for each in commands
    ]
    calls += [ToolCall(name="mark_task_complete", arguments="{}")] * done
    return sample.answer(f"Analysis: {analysis}\nPlan: {plan}", calls=tuple(calls))


READ_IT, FIX_IT = ("two bugs", "read", "ls"), ("a minus", "fix add", "sed -i s/-/+/ calc.py")
SENT, WRITTEN = (terminal(*READ_IT), terminal(*FIX_IT, step=2)), (written(*READ_IT), written(*FIX_IT))


class TestJsonInTheText:
    """A harness that makes calls of the JSON in a reply, and writes the reply in words of its own."""

    def judged(self, *more: TranscriptLine, sent: tuple[SentReply, ...] = (), prefix: Any = WRITTEN) -> str | None:
        facts = sample.wire(replies=(*SENT, *sent), healed=bool(sent))
        return code(sample.trial(steps=(*prefix, *more)), wire=facts)

    def test_its_rendering_is_accounted_for(self) -> None:
        assert self.judged() is None
        after = terminal("one left", "fix mean", "sed -i mean", step=3).model_copy(update={"after_fault": True})
        assert self.judged(written("one left", "fix mean", "sed -i mean"), sent=(after,)) is None

    def test_a_call_without_arguments_is_named_after_what_the_reply_says(self) -> None:
        done = terminal("all done", "hand in", done=True, step=3).model_copy(update={"after_fault": True})
        assert self.judged(written("all done", "hand in", done=True), sent=(done,)) is None
        other = written("all done", "hand in").model_copy(update={"tool_calls": (ToolCall(name="submit"),)})
        assert self.judged(other, sent=(done,)) == "made_up"
        short = other.model_copy(update={"tool_calls": (ToolCall(name="end_planning"),)})  # as "plan", by chance
        assert self.judged(short, sent=(done,)) == "made_up"

    def test_who_makes_no_calls_of_it_has_none_named_after_it(self) -> None:
        told = tuple(sample.answer(each.text) for each in SENT)
        done = terminal("all done", "hand in", done=True, step=3).model_copy(update={"after_fault": True})
        call = sample.answer(None, calls=(ToolCall(name="mark_task_complete", arguments="{}"),))
        assert self.judged(call, sent=(done,), prefix=told) == "made_up"

    def test_other_words_or_keys_are_made_up(self) -> None:
        after = terminal("one left", "fix mean", "sed -i mean", step=3).model_copy(update={"after_fault": True})
        for line in (
            written("one left", "fix mean", "rm -rf /"),
            written("one left", "fix mean", "sed"),  # a part, too short
            written("both are fixed", "fix mean", "sed -i mean"),
            written("one left", "fix mean", TOLD_BY_A_TOOL),
        ):
            assert self.judged(line, sent=(after,)) == "made_up", line

    def test_a_call_beside_the_real_ones_in_the_prefix_is_made_up(self) -> None:
        second = written(*FIX_IT, "rm -rf /")
        assert self.judged(prefix=(WRITTEN[0], second)) == "made_up"

    def test_new_words_in_the_prefix_are_no_template(self) -> None:
        for second in (
            sample.answer("a minus was wrong in calc.py, and now all of it is right"),
            sample.answer(f"{SENT[1].text} And mean is fixed too."),
        ):
            assert self.judged(prefix=(WRITTEN[0], second)) == "made_up"

    def test_who_writes_one_reply_word_for_word_has_no_form_of_its_own(self) -> None:
        longer = sample.answer(f"{SENT[0].text} And mean is fixed too.")
        assert self.judged(prefix=(longer, sample.answer(SENT[1].text))) == "made_up"

    def test_the_same_words_twice_that_hold_nothing_of_a_reply_are_no_form(self) -> None:
        assert self.judged(prefix=(sample.answer("All fine."), sample.answer("All fine."))) == "made_up"

    def test_a_form_that_leaves_something_out_is_learnt_where_it_comes_twice(self) -> None:
        short = tuple(sample.answer(f"Next: {each[1]}") for each in (READ_IT, FIX_IT))
        assert self.judged(prefix=short) is None
        assert self.judged(prefix=short[:1]) == "made_up"

    def test_a_repetition_in_the_words_of_the_wire_makes_no_example_of_what_came_before(self) -> None:
        assert self.judged(sample.answer(SENT[0].text)) == "made_up"

    def test_an_answer_that_the_harness_dropped_moves_nothing(self) -> None:
        assert self.judged(prefix=WRITTEN[1:]) is None


def test_without_a_fault_an_empty_answer_is_nobodys_fabrication() -> None:
    facts = sample.wire(first_fault_seconds=None, faulted_requests=0)
    assert code(sample.finished(sample.answer("")), wire=facts) is None
