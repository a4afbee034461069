"""Attempts in compressed time: production time-outs as they are, judged in the agent's time."""

import importlib.util
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from pytest_regcase.agents import clock
from pytest_regcase.case_files import load_case, seal_case
from pytest_regcase.config import load_project
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan
from pytest_regcase.session.attempt import run_attempt
from tests.session.attempt_project import AttemptProject, make_project

NO_ANSWER = "deadline-no-answer-v1"
TIMES_OUT_AFTER_600 = ("python", "-m", "pytest_regcase.demo.agent", "--timeout", "600")
WAITS_FOR_EVER = ("python", "-m", "pytest_regcase.demo.behaviours", "no-client-time-out")


def make(
    root: Path, library: Path, command: tuple[str, ...], *, stop: float, deadline: float, scale: float = 2000
) -> AttemptProject:
    """A project whose agent lives in compressed time; the library lies there as if it had been built there."""
    made = make_project(root, command, stop_within_seconds=stop, deadline_seconds=1)
    pyproject = root / "pyproject.toml"
    budgets = f"deadline_seconds = {deadline}\ncap_seconds = 100000\ntime_scale = {scale}\n"
    text = pyproject.read_text().replace("deadline_seconds = 1\ncap_seconds = 60\n", budgets)
    pyproject.write_text(text)
    (root / ".regcase" / "clock").mkdir(parents=True)
    shutil.copy(library, root / ".regcase" / "clock")
    return AttemptProject(load_project(root), made.loaded, made.snapshot)


def test_ten_minutes_thrice_are_half_an_hour(tmp_path: Path, clock_library: Path) -> None:
    made = make(tmp_path, clock_library, TIMES_OUT_AFTER_600, stop=20000, deadline=40000)
    record = made.run(NO_ANSWER)
    assert (record.verdict, record.reason) == ("recovered", None), record.to_plain()
    assert (record.wire.delivered, record.wire.retries, record.wire.time_scale) == (True, 2, 2000)
    assert record.wire.stopped_seconds is not None
    assert record.wire.stopped_seconds > 1700
    # Both clocks stand in the record: its duration is real.
    assert record.duration_seconds < record.wire.stopped_seconds
    (stop,) = [each for each in record.findings if each.expectation == "stop_within_seconds"]
    assert stop.facts["stopped_seconds"] == pytest.approx(record.wire.stopped_seconds, abs=0.001)
    # The wire log is in real time, but for the switch nothing in it knows of another.
    events = made.wire_events(record)
    assert sum(each["event"] == "clock" for each in events) == 1
    assert max(each["t"] for each in events) < record.wire.stopped_seconds


def test_the_deadline_is_the_agents_time(tmp_path: Path, clock_library: Path) -> None:
    made = make(tmp_path, clock_library, WAITS_FOR_EVER, stop=6000, deadline=7200)
    record = made.run(NO_ANSWER)
    assert record.exit.ended_by == "deadline"
    assert [each.expectation for each in record.broken] == ["stop_within_seconds"]
    says = record.broken[0].says
    assert says.startswith("still waiting for an answer "), says
    # No less than two hours; on a busy machine more.
    hours = re.search(r" s \((\d+) h ", says)
    assert hours is not None, says
    assert int(hours[1]) >= 2


def test_the_control_has_the_library_and_real_time(tmp_path: Path, clock_library: Path) -> None:
    made = make(tmp_path, clock_library, TIMES_OUT_AFTER_600, stop=20000, deadline=40000)
    record = made.run("control")
    assert (record.verdict, record.wire.time_scale) == ("finished", 1)
    assert [each for each in made.wire_events(record) if each["event"] == "clock"] == []


def test_an_agent_that_it_does_not_reach_proves_nothing(tmp_path: Path, clock_library: Path) -> None:
    made = make(
        tmp_path,
        clock_library,
        ("env", "-u", "LD_PRELOAD", *WAITS_FOR_EVER),
        stop=20000,
        deadline=40000,
        scale=2,
    )
    record = made.run(NO_ANSWER)
    assert (record.verdict, record.reason) == ("inconclusive", "machinery-broke")
    assert record.says is not None
    assert record.says.startswith("time_scale = 2 does not reach the agent: the process that asks us (")
    assert record.wire.time_scale == 1


SHOWS_ITS_ENVIRONMENT = """
import json, os, sys
out = sys.argv[sys.argv.index("--out") + 1]
json.dump(dict(os.environ), open(os.path.join(out, "environment.json"), "w"))
"""


def test_the_agent_gets_the_clock_and_its_clean_up_does_not(tmp_path: Path, clock_library: Path) -> None:
    script = tmp_path / "show.py"
    script.write_text(SHOWS_ITS_ENVIRONMENT)
    made = make(tmp_path / "project", clock_library, ("python", str(script)), stop=20000, deadline=40000)
    pyproject = tmp_path / "project" / "pyproject.toml"
    cleanup = 'cleanup = ["sh", "-c", "env > {out_dir}/cleanup.txt"]\n'
    pyproject.write_text(pyproject.read_text().replace("time_scale", cleanup + "time_scale"))
    record = AttemptProject(load_project(tmp_path / "project"), made.loaded, made.snapshot).run("control")
    seen = json.loads(made.file_of(record, "out/environment.json"))
    assert seen["LD_PRELOAD"] == str(tmp_path / "project" / ".regcase" / "clock" / clock_library.name)
    assert os.path.samefile(seen["REGCASE_CLOCK"], made.project.root / str(record.folder) / "clock.state")
    assert "LD_PRELOAD" not in made.file_of(record, "out/cleanup.txt")


def test_without_a_compiler_the_attempt_says_what_to_install(
    tmp_path: Path, clock_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(tmp_path, clock_library, TIMES_OUT_AFTER_600, stop=20000, deadline=40000)
    shutil.rmtree(tmp_path / ".regcase" / "clock")
    monkeypatch.setattr(clock, "COMPILERS", ())
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    record = made.run(NO_ANSWER)
    assert (record.verdict, record.reason) == ("inconclusive", "machinery-broke")
    assert "pip install 'pytest-regcase[clock]'" in str(record.says)


UPSTREAM = """
[tool.regcase.upstream]
base_url = "http://127.0.0.1:9/v1"
"""


def with_upstream(made: AttemptProject) -> AttemptProject:
    """The same, with a real supplier that nobody runs; it also answers the case."""
    pyproject = made.project.root / "pyproject.toml"
    pyproject.write_text(pyproject.read_text() + UPSTREAM)
    path = made.loaded.path
    text = path.read_text().replace('source = "script"\nfile = "recorded/script.jsonl"', 'source = "pass-through"')
    path.write_text(text)
    seal_case(path)
    snapshot = made.snapshot.model_copy(update={"live_new": 1})
    return AttemptProject(load_project(made.project.root), load_case(path), snapshot)


def test_a_live_attempt_has_real_time(tmp_path: Path, clock_library: Path) -> None:
    script = tmp_path / "show.py"
    script.write_text(SHOWS_ITS_ENVIRONMENT)
    made = with_upstream(
        make(tmp_path / "project", clock_library, ("python", str(script)), stop=20000, deadline=40000)
    )
    key = AttemptKey(case_id=made.loaded.id, agent="default", scenario="live")
    plan = AttemptPlan(key=key, kind="live")
    record = run_attempt(made.project, made.loaded, None, plan, made.snapshot, try_number=0)
    assert record.wire.time_scale == 1
    seen = json.loads(made.file_of(record, "out/environment.json"))
    assert not {"LD_PRELOAD", "REGCASE_CLOCK"} & set(seen)


def test_a_real_supplier_is_never_asked_in_compressed_time(tmp_path: Path, clock_library: Path) -> None:
    made = with_upstream(make(tmp_path, clock_library, TIMES_OUT_AFTER_600, stop=20000, deadline=40000))
    record = made.run(NO_ANSWER)
    assert (record.verdict, record.reason) == ("inconclusive", "machinery-broke")
    assert record.says == (
        "Couldn't run the agent 'default' in compressed time (time_scale = 2000): the real supplier answers this"
        " case, in real time.\nName an agent with time_scale = 1 in the case."
    )
