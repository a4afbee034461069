"""Every behaviour of the demo under every built-in simulation: the exact set of findings that break."""

from pathlib import Path

import pytest

from tests.demo.expected_findings import EMPTY, EXPECTED, KILLED, NO_ANSWER, REJECTED, SIMULATIONS
from tests.session.attempt_project import TIMING, make_project

STATUS = {REJECTED: 401, EMPTY: 200}


def command_of(behaviour: str) -> list[str]:
    if behaviour == "good":
        return ["python", "-m", "pytest_regcase.demo.agent", *TIMING]
    return ["python", "-m", "pytest_regcase.demo.behaviours", behaviour, *TIMING]


@pytest.mark.slow
@pytest.mark.parametrize("simulation", SIMULATIONS)
@pytest.mark.parametrize("behaviour", list(EXPECTED))
def test_exactly_the_written_findings_break(tmp_path: Path, behaviour: str, simulation: str) -> None:
    made = make_project(tmp_path, command_of(behaviour))
    record = made.run(simulation)
    expected = EXPECTED[behaviour][simulation]
    assert {each.expectation for each in record.broken} == expected.broken, record.to_plain()
    assert record.verdict == ("not-recovered" if expected.broken else "recovered"), record.says
    # The fault's delivery stands in the record, and in the wire log that it was read from.
    assert record.wire.delivered is True
    assert record.wire.faulted_requests >= 1
    assert record.wire.first_fault_seconds is not None
    sent = [each for each in made.wire_events(record) if each["event"] == "sent" and each["from"] == "fault"]
    if simulation in (NO_ANSWER, KILLED):
        assert sent == []
    else:
        assert {each["status"] for each in sent} == {STATUS.get(simulation, 500)}
    killed = [each for each in made.wire_events(record) if each["event"] == "killed"]
    assert bool(killed) == (simulation == KILLED)


def test_a_client_without_a_time_out_sends_one_request_and_has_not_stopped(tmp_path: Path) -> None:
    made = make_project(tmp_path, command_of("no-client-time-out"))
    record = made.run(NO_ANSWER)
    assert [each.expectation for each in record.broken] == ["stop_within_seconds"]
    assert record.wire.faulted_requests == 1
    assert record.wire.retries == 0
    assert record.wire.stopped_seconds is None
    assert record.exit.ended_by == "deadline"
