"""What counts as a retry, and what as the main conversation, in attempts that make it hard to tell."""

from pathlib import Path

import pytest

from pytest_regcase.case_files import load_case, seal_case
from pytest_regcase.config import load_project
from pytest_regcase.records.attempt import AttemptRecord
from tests.conftest import REPOSITORY
from tests.session.attempt_project import AttemptProject, make_project
from tests.session.test_compressed_time import make as make_compressed

PATIENT = ("--timeout", "600")
"""Nothing is silent here, and a short time-out would only meet an answer that is late, for one request more. In
compressed time, where it is a fraction of a second, it would come between the clock's switch and the kill."""
GOOD = ("python", "-m", "pytest_regcase.demo.agent", *PATIENT)
PARALLEL = Path(__file__).with_name("parallel_agent.py")
HEALS = """\
schema = 1
id = "heals-after-{lasts}-v1"
hypothesis = "resource-exhaustion"
title = "so many requests are answered with 500, the next one is served"
cause_status = "hypothesized"
source_event = "fixture-run"
[fault]
kind = "server_out_of_memory"
lasts = {lasts}
"""
AFTER = """\
{"step": 3, "role": "assistant", "text": "Again.", "tool_calls": [\
{"id": "a1", "name": "bash", "arguments": "{\\"command\\": \\"cat sums.py\\"}"}]}
{"step": 4, "role": "assistant", "text": "Once more.", "tool_calls": [\
{"id": "a2", "name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}]}
"""


def healing_project(root: Path, lasts: int) -> AttemptProject:
    """An agent that never gives up, a fault that ends, and work that goes on after it."""
    name = f"heals-after-{lasts}-v1"
    command = ("python", "-m", "pytest_regcase.demo.behaviours", "retry-for-ever", "--timeout", "5")
    made = make_project(root, command, simulations=(name,), stop_within_seconds=40, deadline_seconds=50)
    (root / "fixtures").mkdir()
    (root / "fixtures" / f"{name}.toml").write_text(HEALS.format(lasts=lasts))
    case = made.loaded.path
    (case.parent / "recorded" / "after.jsonl").write_text(AFTER)
    script = 'file = "recorded/script.jsonl"'
    case.write_text(case.read_text().replace(script, f'{script}\nafter_fault = "recorded/after.jsonl"'))
    seal_case(case)
    return AttemptProject(load_project(root), load_case(case), made.snapshot)


@pytest.mark.parametrize(("lasts", "verdict"), [(3, "recovered"), (4, "not-recovered")])
def test_retries_end_with_the_answer_that_heals(tmp_path: Path, lasts: int, verdict: str) -> None:
    record = healing_project(tmp_path, lasts).run(f"heals-after-{lasts}-v1")
    assert record.wire.delivered is True
    # The first one is none; the healthy one is the last; the two steps and the end that follow are work.
    assert (record.wire.faulted_requests, record.wire.retries) == (lasts, lasts)
    assert record.wire.requests_a_step == (1, 1, lasts + 1, 1, 1)
    assert (record.verdict, record.exit.code) == (verdict, 0), record.says
    broken = [each.expectation for each in record.broken]
    assert broken == ([] if verdict == "recovered" else ["max_retries"])


def statuses(record: AttemptRecord) -> dict[str, str]:
    return {each.expectation: each.status for each in record.findings}


def test_two_conversations_at_once_are_told_apart(tmp_path: Path) -> None:
    simulation = "oom-server-error-v1"
    alone = make_project(tmp_path / "alone", GOOD)
    both = make_project(tmp_path / "both", ("python", str(PARALLEL), *PATIENT))
    for scenario in ("control", simulation):
        one, two = alone.run(scenario), both.run(scenario)
        # Step, fault, retries and verdict are those of the main conversation, as if nobody stood beside it.
        assert (two.verdict, statuses(two)) == (one.verdict, statuses(one)), two.says
        assert two.wire.requests_a_step == one.wire.requests_a_step
        assert (two.wire.faulted_requests, two.wire.retries) == (one.wire.faulted_requests, one.wire.retries)
        assert two.wire.differences == ()
        # The helper asks twice at both later steps, and is answered every time.
        assert (one.wire.side_calls, two.wire.side_calls) == (0, 4)
        assert two.wire.requests == one.wire.requests + 4
        events = both.wire_events(two)
        side = {each["request"] for each in events if each.get("side_call")}
        sent = [each for each in events if each["event"] == "sent" and each["request"] in side]
        assert [(each["from"], each["status"], each["text"]) for each in sent] == [("filler", 200, "OK")] * 4
    assert two.wire.faulted_requests == 3


RUN_GOOD = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from pytest_regcase.demo.agent import main
sys.exit(main())
"""
KILLED = "oom-killed-v1"


def test_connects_to_a_dead_port_are_on_the_agents_clock(tmp_path: Path, clock_library: Path) -> None:
    record = make_compressed(tmp_path, clock_library, GOOD, stop=20000, deadline=40000).run(KILLED)
    assert (record.verdict, record.wire.time_scale) == ("recovered", 2000), record.says
    assert (record.wire.retries, record.wire.refused_connects) == (2, 2)
    # It paused for 0.25 and 0.5 s of its time between them: less than a thousandth of that in ours.
    assert record.wire.stopped_seconds is not None
    assert record.wire.stopped_seconds >= 0.75


def test_connects_behind_pythons_back_are_not_observable(tmp_path: Path) -> None:
    # Without its environment a Python notes nothing, as an agent in another language would.
    command = ("python", "-E", "-c", RUN_GOOD, str(REPOSITORY), *PATIENT)
    record = make_project(tmp_path, command).run(KILLED)
    assert (record.verdict, record.wire.delivered) == ("recovered", True), record.says
    assert (record.wire.retries, record.wire.refused_connects) == (None, None)
    unseen = [each.expectation for each in record.findings if each.status == "not-observable"]
    assert unseen == ["max_retries"]
