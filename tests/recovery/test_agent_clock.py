from pytest_regcase.records.wire import Delivery, WireEvent
from pytest_regcase.recovery.agent_clock import AgentClock, clock_of, in_agent_time
from pytest_regcase.recovery.wire_facts import wire_facts

REQUEST: WireEvent = {
    "t": 4.0,
    "event": "request",
    "conn": 1,
    "request": 1,
    "step": 1,
    "wire": "openai-chat",
    "streaming": False,
    "conversation": "sha256:a",
    "phase": "faulted",
}
SWITCH: WireEvent = {"t": 5.0, "event": "clock", "conn": 1, "scale": 200.0}
CLOSED: WireEvent = {
    "t": 8.0,
    "event": "closed",
    "conn": 1,
    "request": 1,
    "by": "peer",
    "how": "fin",
    "held_seconds": 4.0,
}


def test_it_is_real_time_up_to_the_switch_and_fast_from_there_on() -> None:
    clock = clock_of([REQUEST, SWITCH])
    assert clock == AgentClock(5.0, 200.0)
    assert [clock.at(t) for t in (0.0, 4.0, 5.0, 5.5, 8.0)] == [0.0, 4.0, 5.0, 105.0, 605.0]


def test_without_a_switch_it_is_real_time() -> None:
    assert clock_of([REQUEST, CLOSED]) == AgentClock(None, 1.0)
    assert AgentClock().at(7.5) == 7.5
    assert in_agent_time([REQUEST, CLOSED], AgentClock()) == (REQUEST, CLOSED)


def test_a_clock_that_did_not_reach_the_agent_is_none() -> None:
    assert clock_of([SWITCH | {"missed": "a static program"}]) == AgentClock()


def test_a_span_over_the_switch_is_real_before_it_and_fast_behind_it() -> None:
    request, switch, closed = in_agent_time([REQUEST, SWITCH, CLOSED], clock_of([SWITCH]))
    assert (request["t"], switch["t"], closed["t"]) == (4.0, 5.0, 605.0)
    # One second before the switch, three behind it.
    assert closed["held_seconds"] == 601.0


def test_the_facts_are_the_agents_time() -> None:
    events = [REQUEST, SWITCH, CLOSED]
    facts = wire_facts(
        in_agent_time(events, clock_of(events)),
        declares=lambda _wire, _streaming: Delivery(answer="none", then="held"),
        ended_by_us_at=None,
        last_step=None,
    )
    assert (facts.delivered, facts.first_fault_seconds, facts.last_release_seconds) == (True, 4.0, 605.0)


def test_a_late_answer_is_late_by_the_agents_clock() -> None:
    late = Delivery(answer="complete", status=200, then="answered", not_before_seconds=120)
    for first_byte, delivered in ((5.7, True), (5.5, False)):
        sent: WireEvent = {
            "t": 5.7,
            "event": "sent",
            "conn": 1,
            "request": 1,
            "from": "fault",
            "status": 200,
            "bytes": 10,
            "complete": True,
            "first_byte": first_byte,
        }
        ended: WireEvent = {"t": 5.8, "event": "closed", "conn": 1, "request": 1, "by": "peer", "how": "fin"}
        events = [REQUEST, SWITCH, sent, ended]
        facts = wire_facts(
            in_agent_time(events, clock_of(events)),
            declares=lambda _wire, _streaming: late,
            ended_by_us_at=None,
            last_step=None,
        )
        assert facts.delivered is delivered, facts.why_not
