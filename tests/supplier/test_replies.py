from typing import Any

import pytest

from pytest_regcase.supplier.protocol import ModelRequest
from pytest_regcase.supplier.replies import (
    SIDE_TEXT,
    Due,
    ReplyBook,
    read_replies,
    resolve_failing_step,
    steps_followed,
)
from pytest_regcase.supplier.spec import PassThrough, SupplierSpec
from tests.supplier.requests import got, request, said, user
from tests.supplier.serving import TWO_STEPS, assistant, call, fault, result

STEP_1 = request()
STEP_2 = request(user(), said("c1"), got("c1", "old"))
STEP_3 = request(user(), said("c1"), got("c1", "old"), said("c2"), got("c2", "new"))


def spec(**changes: Any) -> SupplierSpec:
    fields: dict[str, Any] = {"lines": TWO_STEPS, "failing_step": 3} | changes
    return SupplierSpec(wire_log="x", t0=0.0, token="t", **fields)


def take(book: ReplyBook, asked: ModelRequest, *, retry: int | None = None) -> Due:
    """Place a request and, where a healthy reply is due, send it."""
    conversation = repr(asked.messages)
    due = book.decide(asked, conversation, client_retry=retry)
    if due.reply is not None:
        book.answered(due, conversation)
    return due


def texts(*dues: Due) -> list[str | None]:
    return [due.reply.text if due.reply else None for due in dues]


def test_recorded_replies_come_in_order_and_then_the_fault_for_ever() -> None:
    book = ReplyBook(spec(fault=fault("no_answer", at_step=3)))
    dues = [take(book, each) for each in (STEP_1, STEP_2, STEP_3, STEP_3, STEP_3)]
    assert texts(*dues) == ["Looking.", "Fixing.", None, None, None]
    assert [due.step for due in dues] == [1, 2, 3, 3, 3]
    assert [due.faulted for due in dues] == [0, 0, 1, 2, 3]
    assert [due.phase for due in dues] == ["before", "before", "faulted", "faulted", "faulted"]
    assert not any(due.off_prefix or due.differs or due.side_call for due in dues)


def test_a_control_gets_the_closing_reply_and_is_done_at_the_failing_step() -> None:
    book = ReplyBook(spec())
    dues = [take(book, each) for each in (STEP_1, STEP_2, STEP_3)]
    assert texts(*dues) == ["Looking.", "Fixing.", "Done."]
    assert dues[2].reply is not None
    assert dues[2].reply.origin == "filler"
    assert [due.reaches_control for due in dues] == [False, False, True]


def test_a_control_whose_every_step_is_recorded_is_done_with_the_last_reply() -> None:
    book = ReplyBook(spec(failing_step=2))
    assert [take(book, each).reaches_control for each in (STEP_1, STEP_2)] == [False, True]


def test_the_fault_takes_the_place_of_a_recorded_reply() -> None:
    book = ReplyBook(spec(failing_step=2, fault=fault("no_answer", at_step=2)))
    assert texts(take(book, STEP_1), take(book, STEP_2)) == ["Looking.", None]


def test_a_fault_set_too_late_leaves_the_closing_reply() -> None:
    book = ReplyBook(spec(fault=fault("no_answer", at_step=9)))
    dues = [take(book, each) for each in (STEP_1, STEP_2, STEP_3)]
    assert texts(*dues) == ["Looking.", "Fixing.", "Done."]
    assert not any(due.faulted or due.reaches_control for due in dues)


def test_a_fault_at_a_request_counts_retries_too() -> None:
    book = ReplyBook(spec(fault=fault("no_answer", at_request=2, lasts=1)))
    dues = [take(book, STEP_1), take(book, STEP_2), take(book, STEP_2)]
    assert [due.faulted for due in dues] == [0, 1, 0]
    assert [due.step for due in dues] == [1, 2, 2]
    assert dues[2].phase == "after"
    assert texts(dues[2]) == ["Fixing."]


def test_a_healed_fault_is_followed_by_what_was_written_for_it_and_then_the_closing_reply() -> None:
    after = (assistant(1, call("a1"), text="Again."), assistant(2, text="All done."))
    book = ReplyBook(spec(fault=fault("no_answer", at_step=3, lasts=2), after_fault=after))
    for each in (STEP_1, STEP_2, STEP_3, STEP_3):
        take(book, each)
    healed = [take(book, STEP_3), take(book, request(user(), said("a1"), got("a1"))), take(book, STEP_1)]
    assert texts(*healed) == ["Again.", "All done.", "Done."]
    assert [due.step for due in healed] == [3, 4, 5]


def test_a_healed_fault_without_more_gets_the_closing_reply() -> None:
    book = ReplyBook(spec(fault=fault("no_answer", at_step=3, lasts=1)))
    for each in (STEP_1, STEP_2, STEP_3):
        take(book, each)
    assert texts(take(book, STEP_3)) == ["Done."]


def test_after_the_first_fault_a_fresh_start_is_noted_and_not_off_the_prefix() -> None:
    book = ReplyBook(spec(fault=fault("no_answer", at_step=3, lasts=1)))
    for each in (STEP_1, STEP_2, STEP_3):
        take(book, each)
    due = take(book, STEP_1)
    assert due.off_prefix == ()
    assert [each.kind for each in due.differs] == ["not-followed"] * 2
    assert "does not echo" in due.differs[0].says


def test_a_forgotten_step_is_told_once() -> None:
    lines = tuple(assistant(step, call(f"c{step}")) for step in range(1, 5))
    book = ReplyBook(spec(lines=lines, failing_step=5))
    trimmed = [request(user(), said(f"c{step}"), got(f"c{step}")) for step in range(1, 5)]
    dues = [take(book, each) for each in (STEP_1, *trimmed)]
    assert [[each.says for each in due.differs] for due in dues] == [
        [],
        [],
        ["the request no longer shows the calls of step 1"],
        ["the request no longer shows the calls of step 2"],
        ["the request no longer shows the calls of step 3"],
    ]


def test_side_calls_never_advance_the_step() -> None:
    book = ReplyBook(spec(fault=fault("no_answer", at_step=3)))
    title = request(user("Title?"), tools=())
    dues = [take(book, each) for each in (title, STEP_1, title, STEP_2, title, STEP_3, title)]
    assert texts(*dues) == [SIDE_TEXT, "Looking.", SIDE_TEXT, "Fixing.", SIDE_TEXT, None, SIDE_TEXT]
    assert [due.side_call for due in dues] == [True, False] * 3 + [True]
    assert dues[5].faulted == 1


def test_a_sub_agent_in_parallel_never_advances_the_step_and_never_meets_the_fault() -> None:
    book = ReplyBook(spec(fault=fault("no_answer", at_step=3)))
    review = user("Review the change.")
    begins, goes_on = request(review), request(review, said(text=SIDE_TEXT), user("Go on."))
    dues = [take(book, each) for each in (STEP_1, begins, STEP_2, goes_on, begins, STEP_3, goes_on, STEP_3)]
    assert texts(*dues) == ["Looking.", SIDE_TEXT, "Fixing.", SIDE_TEXT, SIDE_TEXT, None, SIDE_TEXT, None]
    assert [due.side_call for due in dues] == [False, True, False, True, True, False, True, False]
    assert [due.faulted for due in dues] == [0, 0, 0, 0, 0, 1, 0, 2]
    assert not any(due.off_prefix or due.differs for due in dues)


def test_an_agent_without_the_recorded_tool_is_seen() -> None:
    book = ReplyBook(spec(fault=fault("no_answer", at_step=3)))
    due = take(book, request(tools=("shell",)))
    assert due.side_call
    assert "step 1 calls bash" in due.off_prefix[0]


def test_off_the_prefix_no_fault_is_sent_and_it_stays_off() -> None:
    book = ReplyBook(spec(fault=fault("no_answer", at_step=2)))
    take(book, STEP_1)
    dues = [take(book, request(user(), said("zzz"), got("zzz"))), take(book, STEP_2)]
    assert texts(*dues) == ["Done.", "Done."]
    assert all(due.off_prefix and not due.faulted for due in dues)


def test_a_differing_result_is_only_noted() -> None:
    book = ReplyBook(spec())
    take(book, STEP_1)
    due = take(book, request(user(), said("c1"), got("c1", "something else")))
    assert due.off_prefix == ()
    assert [each.kind for each in due.differs] == ["tool-result"]
    assert texts(due) == ["Fixing."]


def test_other_tools_than_the_recorded_request_offered_are_only_noted() -> None:
    first, *others = TWO_STEPS[1:]
    book = ReplyBook(spec(lines=({**first, "offered_tools": ["bash", "submit"]}, *others)))
    due = take(book, request(tools=("bash", "write")))
    assert due.off_prefix == ()
    assert [each.says for each in due.differs] == [
        "the agent offers write, which the recorded one did not, and no longer offers submit"
    ]
    assert texts(due) == ["Looking."]
    # The second recorded request does not say what it offered.
    assert take(book, STEP_2).differs == ()


def test_a_retry_of_an_answered_request_gets_the_same_reply_on_the_same_step() -> None:
    book = ReplyBook(spec())
    dues = [take(book, STEP_1), take(book, STEP_1, retry=1), take(book, STEP_1), take(book, STEP_2)]
    assert texts(*dues) == ["Looking.", "Looking.", "Looking.", "Fixing."]
    assert [due.step for due in dues] == [1, 1, 1, 2]


def test_replies_without_calls_are_followed_by_an_agent_that_parses_text() -> None:
    lines = (assistant(1, text="```ls```"), assistant(2, text="```rm```"))
    book = ReplyBook(spec(lines=lines, task_text="Fix it.", fault=fault("no_answer", at_step=3)))
    asked = [request(user("Task: Fix it."), *(said(text="x"), user("out"))[: 2 * n], tools=()) for n in range(3)]
    dues = [take(book, each) for each in asked]
    assert texts(*dues) == ["```ls```", "```rm```", None]


def test_a_title_call_that_took_the_first_step_gives_it_back() -> None:
    lines = (assistant(1, text="one"), assistant(2, text="two"))
    book = ReplyBook(spec(lines=lines, task_text="Fix it."))
    dues = [take(book, request(user("Title of: Fix it."), tools=())), take(book, STEP_1)]
    assert texts(*dues) == ["one", "one"]
    assert [due.step for due in dues] == [1, 1]


def test_where_nothing_is_recorded_the_fault_meets_the_first_request() -> None:
    nothing = spec(lines=(), failing_step=6)
    assert steps_followed(nothing) == (None, 1)
    book = ReplyBook(spec(lines=(), failing_step=6, fault=fault("no_answer", at_step=1)))
    assert take(book, STEP_1).faulted == 1
    assert take(ReplyBook(nothing), STEP_1).reaches_control


def test_pass_through_leaves_every_healthy_answer_to_the_upstream() -> None:
    book = ReplyBook(spec(pass_through=PassThrough("http://x/v1"), fault=fault("no_answer", at_step=2)))
    due = book.decide(STEP_1, "a")
    assert due.reply is None
    assert due.faulted == 0
    (upstream,) = read_replies((assistant(1, call("zzz")),), "replay", "call")
    book.answered(due, "a", upstream)
    assert book.decide(STEP_1, "b").faulted == 1


@pytest.mark.parametrize(
    ("failing", "recorded", "live", "expected"),
    [
        (6, 5, False, 6),
        (None, 5, False, 6),
        (None, 0, False, 1),
        (6, 0, False, 1),
        (6, 0, True, 6),
        (5, 5, False, 5),
    ],
)
def test_the_failing_step(failing: int | None, recorded: int, live: bool, expected: int) -> None:
    assert resolve_failing_step(failing, recorded, live=live) == expected


def test_failed_calls_and_examples_are_no_replies_and_missing_ids_are_made() -> None:
    lines = (
        {"step": 0, "role": "assistant", "text": "an example"},
        assistant(1, call(None, "a"), call(None, "b")),
        {"step": 1, "role": "tool", "text": "one"},
        {"step": 2, "role": "assistant", "error": "Timeout"},
        assistant(2, call("x"), text="two"),
        result(2, "x", "raw"),
    )
    first, second = read_replies(lines, "replay", "call")
    assert [each.id for each in first.calls] == ["call_1_0", "call_1_1"]
    assert first.results[0].texts == ("one",)
    assert second.calls[0].id == "x"
    assert second.results[0].call_id == "x"
