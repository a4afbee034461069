"""Connects that nobody accepted, from what the agent's process noted."""

from pytest_regcase.records.wire import Delivery, WireEvent
from pytest_regcase.recovery.connects import refused_connects
from pytest_regcase.recovery.wire_facts import wire_facts
from tests.recovery.test_wire_facts import PREFIX, asked, closed, sent

ACCEPTED: list[WireEvent] = [
    {"t": t, "event": "accept", "conn": n} for n, t in enumerate((0.9, 1.9, 4.9), start=1)
]
NOTED = (0.8, 1.8, 4.8)
"""The connects of those three."""


def test_what_is_beyond_the_accepted_ones_was_refused() -> None:
    assert refused_connects((*NOTED, 5.5, 7.0), ACCEPTED, 5.0) == (5.5, 7.0)
    assert refused_connects(NOTED, ACCEPTED, 5.0) == ()
    # An accept may be logged after a connect that came later: the number counts, not the order.
    late: list[WireEvent] = [*ACCEPTED, {"t": 5.2, "event": "accept", "conn": 4}]
    assert refused_connects((*NOTED, 5.1, 7.0, 6.0), late, 5.0) == (6.0, 7.0)


def test_an_agent_that_connects_behind_our_back_is_not_counted() -> None:
    assert refused_connects(None, ACCEPTED, 5.0) is None
    assert refused_connects((4.8, 5.5, 6.0, 7.0, 8.0), ACCEPTED, 5.0) is None
    # As many in all, but not up to the fault.
    assert refused_connects((0.8, 1.8, 5.5), ACCEPTED, 5.0) is None


def test_without_a_fault_or_a_connection_nothing_is_said() -> None:
    assert refused_connects(NOTED, ACCEPTED, None) is None
    assert refused_connects(NOTED, [], 5.0) is None


KILLED: list[WireEvent] = [
    *ACCEPTED,
    *PREFIX,
    asked(3, 5.0),
    {"t": 5.2, "event": "killed", "by": "fault", "connect": "refused"},
]


def test_after_a_kill_the_connects_are_the_retries_and_the_last_one_is_the_stop() -> None:
    declared = Delivery(answer="none", then="killed")
    facts = wire_facts(
        KILLED, declares=lambda *_: declared, ended_by_us_at=None, last_step=2, connects=(*NOTED, 5.5, 7.0)
    )
    assert facts.delivered is True
    assert (facts.refused_connects, facts.retries, facts.last_release_seconds) == (2, 2, 7.0)
    silent = wire_facts(KILLED, declares=lambda *_: declared, ended_by_us_at=None, last_step=2, connects=NOTED)
    assert (silent.refused_connects, silent.retries, silent.last_release_seconds) == (0, 0, 5.2)


def test_requests_that_were_served_before_the_port_closed_count_with_the_connects() -> None:
    events = [*KILLED[:-1], sent(3, 5.1), closed(3, 5.2), asked(4, 5.4), sent(4, 5.5), closed(4, 5.6)]
    gone: WireEvent = {"t": 5.6, "event": "refusing", "conn": 4, "connect": "refused"}
    accepted: WireEvent = {"t": 5.35, "event": "accept", "conn": 4}
    facts = wire_facts(
        [accepted, *events, gone],
        declares=None,
        ended_by_us_at=None,
        last_step=2,
        connects=(*NOTED, 5.3, 6.0, 7.0),
    )
    assert (facts.retries, facts.refused_connects) == (3, 2)


def test_a_supplier_that_is_there_counts_itself() -> None:
    facts = wire_facts(KILLED[:-1], declares=None, ended_by_us_at=None, last_step=2, connects=(*NOTED, 6.0))
    assert (facts.retries, facts.refused_connects) == (0, None)
