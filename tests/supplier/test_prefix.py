import json

import pytest

from pytest_regcase.supplier.prefix import (
    Difference,
    GivenReply,
    RecordedResult,
    departures,
    forgotten_steps,
    missing_tools,
    no_longer_shown,
    other_results,
    other_tools,
)
from pytest_regcase.supplier.protocol import Call
from tests.supplier.requests import got, request, said, user


def given(step: int, *ids: str, results: tuple[RecordedResult, ...] = ()) -> GivenReply:
    return GivenReply(step, tuple(Call(each, "bash") for each in ids), results)


def test_a_follower_departs_nowhere() -> None:
    follower = request(user(), said("c1"), got("c1"), said("c2", "c3"), got("c3"), got("c2"))
    assert departures(follower, [given(1, "c1"), given(2, "c2", "c3")]) == ()


def test_no_reply_and_a_text_reply_ask_for_nothing() -> None:
    assert departures(request(), []) == ()
    assert departures(request(), [given(1)]) == ()


def test_a_call_that_is_not_echoed_is_named() -> None:
    (reason,) = departures(request(user(), said("other"), got("other")), [given(1, "c1")])
    assert "step 1" in reason
    assert "c1" in reason


def test_a_missing_result_is_named() -> None:
    (reason,) = departures(request(user(), said("c1", "c2"), got("c1")), [given(1, "c1", "c2")])
    assert "no result for call c2 of step 1" in reason


def test_a_result_before_its_call_is_none() -> None:
    assert departures(request(got("c1"), said("c1")), [given(1, "c1")])


def test_reused_ids_are_told_apart_by_their_place() -> None:
    replies = [given(1, "call_0"), given(2, "call_0")]
    both = request(user(), said("call_0"), got("call_0"), said("call_0"), got("call_0"))
    assert departures(both, replies) == ()
    without_its_result = request(user(), said("call_0"), got("call_0"), said("call_0"))
    assert departures(without_its_result, replies)


def test_trimmed_history_is_a_difference_only() -> None:
    trimmed = request(user(), said("c2"), got("c2"))
    replies = [given(1, "c1"), given(2, "c2")]
    assert departures(trimmed, replies) == ()
    assert forgotten_steps(trimmed, replies) == (1,)
    assert no_longer_shown(1) == Difference("forgotten-step", "the request no longer shows the calls of step 1")


def test_a_step_of_which_one_call_is_gone_is_forgotten_and_the_last_step_never() -> None:
    replies = [given(1, "a", "b"), given(2, "c"), given(3, "d")]
    assert forgotten_steps(request(user(), said("a", "c"), got("c")), replies) == (1,)
    assert forgotten_steps(request(user(), said("b", "a", "c", "d")), replies) == ()
    assert forgotten_steps(request(), []) == ()


def test_tools_that_are_not_offered_are_named_with_what_is() -> None:
    (reason,) = missing_tools(request(tools=("shell",)), 3, {"bash"})
    assert "step 3 calls bash" in reason
    assert "shell" in reason
    assert missing_tools(request(), 3, {"bash"}) == ()


@pytest.mark.parametrize(
    "sent",
    [
        'a\n"b" ä',
        '<output>\na\n"b" ä\n</output>',
        json.dumps({"returncode": 0, "output": 'a\n"b" ä'}),
        json.dumps({"output": 'a\n"b" ä'}, ensure_ascii=False),
    ],
)
def test_a_recorded_output_inside_a_template_is_equal(sent: str) -> None:
    recorded = (RecordedResult("c1", ('a\n"b" ä\n',)),)
    assert other_results(request(user(), said("c1"), got("c1", sent)), [given(1, "c1", results=recorded)]) == ()


def test_another_result_is_noted() -> None:
    recorded = (RecordedResult("c1", ("old",)),)
    (note,) = other_results(request(user(), said("c1"), got("c1", "fresh")), [given(1, "c1", results=recorded)])
    assert note == Difference("tool-result", "the result of call c1 (step 1) differs from the recorded one")


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        (("bash", "submit"), None),
        (("submit", "bash", "write", "read"), "the agent offers write, read, which the recorded one did not"),
        (("bash",), "the agent no longer offers submit"),
        ((), "the agent no longer offers bash, submit"),
    ],
)
def test_tools_that_came_or_went_are_noted(tools: tuple[str, ...], says: str | None) -> None:
    found = other_tools(request(tools=tools), ("bash", "submit"))
    assert found == (() if says is None else (Difference("tools", says),))
    assert other_tools(request(tools=tools), ()) == ()


def test_results_without_recorded_ids_are_matched_by_order() -> None:
    recorded = (RecordedResult(None, ("one",)), RecordedResult(None, ("two",)))
    reply = given(1, "a", "b", results=recorded)
    assert other_results(request(user(), said("a", "b"), got("a", "one"), got("b", "two")), [reply]) == ()
    assert len(other_results(request(user(), said("a", "b"), got("a", "two"), got("b", "one")), [reply])) == 2
