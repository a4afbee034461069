"""Every behaviour of the demo under eight simulations or four: the exact set of findings that break.

The good agent is run under the whole catalogue elsewhere.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_regcase.demo.behaviours import BEHAVIOURS
from tests.demo.expected_findings import (
    EMPTY,
    ENGINE_DEAD,
    EXPECTED,
    HEALS,
    KILLED,
    MID_STREAM,
    NO_ANSWER,
    REJECTED,
    SERVER_ERROR,
    SIMULATIONS,
)
from tests.session.attempt_project import make_project

WAITED_FOR = (NO_ANSWER, MID_STREAM, HEALS)
"""Faults that the agent's own time-out ends. All others it must meet as they are: a time-out in the place of a
rejection breaks something else."""
AT_ONCE = 8
"""Most of an attempt is waiting."""
SENT: dict[str, set[int]] = {
    NO_ANSWER: set(),
    HEALS: set(),
    KILLED: set(),
    SERVER_ERROR: {500},
    ENGINE_DEAD: {500},
    REJECTED: {401},
    EMPTY: {200},
    MID_STREAM: {200},
}
"""The statuses that the fault sends."""


def command_of(behaviour: str, timeout: str) -> list[str]:
    return ["python", "-m", "pytest_regcase.demo.behaviours", behaviour, "--timeout", timeout]


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", list(BEHAVIOURS))
def test_exactly_the_written_findings_break(tmp_path: Path, behaviour: str) -> None:
    simulations = [each for each in SIMULATIONS if each in EXPECTED[behaviour]]
    short, long = (
        make_project(
            tmp_path / timeout,
            command_of(behaviour, timeout),
            simulations=simulations,
            stop_within_seconds=12,
            deadline_seconds=13,
            expected="no_repeated_side_effect = true",
        )
        for timeout in ("1", "10")
    )
    made = {each: short if each in WAITED_FOR else long for each in simulations}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        attempts = pool.map(lambda each: made[each].run(each), simulations)
        records = dict(zip(simulations, attempts, strict=True))
    broken = {name: {each.expectation for each in record.broken} for name, record in records.items()}
    assert broken == {name: expected.broken for name, expected in EXPECTED[behaviour].items()}
    for simulation, record in records.items():
        assert record.verdict == ("not-recovered" if broken[simulation] else "recovered"), record.says
        # The fault's delivery stands in the record, and in the wire log that it was read from.
        assert record.wire.delivered is True
        assert record.wire.faulted_requests >= 1
        assert record.wire.first_fault_seconds is not None
        assert record.wire.differences == ()
        events = made[simulation].wire_events(record)
        sent = [each for each in events if each["event"] == "sent" and each["from"] == "fault"]
        assert {each["status"] for each in sent} == SENT[simulation]
        what = {each["event"] for each in events}
        assert ("killed" in what, "refusing" in what) == (simulation == KILLED, simulation == ENGINE_DEAD)
        # The port is dead: only the agent's own process can tell how often it was asked.
        gone = simulation in (KILLED, ENGINE_DEAD)
        assert record.wire.retries is not None
        assert record.wire.refused_connects == (record.wire.retries if gone else None)
        if not behaviour.startswith("retry-"):
            assert record.wire.retries <= 2
    one = records[NO_ANSWER]
    if behaviour == "no-client-time-out":
        assert (one.wire.faulted_requests, one.wire.retries, one.wire.stopped_seconds) == (1, 0, None)
        assert one.exit.ended_by == "deadline"
