"""The supplier makes the agent's clock fast, once it is shown that whoever asks has it."""

import http.client
import json
import os
import subprocess
import sys
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.agents.clock import variables
from pytest_regcase.recovery.agent_clock import clock_of, in_agent_time
from pytest_regcase.recovery.wire_facts import wire_facts
from pytest_regcase.supplier.faults.silences import SlowAnswer, SlowSettings
from pytest_regcase.supplier.spec import ClockSpec, SupplierSpec
from tests.supplier.serving import LIMIT_SECONDS, TWO_STEPS, Serving, fault

SCALE = 36_000.0
ASK = [{"role": "user", "content": "Fix it."}]
# Asks twice, with a time-out of an hour, and says what came and what time it was then.
CLIENT = """
import http.client, json, sys, time
port, path, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Fix it."}]})
for _ in range(count):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3600 * 24)
    try:
        connection.request("POST", path + "/chat/completions", body)
        answer = connection.getresponse()
        answer.read()
        said = [answer.status, answer.headers["Retry-After"]]
    except TimeoutError:
        said = ["timed out", None]
    print(json.dumps([*said, time.time()]), flush=True)
    connection.close()
"""


def serve(library: Path, folder: Path, **spec: Any) -> Serving:
    clock = ClockSpec(str(folder / "clock.state"), SCALE, str(library))
    return Serving(folder, clock=clock, **spec)


def ask(serving: Serving, library: Path, count: int, *before: str) -> list[list[Any]]:
    """Ask from a process that has the clock, unless what stands `before` takes it away."""
    own = variables(library, serving.log.parent / "clock.state", {})
    done = subprocess.run(
        [*before, sys.executable, "-c", CLIENT, str(serving.port), serving.path, str(count)],
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS * 3,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_client_that_has_it_times_out_by_its_own_clock(clock_library: Path, tmp_path: Path) -> None:
    with serve(clock_library, tmp_path, fault=fault("no_answer", at_step=1)) as serving:
        said = ask(serving, clock_library, 2)
        serving.wait_logged("closed", 2)
        serving.wait_said("clock-switched")
        events = serving.stop()
    assert sum(each["say"] == "clock-switched" for each in serving.said) == 1
    assert [each[0] for each in said] == ["timed out", "timed out"]
    (switch,) = [each for each in events if each["event"] == "clock"]
    assert (switch["scale"], switch["conn"], "missed" in switch) == (SCALE, 1, False)
    first = next(each for each in events if each["event"] == "request")
    assert first["t"] <= switch["t"]
    clock = clock_of(events)
    held = [each["held_seconds"] for each in in_agent_time(events, clock) if each["event"] == "closed"]
    # Not the whole day: what passes until we have read the request counts for the client, and not for us.
    assert all(each > 3600 for each in held), held


def test_a_late_answer_is_as_late_as_declared_by_the_agents_clock(clock_library: Path, tmp_path: Path) -> None:
    slow = fault("slow_answer", at_step=1, settings={"seconds": 7200.0})
    with serve(clock_library, tmp_path, fault=slow) as serving:
        said = ask(serving, clock_library, 1)
        events = serving.stop()
    assert said[0][0] == 200
    facts = wire_facts(
        in_agent_time(events, clock_of(events)),
        declares=SlowAnswer(SlowSettings(seconds=7200)).declares,
        ended_by_us_at=None,
        last_step=None,
    )
    assert facts.delivered, facts.why_not


def test_a_date_to_wait_for_is_on_the_agents_calendar(clock_library: Path, tmp_path: Path) -> None:
    settings = {"retry_after": "date", "wait_seconds": 3600.0 * 24 * 365}
    with serve(clock_library, tmp_path, fault=fault("rate_limited", at_step=1, settings=settings)) as serving:
        said = ask(serving, clock_library, 3)
    for status, header, now in said:
        assert status == 429
        wanted = parsedate_to_datetime(header).timestamp()
        # Not after a year from when it came; a real date would fall behind by hours from answer to answer.
        assert wanted <= now + 3600 * 24 * 365 + 1
    dates = [parsedate_to_datetime(each[1]).timestamp() for each in said]
    assert dates == sorted(dates)
    assert dates[0] < dates[-1]


@pytest.mark.parametrize("takes_it_away", [("env", "-u", "LD_PRELOAD"), ("env", "LD_PRELOAD=")])
def test_a_client_without_it_is_told_and_no_clock_is_switched(
    clock_library: Path, tmp_path: Path, takes_it_away: tuple[str, ...]
) -> None:
    with serve(clock_library, tmp_path, fault=fault("key_rejected", at_step=1)) as serving:
        ask(serving, clock_library, 2, *takes_it_away)
        serving.wait_said("clock-missed")
        events = serving.stop()
    (told,) = [each["text"] for each in serving.said if each["say"] == "clock-missed"]
    name = Path(sys.executable).name
    missed = (
        f"the process that asks us ({name}) did not load it; it is a static program, or was started without the"
        " variables LD_PRELOAD and REGCASE_CLOCK that we set"
    )
    assert told == f"time_scale = 36000 does not reach the agent: {missed}"
    assert [each["missed"] for each in events if each["event"] == "clock"] == [missed]
    assert clock_of(events).fast_from is None


def test_before_the_fault_and_without_one_no_clock_is_switched(clock_library: Path, tmp_path: Path) -> None:
    with serve(clock_library, tmp_path, lines=TWO_STEPS, failing_step=3) as serving:
        connection = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=LIMIT_SECONDS)
        connection.request("POST", f"{serving.path}/chat/completions", json.dumps({"model": "m", "messages": ASK}))
        assert connection.getresponse().status == 200
        connection.close()
        events = serving.stop()
    assert [each for each in events if each["event"] == "clock"] == []


def test_the_specification_keeps_the_clock(tmp_path: Path) -> None:
    spec = SupplierSpec(wire_log="w", t0=1.0, token="t", clock=ClockSpec("s", 200.0, "l"))
    assert SupplierSpec.from_json(spec.to_json()) == spec
