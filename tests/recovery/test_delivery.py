"""What each field of a declaration asks of the log."""

from typing import Any

import pytest

from pytest_regcase.records.wire import Delivery, WireEvent, WireFacts
from pytest_regcase.recovery.wire_facts import wire_facts
from tests.recovery.test_wire_facts import asked, closed, sent

RESET = Delivery(answer="none", then="closed", how="rst")
HEAD_ALONE = Delivery(answer="partial", status=200, then="held", body="none")
BEGUN = Delivery(answer="partial", status=200, then="held", body="some")
TRICKLED = Delivery(answer="partial", status=200, then="held", body="repeated")
LATE = Delivery(answer="complete", status=200, then="answered", not_before_seconds=2.0)
REFUSED = Delivery(answer="none", then="refused", how="rst")
FAILED_THEN_REFUSED = Delivery(answer="complete", status=500, then="refused")
KILLED_RST = Delivery(answer="none", then="killed", how="rst")
EXHAUSTED = Delivery(answer="none", then="killed", how="fin", out_of_memory=True)


def facts_of(events: list[WireEvent], declared: Delivery | None) -> WireFacts:
    return wire_facts(
        events,
        declares=None if declared is None else lambda *_: declared,
        ended_by_us_at=None,
        last_step=2,
        failing_step=3,
    )


def part(parts: int, **facts: Any) -> WireEvent:
    return sent(3, 5.1, status=200, complete=False, parts=parts, first_byte=5.1, **facts)


def ours(how: str, t: float = 6.0, **facts: Any) -> WireEvent:
    return closed(3, t, by="us", how=how, **facts)


def held(**facts: Any) -> WireEvent:
    return closed(3, 6.0, held_seconds=1.0, **facts)


def refusing(connect: str = "refused", t: float = 5.1) -> WireEvent:
    return {"t": t, "event": "refusing", "conn": 3, "connect": connect}


def killed(**facts: Any) -> WireEvent:
    return {"t": 6.0, "event": "killed", "by": "fault", "connect": "refused", **facts}


ANSWERED = sent(3, 7.5, status=200, parts=1, first_byte=7.4)
FAILED = sent(3, 5.2, status=500, parts=0, first_byte=5.2)
LIMITED = {"t": 5.1, "event": "memory", "limit": "address-space", "bytes": 1}
GROUPED = LIMITED | {"limit": "cgroup"}
NO_ROOM = {"t": 5.2, "event": "allocation-failed", "says": "an allocation failed"}


@pytest.mark.parametrize(
    ("declared", "events"),
    [
        (RESET, [ours("rst")]),
        (HEAD_ALONE, [part(0), held()]),
        (BEGUN, [part(1), held()]),
        (BEGUN, [part(1), held(how="rst")]),
        (BEGUN, [part(1), held(by="us")]),
        (TRICKLED, [part(2), held()]),
        # What comes again and again is under way whenever the client lets go: two parts arrived all the same.
        (TRICKLED, [part(3, smallest_part=6), held(unacknowledged=6)]),
        (TRICKLED, [part(5, smallest_part=6), held(how="rst", unacknowledged=18)]),
        (LATE, [ANSWERED, closed(3, 8.0)]),
        # Both moments are rounded: what looks a tenth of a millisecond too early was not.
        (LATE, [ANSWERED | {"first_byte": 6.9999}, closed(3, 8.0)]),
        (LATE, [held()]),
        (REFUSED, [refusing(), ours("rst")]),
        (FAILED_THEN_REFUSED, [refusing(), FAILED, ours("fin")]),
        (FAILED_THEN_REFUSED, [refusing(), FAILED, closed(3, 5.3)]),
        (KILLED_RST, [ours("rst"), killed()]),
        (EXHAUSTED, [GROUPED, killed(oom_kills=1)]),
        (EXHAUSTED, [LIMITED, NO_ROOM, killed()]),
    ],
)
def test_what_the_log_shows_is_delivered(declared: Delivery, events: list[WireEvent]) -> None:
    facts = facts_of([asked(3, 5.0), *events], declared)
    assert (facts.delivered, facts.why_not) == (True, None)


@pytest.mark.parametrize(
    ("declared", "events", "says"),
    [
        (RESET, [ours("fin")], "ended with fin, declared was rst"),
        (RESET, [closed(3, 6.0, how="rst")], "the client closed first"),
        (RESET, [ours("rst", unacknowledged=1)], "1 bytes were not acknowledged"),
        (RESET, [ours("rst", unacknowledged=None)], "nothing shows"),
        (HEAD_ALONE, [part(1), held()], "where a head alone was declared"),
        (BEGUN, [part(0), held()], "0 parts of the body were sent, declared were at least 1"),
        (BEGUN, [part(1), held(unacknowledged=5)], "5 bytes were not acknowledged"),
        (BEGUN, [part(1), ours("fin")], "was not held"),
        (TRICKLED, [part(1), held()], "1 parts of the body were sent, declared were at least 2"),
        (TRICKLED, [part(3), held(unacknowledged=6)], "6 bytes were not acknowledged"),
        (TRICKLED, [part(3, smallest_part=6), held(unacknowledged=7)], "7 bytes were not acknowledged"),
        (TRICKLED, [part(3, smallest_part=6), held(by="us", unacknowledged=6)], "6 bytes were not acknowledged"),
        (BEGUN, [part(3, smallest_part=6), held(unacknowledged=6)], "6 bytes were not acknowledged"),
        (
            LATE,
            [ANSWERED | {"first_byte": 6.0}, closed(3, 8.0)],
            "after 1.000 s, declared: not before 2.0",
        ),
        (LATE, [ANSWERED | {"first_byte": 6.999}, closed(3, 8.0)], "after 1.999 s, declared: not before 2.0"),
        (LATE, [ANSWERED | {"complete": False}, closed(3, 8.0)], "broke off"),
        (LATE, [ours("fin")], "was not held"),
        (REFUSED, [ours("rst")], "the port was not closed"),
        (REFUSED, [refusing(t=4.0), ours("rst")], "the port was not closed"),
        (REFUSED, [refusing("accepted"), ours("rst")], "still takes connections"),
        (REFUSED, [refusing("unclear"), ours("rst")], "nothing shows that the port is dead"),
        (REFUSED, [refusing(), ours("fin")], "ended with fin, declared was rst"),
        (REFUSED, [refusing(), closed(3, 6.0)], "the client closed first"),
        (FAILED_THEN_REFUSED, [refusing(), ours("fin")], "no answer of the fault"),
        (FAILED_THEN_REFUSED, [FAILED, asked(4, 5.3, conn=3), closed(4, 6.0, conn=3)], "the port was not closed"),
        (KILLED_RST, [killed()], "ended with fin, declared was rst"),
        (KILLED_RST, [ours("rst")], "was not killed"),
        (KILLED_RST, [killed(connect="accepted"), ours("rst")], "still takes connections after the kill"),
        (KILLED_RST, [killed(connect="unclear"), ours("rst")], "nothing shows that the port is dead"),
        (EXHAUSTED, [ours("rst"), killed(oom_kills=1)], "ended with rst, declared was fin"),
        (EXHAUSTED, [GROUPED, killed(oom_kills=0)], "nothing shows that the supplier's memory ran out"),
        (EXHAUSTED, [GROUPED, NO_ROOM, killed()], "nothing shows that the supplier's memory ran out"),
        (EXHAUSTED, [LIMITED, killed()], "nothing shows that the supplier's memory ran out"),
        (EXHAUSTED, [GROUPED, killed(oom_kills=1, by="other")], "was not killed"),
        (EXHAUSTED, [LIMITED, NO_ROOM, held(by="us")], "was not killed"),
    ],
)
def test_what_the_log_does_not_show_is_not_delivered(
    declared: Delivery, events: list[WireEvent], says: str
) -> None:
    facts = facts_of([asked(3, 5.0), *events], declared)
    assert facts.delivered is False
    assert says in (facts.why_not or "")


def test_a_refusing_port_hides_the_retries_as_a_kill_does() -> None:
    facts = facts_of([asked(3, 5.0), refusing(), ours("rst", 5.2)], REFUSED)
    assert facts.server_gone
    assert facts.retries is None
    assert facts.last_release_seconds == 5.2
    assert facts.open_at_end == 0


def test_a_request_that_a_refusing_supplier_holds_is_still_open() -> None:
    other = [asked(4, 5.0), closed(4, 60.0, by="us", held_seconds=55.0)]
    facts = facts_of([asked(3, 5.0), *other, refusing(), ours("rst")], REFUSED)
    assert facts.open_at_end == 1
    assert facts.last_release_seconds is None


@pytest.mark.parametrize(
    ("events", "memory"),
    [
        ([GROUPED, killed(oom_kills=1)], "kernel-kill"),
        ([LIMITED, NO_ROOM, killed()], "address-space"),
        ([GROUPED, killed(oom_kills=0)], None),
        ([killed()], None),
        ([], None),
    ],
)
def test_a_kernel_kill_is_claimed_where_the_kernel_counted_one(
    events: list[WireEvent], memory: str | None
) -> None:
    assert facts_of([asked(3, 5.0), *events], EXHAUSTED).memory == memory


@pytest.mark.parametrize("facts", [{"complete": False}, {"unfinished": True}])
def test_half_a_text_of_a_fault_is_an_unfinished_reply(
    facts: dict[str, Any],
) -> None:
    half = sent(3, 5.1, status=200, text="I will", parts=2, **facts)
    found = facts_of([asked(3, 5.0), half, held()], None)
    (reply,) = found.replies
    assert (reply.origin, reply.text, reply.unfinished, reply.after_fault) == ("fault", "I will", True, False)
    assert found.fault_texts == ()
    assert not found.healed
    assert found.steps_reached == 3


def test_a_whole_text_of_a_fault_is_accounted_for() -> None:
    found = facts_of([asked(3, 5.0), ANSWERED | {"text": "Sorry."}, closed(3, 8.0)], LATE)
    assert found.fault_texts == ("Sorry.",)
    assert found.replies == ()
