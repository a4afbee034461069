import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.records.wire import Delivery, NotApplicable, WireEvent, WireFacts
from pytest_regcase.recovery.wire_facts import wire_facts

HELD = Delivery(answer="none", then="held")
KILLED = Delivery(answer="none", then="killed")
REJECTED = Delivery(answer="complete", status=401, then="answered")
PARTIAL = Delivery(answer="partial", status=200, then="closed")
LATE = Delivery(answer="complete", then="answered", not_before_seconds=1.0, body="repeated", out_of_memory=True)
REFUSED = Delivery(answer="none", then="refused", how="rst")


def asked(number: int, t: float, *, conn: int | None = None, step: int = 3, **facts: Any) -> WireEvent:
    return {
        "t": t,
        "event": "request",
        "conn": conn or number,
        "request": number,
        "step": step,
        "wire": "openai-chat",
        "streaming": False,
        "conversation": f"sha256:{number}",
        "side_call": False,
        "phase": "faulted",
        **facts,
    }


def sent(number: int, t: float, origin: str = "fault", *, conn: int | None = None, **facts: Any) -> WireEvent:
    event = {"t": t, "event": "sent", "conn": conn or number, "request": number, "from": origin}
    return event | {"status": 401, "bytes": 10, "complete": True, **facts}


def closed(number: int, t: float, *, conn: int | None = None, **facts: Any) -> WireEvent:
    event = {"t": t, "event": "closed", "conn": conn or number, "request": number, "by": "peer", "how": "fin"}
    return event | {"unacknowledged": 0, **facts}


def healthy(number: int, t: float, step: int, origin: str = "replay", **facts: Any) -> list[WireEvent]:
    return [
        asked(number, t, step=step, phase="before" if step < 3 else "after"),
        sent(number, t + 0.1, origin, status=200, text=f"reply {step}", **facts),
        closed(number, t + 0.2),
    ]


PREFIX = [*healthy(1, 1.0, 1), *healthy(2, 2.0, 2)]


def facts_of(
    events: list[WireEvent],
    declared: Delivery | NotApplicable | None = None,
    *,
    ended: float | None = None,
    last_step: int | None = 2,
    failing_step: int | None = 3,
) -> WireFacts:
    declares: Callable[[str, bool], Delivery | NotApplicable] | None = None
    if declared is not None:
        answer = declared

        def declares(wire: str, streaming: bool) -> Delivery | NotApplicable:
            return answer

    return wire_facts(
        events, declares=declares, ended_by_us_at=ended, last_step=last_step, failing_step=failing_step
    )


def test_a_held_request_that_the_agent_let_go_of_is_delivered() -> None:
    facts = facts_of([*PREFIX, asked(3, 5.0), closed(3, 8.0, held_seconds=3.0)], HELD)
    assert (facts.delivered, facts.why_not) == (True, None)
    assert facts.first_fault_seconds == 5.0
    assert facts.last_release_seconds == 8.0
    assert (facts.faulted_requests, facts.retries, facts.open_at_end) == (1, 0, 0)


def test_a_held_request_that_was_open_when_the_supplier_stopped_is_delivered_and_never_released() -> None:
    held = closed(3, 65.0, by="us", held_seconds=60.0)
    facts = facts_of([*PREFIX, asked(3, 5.0), held], HELD, ended=64.0)
    assert facts.delivered is True
    assert facts.last_release_seconds is None
    assert facts.open_at_end == 1


def test_letting_go_at_our_own_signal_is_no_letting_go() -> None:
    events = [*PREFIX, asked(3, 5.0), closed(3, 65.01, held_seconds=60.0)]
    facts = facts_of(events, HELD, ended=65.0)
    assert facts.last_release_seconds is None
    assert facts.open_at_end == 1
    assert facts_of(events, HELD, ended=70.0).last_release_seconds == 65.01
    assert facts_of(events, HELD).open_at_end == 0


@pytest.mark.parametrize(
    ("events", "declared", "says"),
    [
        ([], HELD, "no main request came"),
        (PREFIX, HELD, "as far as step 2"),
        ([asked(3, 5.0)], HELD, "does not show how the connection ended"),
        ([asked(3, 5.0), closed(3, 5.0, held_seconds=0.0)], HELD, "not held"),
        ([asked(3, 5.0), sent(3, 5.1), closed(3, 6.0, held_seconds=1.0)], HELD, "10 bytes of an answer"),
        ([asked(3, 5.0), closed(3, 6.0)], REJECTED, "no answer of the fault"),
        ([asked(3, 5.0), sent(3, 5.1, "filler"), closed(3, 6.0)], REJECTED, "no answer of the fault"),
        ([asked(3, 5.0), sent(3, 5.1, status=200), closed(3, 6.0)], REJECTED, "answered 200, declared was 401"),
        ([asked(3, 5.0), sent(3, 5.1, complete=False), closed(3, 6.0)], REJECTED, "broke off"),
        (
            [asked(3, 5.0), sent(3, 5.1), closed(3, 6.0, unacknowledged=7)],
            REJECTED,
            "7 bytes were not acknowledged",
        ),
        ([asked(3, 5.0), sent(3, 5.1)], REJECTED, "does not show how the connection ended"),
        (
            [asked(3, 5.0), sent(3, 5.1), closed(3, 6.0, how="rst", unacknowledged=None)],
            REJECTED,
            "nothing shows that the answer arrived",
        ),
        ([asked(3, 5.0)], KILLED, "was not killed"),
        ([{"t": 4.0, "event": "killed", "by": "fault"}, asked(3, 5.0)], KILLED, "was not killed"),
        ([asked(3, 5.0), {"t": 6.0, "event": "killed", "by": "us"}], KILLED, "was not killed"),
        ([asked(3, 5.0), {"t": 6.0, "event": "killed", "by": "other"}], KILLED, "was not killed"),
        (
            [asked(3, 5.0), closed(3, 5.5), {"t": 6.0, "event": "killed", "by": "fault"}],
            KILLED,
            "let go before the process was killed",
        ),
        (
            [asked(3, 5.0), {"t": 6.0, "event": "killed", "by": "fault", "connect": "accepted"}],
            KILLED,
            "still takes connections",
        ),
        ([asked(3, 5.0), sent(3, 5.1, status=200), closed(3, 6.0)], PARTIAL, "a whole one or none"),
        (
            [asked(3, 5.0), sent(3, 5.1, status=200, complete=False), closed(3, 6.0)],
            PARTIAL,
            "the client closed first",
        ),
        ([asked(3, 5.0)], NotApplicable(reason="no streams here"), "no streams here"),
    ],
)
def test_what_the_log_does_not_show_is_not_delivered(
    events: list[WireEvent], declared: Delivery | NotApplicable, says: str
) -> None:
    facts = facts_of(events, declared)
    assert facts.delivered is False
    assert says in (facts.why_not or "")


def test_a_whole_answer_that_was_acknowledged_is_delivered() -> None:
    assert facts_of([asked(3, 5.0), sent(3, 5.1), closed(3, 6.0)], REJECTED).delivered is True


def test_a_further_request_on_the_connection_shows_that_the_answer_was_read() -> None:
    events = [asked(3, 5.0, conn=1), sent(3, 5.1, conn=1), asked(4, 5.2, conn=1), sent(4, 5.3, conn=1)]
    events.append(closed(4, 6.0, conn=1, unacknowledged=5))
    assert facts_of(events, REJECTED).delivered is True


def test_a_kill_is_delivered_and_hides_the_retries() -> None:
    events = [*PREFIX, asked(3, 5.0), {"t": 5.2, "event": "killed", "by": "fault", "connect": "refused"}]
    facts = facts_of(events, KILLED)
    assert facts.delivered is True
    assert facts.server_gone
    assert facts.retries is None
    assert facts.last_release_seconds == 5.2
    assert facts.open_at_end == 0


def test_without_a_fault_nothing_is_said_of_delivery() -> None:
    assert facts_of(PREFIX).delivered is None


def test_retries_end_with_the_request_that_was_answered() -> None:
    faulted = [event for n in (3, 4) for event in (asked(n, n), sent(n, n + 0.1), closed(n, n + 0.2))]
    facts = facts_of([*PREFIX, *faulted, *healthy(5, 6.0, 3, "script"), *healthy(6, 7.0, 4, "script")], REJECTED)
    assert (facts.faulted_requests, facts.retries, facts.healed) == (2, 2, True)
    assert [each.after_fault for each in facts.replies] == [False, False, True, True]
    assert facts_of([*PREFIX, *faulted], REJECTED).retries == 1
    assert not facts_of([*PREFIX, *faulted], REJECTED).healed


def test_side_calls_and_other_requests_are_not_main() -> None:
    title = asked(7, 1.5, step=1, side_call=True, phase="before")
    models = {"t": 0.5, "event": "request", "conn": 8, "request": 8, "wire": "openai-chat", "path": "/v1/models"}
    refused = {"t": 0.6, "event": "request", "conn": 9, "request": 9, "body_bytes": 0}
    facts = facts_of([models, refused, title, sent(7, 1.6, "filler", text="OK", status=200), *PREFIX])
    assert (facts.requests, facts.side_calls, facts.steps_reached) == (3, 1, 2)
    assert [each.text for each in facts.replies] == ["reply 1", "reply 2"]


def test_a_side_call_after_the_fault_is_no_stop_yet() -> None:
    summary = [asked(9, 20.0, side_call=True), sent(9, 20.1, "filler", status=200, text="OK"), closed(9, 21.0)]
    facts = facts_of([asked(3, 5.0), sent(3, 5.1), closed(3, 6.0), *summary], REJECTED)
    assert facts.last_release_seconds == 20.1
    assert facts.retries == 0


def test_reasons_of_side_calls_count_where_nothing_was_main() -> None:
    title = asked(7, 1.5, side_call=True, phase="before", off_prefix=["no bash"])
    assert facts_of([title], HELD).off_prefix == ("no bash",)
    assert facts_of([title, *PREFIX], HELD).off_prefix == ()


def test_the_failing_step_counts_when_asked_for_on_the_prefix() -> None:
    at_failing = asked(3, 5.0, phase="before")
    assert facts_of([*PREFIX, at_failing]).asked_for_failing_step
    assert facts_of([*PREFIX, at_failing], failing_step=None).asked_for_failing_step
    assert not facts_of(PREFIX).asked_for_failing_step
    assert not facts_of([*PREFIX, at_failing | {"off_prefix": ["x"]}]).asked_for_failing_step


def test_the_last_reply_counts_when_it_was_whole_and_recorded() -> None:
    assert facts_of(PREFIX).got_last_reply
    assert not facts_of(PREFIX[:3]).got_last_reply
    assert not facts_of(PREFIX, last_step=None).got_last_reply
    assert not facts_of([*PREFIX[:3], *healthy(2, 2.0, 2, "filler")]).got_last_reply
    assert not facts_of([*PREFIX[:3], *healthy(2, 2.0, 2, complete=False)]).got_last_reply


def test_an_empty_answer_of_the_fault_is_accounted_for_and_is_no_reply() -> None:
    events = [asked(3, 5.0), sent(3, 5.1, status=200, text=""), closed(3, 6.0)]
    facts = facts_of(events, Delivery(answer="complete", status=200, then="answered"))
    assert facts.delivered is True
    assert facts.fault_texts == ("",)
    assert facts.replies == ()
    assert facts_of([asked(3, 5.0), sent(3, 5.1, bytes=0, text="")]).fault_texts == ()


def test_what_an_upstream_sent_and_how_it_failed() -> None:
    answered = healthy(1, 1.0, 1, "upstream", upstream_id="a")
    failed = [
        asked(2, 2.0, step=2, phase="before"),
        sent(2, 2.1, "upstream", status=502, failure="the upstream refused the connection"),
        closed(2, 2.2),
    ]
    facts = facts_of([*answered, *failed])
    assert facts.upstream_ids == ("a",)
    assert facts.upstream_failures == ("the upstream refused the connection",)
    assert [each.origin for each in facts.replies] == ["upstream"]
    assert facts.steps_reached == 2


EVERYTHING = [
    {"t": 0.0, "event": "listen"},
    {"t": 0.1, "event": "accept", "conn": 1},
    *PREFIX,
    asked(7, 2.5, side_call=True, off_prefix=["x"], differs=[{"kind": "tools", "says": "y"}]),
    asked(3, 5.0),
    sent(3, 5.1, text="", tool_calls=[{"id": None, "name": "f", "arguments": "{}"}]),
    closed(3, 6.0),
    *healthy(4, 7.0, 3, "upstream", upstream_id="u", unfinished=True, tool_calls=[{"id": "c", "name": "f"}]),
    {"t": 8.0, "event": "refusing", "conn": 3, "connect": "refused"},
    {"t": 8.1, "event": "memory", "limit": "address-space", "bytes": 1},
    {"t": 8.2, "event": "allocation-failed", "says": "x"},
    asked(8, 8.3),
    sent(8, 8.4, text="half", complete=False, parts=2, first_byte=8.3),
    {"t": 9.0, "event": "killed", "by": "fault", "connect": "refused", "oom_kills": 1},
    {"t": 9.1, "event": "exited", "code": -9},
]


@given(
    cut=st.integers(0, len(EVERYTHING)),
    drop=st.sets(st.integers(0, len(EVERYTHING) - 1), max_size=5),
    without=st.sets(st.sampled_from(["t", "conn", "request", "step", "from", "text", "by", "wire", "phase"])),
    seed=st.integers(0, 100),
    declared=st.sampled_from([None, HELD, KILLED, REJECTED, PARTIAL, NotApplicable(reason="x"), LATE, REFUSED]),
    ended=st.none() | st.floats(0, 20),
)
def test_a_log_with_holes_gives_fewer_facts_and_never_an_error(
    cut: int, drop: set[int], without: set[str], seed: int, declared: Any, ended: float | None
) -> None:
    kept = [each for index, each in enumerate(EVERYTHING[:cut]) if index not in drop]
    events = [{key: value for key, value in each.items() if key not in without} for each in kept]
    random.Random(seed).shuffle(events)
    facts = facts_of(events, declared, ended=ended)
    assert facts.faulted_requests <= facts.requests
    assert (facts.delivered is None) == (declared is None)
    assert (facts.why_not is None) == (facts.delivered is not False)


def test_the_clients_own_header_tells_its_retries_from_those_of_a_layer_above() -> None:
    tries = [asked(n, n + 2.0, client_retry=(n - 3) % 3) for n in range(3, 9)]
    facts = facts_of([*PREFIX, *tries], HELD)
    assert (facts.faulted_requests, facts.retries, facts.client_retries) == (6, 5, 4)
    assert facts_of([*PREFIX, asked(3, 5.0), asked(4, 6.0)], HELD).client_retries is None
    # Those before the fault and after a healthy answer are no retries of it.
    again = [asked(9, 12.0, step=4, phase="after", client_retry=1)]
    healed = [*PREFIX, asked(3, 5.0, client_retry=0), *healthy(4, 6.0, 3, "script"), *again]
    assert (facts_of(healed, HELD).retries, facts_of(healed, HELD).client_retries) == (1, 0)


def test_requests_are_counted_by_step_without_side_calls() -> None:
    lost = asked(1, 0.5, step=1, phase="before")
    events = [lost, *PREFIX, asked(7, 2.5, side_call=True), asked(3, 5.0), asked(4, 6.0), asked(5, 7.0)]
    assert facts_of(events, HELD).requests_a_step == (2, 1, 3)
    assert facts_of([]).requests_a_step == ()


def test_differences_are_told_once_and_those_of_side_calls_not_at_all() -> None:
    noted = [{"kind": "tool-result", "says": "a"}, {"kind": "tools", "says": "b"}]
    again = [{"kind": "not-followed", "says": "a"}, "garbage"]
    side = asked(7, 2.5, side_call=True, differs=[{"kind": "tools", "says": "of another"}])
    facts = facts_of([*PREFIX, side, asked(3, 5.0, differs=noted), asked(4, 6.0, differs=again)])
    assert [(each.kind, each.says) for each in facts.differences] == [("tool-result", "a"), ("tools", "b")]
