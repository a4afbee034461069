"""What the agent was given and handed out."""

from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.records.trial import Submission, ToolCall, TranscriptLine
from pytest_regcase.records.wire import SentReply
from pytest_regcase.recovery.given_texts import (
    answer_texts,
    canonical_call,
    complete_replies,
    given_texts,
    leaves,
    pieces,
    transcript_answers,
)
from tests.recovery import observed_samples as sample


def test_given_are_task_prompts_tool_results_whole_replies_and_diffs() -> None:
    part = SentReply(step=3, origin="replay", text="Both bugs are", unfinished=True)
    facts = sample.wire(replies=(*sample.REPLIES, part), fault_texts=("", "half a word"))
    seen = sample.observed(wire=facts, artefact=sample.trial(task_text="the task of the log"))
    texts = set(given_texts(seen))
    assert {sample.TASK, "the task of the log", sample.TOOL_RESULT, " calc.py | 2 +-\n"} <= texts
    assert {"Fixing add first.", "cat calc.py", "half a word", sample.PARTIAL_DIFF} <= texts
    assert "Both bugs are" not in texts
    assert "" not in texts
    assert complete_replies(seen) == sample.REPLIES


def test_given_are_no_later_words_of_the_harness() -> None:
    nudge = TranscriptLine(step=2, role="user", text="Tool call error: no call")
    seen = sample.observed(artefact=sample.trial(nudge), task_text=None, notes=None, work_tree=None)
    assert "Tool call error: no call" not in set(given_texts(seen))
    bare = sample.observed(artefact=None, task_text=None, notes=None, work_tree=None, wire=sample.wire(replies=()))
    assert list(given_texts(bare)) == []
    committed = sample.observed(work_tree=sample.tree("", committed_diff=sample.WHOLE_DIFF))
    assert sample.WHOLE_DIFF in set(given_texts(committed))


def test_answers_are_those_of_the_transcript_and_of_every_place() -> None:
    failed = TranscriptLine(step=3, role="assistant", error="HTTP 401")
    artefact = sample.trial(
        failed,
        sample.answer("x", calls=(sample.READ,)),
        TranscriptLine(step=4, role="assistant", text=None),
        final_text="the end",
        submission=Submission(text="in words", patch=sample.PARTIAL_DIFF),
    )
    seen = sample.observed(artefact=artefact, declared=sample.declared(answer="declared", submission="file"))
    answers = transcript_answers(seen)
    assert [each.place for each in answers] == ["messages[1]", "messages[3]", "messages[5]", "transcript line 8"]
    assert [each.empty for each in answers] == [False, False, False, True]
    wanted = {"x", "cat calc.py", "the end", "in words", sample.PARTIAL_DIFF, "declared", "file"}
    assert wanted <= set(answer_texts(seen))
    nothing = sample.observed(artefact=None)
    assert transcript_answers(nothing) == ()
    assert set(answer_texts(nothing)) == {""}


def test_pieces_of_a_reply_in_json() -> None:
    text = '{"analysis": "one bug", "commands": [{"keystrokes": "ls\\n"}, 3, null]}'
    assert list(pieces(SentReply(step=1, origin="replay", text=text))) == [text, "one bug", "ls\n"]
    assert list(pieces(SentReply(step=1, origin="replay"))) == []


def test_calls_are_the_same_whatever_their_spacing() -> None:
    one = ToolCall(id="a", name="bash", arguments='{"b": 1, "a": "x"}')
    other = ToolCall(id="b", name="bash", arguments='{"a":"x","b":1}')
    assert canonical_call(one) == canonical_call(other)
    assert canonical_call(ToolCall(name="bash", arguments=" ls ")) == ("bash", "ls")


def test_json_nested_too_deeply_is_a_text() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert list(leaves(deep)) == [deep]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=20))
def test_leaves_are_the_strings_in_order(value: object) -> None:
    import json

    def strings(each: object) -> list[str]:
        if isinstance(each, list):
            return [text for item in each for text in strings(item)]
        return [each] if isinstance(each, str) else []

    assert list(leaves(json.dumps(value))) == strings(value)
