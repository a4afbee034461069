"""A trace as a tree: how it ended, who raised what, and the conversation of its model calls."""

from typing import Any

import pytest

from pytest_regcase.importers.span_tree import Span, SpanTree, ref_of_trace, shown_by_a_trace
from pytest_regcase.records.trial import TrialError

ASKED = {"role": "user", "content": "repair"}
SAID = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "name": "bash", "args": {"x": 1}}]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
LATE = TrialError(type="openai.APITimeoutError", message="Request timed out.")


def span(name: str, parent: str | None = "root", kind: Any = "model", **more: Any) -> Span:
    return Span(id=name, parent=parent, kind=kind, origin=name, **more)


def root(**more: Any) -> Span:
    return span("root", None, "agent", **more)


def call(name: str, *given: Any, said: Any = None, **more: Any) -> Span:
    return span(name, given=given, said=said, **more)


def shown(tree: SpanTree) -> list[tuple[int, str, str | None, str | None]]:
    return [(line.step, line.role, line.text, line.error) for line in tree.lines]


def test_each_call_adds_only_what_is_new_in_it() -> None:
    done = {"role": "assistant", "content": "done"}
    tree = SpanTree(
        [
            root(),
            call("a", ASKED, said=SAID),
            span("t", kind="tool", output="raw"),
            call("b", ASKED, SAID, RESULT, said=done),
        ]
    )
    assert shown(tree) == [
        (0, "user", "repair", None),
        (1, "assistant", "", None),
        (1, "tool", "ok", None),
        (2, "assistant", "done", None),
    ]
    assert (tree.termination, tree.failing_step, tree.missing) == ("finished", 2, [])
    assert tree.lines[1].tool_calls[0].arguments == '{"x": 1}'


def test_a_tools_span_gives_the_result_where_no_later_call_repeats_it() -> None:
    tree = SpanTree(
        [root(failure=LATE), call("a", ASKED, said=SAID), span("t", kind="tool", call_id="c1", output="raw")]
    )
    assert shown(tree)[-1] == (1, "tool", "raw", None)
    assert (tree.termination, tree.failing_step) == ("error", 2)


def test_a_request_that_does_not_go_on_is_counted_and_adds_nothing() -> None:
    tree = SpanTree(
        [root(), call("a", ASKED, said=SAID), call("b", {"role": "user", "content": "other"}, said=SAID)]
    )
    assert [line.role for line in tree.lines] == ["user", "assistant", "assistant"]
    assert tree.missing == ["1 request that did not go on from the request before: what was new in it is left out"]


def test_a_failed_call_below_a_root_that_ended_well_was_retried() -> None:
    tree = SpanTree([root(), call("a", ASKED, failure=LATE), call("b", ASKED, said=SAID)])
    assert shown(tree) == [
        (0, "user", "repair", None),
        (1, "assistant", None, "Request timed out."),
        (1, "assistant", "", None),
    ]
    assert (tree.termination, tree.error, tree.failing_step) == ("finished", None, 1)


@pytest.mark.parametrize(
    ("above", "below", "by"),
    [
        (LATE, TrialError(type="APITimeoutError", message="Request timed out."), "supplier"),
        (TrialError(type="APITimeoutError"), LATE, "supplier"),
        (TrialError(), LATE, "supplier"),
        (TrialError(type="ValueError", message="no such plan"), LATE, "unknown"),
    ],
    ids=["same words", "same type", "root says nothing", "another error"],
)
def test_who_raised_it_is_said_only_where_the_error_below_is_the_same(
    above: TrialError, below: TrialError, by: str
) -> None:
    error = SpanTree([root(failure=above), call("a", ASKED, failure=below)]).error
    assert error is not None
    assert error.raised_by == by
    assert error.type == (above.type or below.type)


def test_a_silent_root_does_not_take_over_an_error_that_was_answered() -> None:
    tree = SpanTree([root(failure=TrialError()), call("a", ASKED, failure=LATE), call("b", ASKED, said=SAID)])
    assert tree.error == TrialError()


def test_a_missing_parent_is_a_run_that_was_cut_off_unless_what_never_ended_is_in_the_log() -> None:
    spans = [span("a", "gone", given=(ASKED,), said=SAID), span("t", "gone", "tool", output="ok")]
    assert (SpanTree(spans).termination, SpanTree(spans).failing_step) == ("cut-off", 2)
    filtered = SpanTree(spans, unended_are_in_it=True)
    assert filtered.termination is None
    assert "how it ended: no span in the log stands for the whole run" in filtered.missing


def test_an_agent_called_from_elsewhere_is_a_root() -> None:
    tree = SpanTree([span("agent", "in another service", "agent"), span("a", "agent", given=(ASKED,), said=SAID)])
    assert tree.termination == "finished"


def test_an_open_root_is_cut_off_and_its_open_call_the_step_that_never_came() -> None:
    spans = [root(is_open=True), call("a", ASKED, said=SAID), call("b", ASKED, SAID, RESULT, is_open=True)]
    tree = SpanTree(spans, unended_are_in_it=True)
    assert (tree.termination, tree.failing_step) == ("cut-off", 2)


def test_calls_of_agents_below_are_side_calls() -> None:
    tree = SpanTree(
        [
            root(),
            call("a", ASKED, said=SAID),
            span("sub", "root", "agent"),
            span("s1", "sub", given=(ASKED,), said=SAID),
            span("t", "sub", "tool", output="not ours"),
        ]
    )
    assert (len(tree.calls), len(tree.lines)) == (1, 2)
    assert tree.missing == ["1 model call of agents below the main one left out of the transcript: side calls"]


def test_agents_of_a_workflow_are_the_main_conversation() -> None:
    tree = SpanTree([root(), span("one", "root", "agent"), span("a", "one", given=(ASKED,), said=SAID)])
    assert len(tree.calls) == 1


def test_replies_without_content_count_as_steps_and_show_no_answer() -> None:
    tree = SpanTree([root(), call("a"), call("b")])
    assert tree.failing_step == 2
    assert shown_by_a_trace(tree) == ("log_failure", "mark_failure")
    assert tree.missing == [
        "the content of 2 replies is not recorded: the step counts, and replaying it gives an empty answer"
    ]


def test_spans_in_a_ring_are_read_once() -> None:
    tree = SpanTree([span("a", "b", said=SAID), span("b", "a", said=SAID)])
    assert (tree.termination, len(tree.lines)) == (None, 2)


def test_nothing_is_nothing() -> None:
    tree = SpanTree([])
    assert (tree.termination, tree.failing_step, tree.error, tree.lines) == (None, None, None, ())


def test_a_reference_says_why_it_is_no_failed_trial() -> None:
    well = SpanTree([root(), call("a", ASKED, said=SAID)])
    ref = ref_of_trace(well, key="k", task_id=None, attempt=None)
    assert (ref.failed, ref.refusal) == (False, "no-sign-of-failure")
    passed = ref_of_trace(well, key="k", task_id=None, attempt=None, outcome="passed")
    assert (passed.failed, passed.refusal) == (False, "passed")
    failed = ref_of_trace(well, key="k", task_id=None, attempt=None, outcome="failed")
    assert (failed.failed, failed.refusal) == (True, None)
