"""When the agent stopped asking."""

import pytest

from pytest_regcase.records.attempt import Exit
from pytest_regcase.recovery.stopping import stop_of
from tests.recovery import observed_samples as sample


def test_the_stop_is_the_last_release_not_the_end_of_the_process() -> None:
    slow = sample.observed(ended_seconds=sample.FIRST_FAULT + 54.0)
    stop = stop_of(slow)
    assert stop.seconds == pytest.approx(0.2)
    assert (stop.watched_seconds, stop.how) == (54.0, "let-go")


def test_a_client_that_still_waits_when_we_end_it_has_not_stopped() -> None:
    facts = sample.wire(last_release_seconds=None, open_at_end=1)
    assert stop_of(sample.ended_by_us(wire=facts)) == (None, 90.0, "still-waiting")
    final = sample.ended_by_us(wire=facts, artefact=sample.trial())
    assert stop_of(final).how == "still-waiting"
    unsure = sample.ended_by_us(wire=sample.wire(last_release_seconds=None))
    assert stop_of(unsure).how == "still-waiting"


def test_an_agent_that_we_ended_has_stopped_only_if_its_final_status_was_written() -> None:
    assert stop_of(sample.ended_by_us()) == (None, 90.0, "ended-by-us")
    stop = stop_of(sample.ended_by_us(artefact=sample.trial()))
    assert stop.seconds == pytest.approx(0.2)
    assert stop.how == "let-go"


def test_once_the_supplier_is_gone_the_end_of_the_process_is_the_stop() -> None:
    gone = sample.wire(server_gone=True, retries=None)
    assert stop_of(sample.observed(wire=gone)) == (1.5, 1.5, "process-end")
    assert stop_of(sample.ended_by_us(wire=gone)) == (None, 90.0, "ended-by-us")
    assert stop_of(sample.ended_by_us(wire=gone, artefact=sample.trial())) == (None, 90.0, "not-seen")
    crashed = sample.observed(wire=sample.wire(last_release_seconds=None), exit=Exit(signal=11))
    assert stop_of(crashed) == (1.5, 1.5, "process-end")


def test_the_last_connect_is_the_stop_where_the_agents_own_process_noted_it() -> None:
    seen = sample.wire(server_gone=True, retries=2, refused_connects=2)
    slow = sample.observed(wire=seen, ended_seconds=sample.FIRST_FAULT + 54.0)
    stop = stop_of(slow)
    assert stop.seconds == pytest.approx(0.2)
    assert (stop.watched_seconds, stop.how) == (54.0, "let-go")
    assert stop_of(sample.ended_by_us(wire=seen)) == (None, 90.0, "ended-by-us")
    assert stop_of(sample.ended_by_us(wire=seen, artefact=sample.trial())).how == "let-go"


def test_without_a_faulted_request_nothing_is_known() -> None:
    assert stop_of(sample.observed(wire=sample.wire(first_fault_seconds=None))) == (None, None, "not-seen")
