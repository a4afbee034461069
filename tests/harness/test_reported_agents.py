"""Public agents, run by our runner: they do what was reported of them, and are judged by what they do."""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_regcase.config import load_project
from pytest_regcase.records.attempt import AttemptRecord
from tests.conftest import REPOSITORY, need_harness
from tests.harness.reported_agents import REPORTED, SIMULATIONS, Cell
from tests.session.attempt_project import AttemptProject, make_project

AT_ONCE = 8
"""Most of an attempt is waiting."""
RUN = Path(__file__).with_name("warm_run.py")
SETTINGS = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "MSWEA_CONFIGURED": "true",
    "MSWEA_COST_TRACKING": "ignore_errors",
    "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "2",
    "MSWEA_SILENT_STARTUP": "1",
    # Its own setting against the traceback in a box, which takes seconds to draw.
    "TYPER_STANDARD_TRACEBACK": "1",
}
PYPROJECT = """
[tool.regcase.agents.default]
command = {command}
{places}
deadline_seconds = 70
cap_seconds = 150
revision_paths = ["pyproject.toml"]
[tool.regcase.agents.default.env]
OPENAI_BASE_URL = "{{openai_base_url}}"
OPENAI_API_KEY = "{{api_key}}"
"""
MINI = ("-y", "--exit-immediately", "-m", "openai/{model}", "-t", "{task}", "-o", "{out_dir}/t.traj.json")
MINI_OPTIONS = ("-c", "mini.yaml", "-c", "model.model_kwargs.timeout=3")
MINI_PLACES = """output = "{out_dir}"
closing_reply = { tool_calls = [
  { name = "bash", arguments = '{"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}' } ] }"""
LOOP = ("--task", "{task_file}", "--out", "{out_dir}")
LOOP_PLACES = 'submission = "{out_dir}/answer.json#/patch"\nanswer = "{out_dir}/answer.json#/answer"'


@pytest.fixture
def warm(harness_python: str, tmp_path: Path) -> Iterator[str]:
    """The socket behind which the agents are ready; their libraries are imported once."""
    for each in ("pydantic_ai", "agents"):
        need_harness(each)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/s"
        kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        log = tmp_path / "warm.txt"
        with log.open("w") as stderr:
            process = subprocess.Popen(
                [harness_python, "-m", "tests.harness.warm_start", path],
                cwd=REPOSITORY,
                env={**kept, **SETTINGS, "HOME": folder, "MSWEA_GLOBAL_CONFIG_DIR": folder},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n", log.read_text()
            yield path
            process.stdin.close()


def project_of(agent: str, root: Path, socket: str) -> AttemptProject:
    """The case that the recorded runs were made on, with that agent."""
    made = make_project(root, ("unused",), simulations=SIMULATIONS, stop_within_seconds=60)
    words, places = ((*MINI, *MINI_OPTIONS), MINI_PLACES) if agent == "mini-swe-agent" else (LOOP, LOOP_PLACES)
    command = json.dumps(["python", str(RUN), socket, agent, *words])
    settings = "".join(f'{name} = "{value}"\n' for name, value in SETTINGS.items())
    (root / "pyproject.toml").write_text(PYPROJECT.format(command=command, places=places) + settings)
    return AttemptProject(load_project(root), made.loaded, made.snapshot)


def seen(made: AttemptProject, record: AttemptRecord, why: str) -> Cell:
    """What an attempt shows, in the words of the table."""
    last = made.file_of(record, "stderr.txt").strip().rpartition("\n")[2]
    raised = re.match(r"([\w.]*(?:Error|Timeout|Behavior))(: |$)", last)
    return Cell(
        requests=record.wire.faulted_requests,
        connects=record.wire.refused_connects,
        by_the_client=record.wire.client_retries or 0,
        raises=raised[1] if raised else None,
        code=-1 if record.exit.code is None else record.exit.code,
        broken=frozenset(each.expectation for each in record.broken),
        why=why,
    )


@pytest.mark.harness
@pytest.mark.slow
def test_public_agents_do_what_was_reported_and_are_judged_by_it(warm: str, tmp_path: Path) -> None:
    projects = {agent: project_of(agent, tmp_path / agent, warm) for agent in REPORTED}
    wanted = [(agent, scenario) for agent in REPORTED for scenario in ("control", *SIMULATIONS)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = list(pool.map(lambda each: projects[each[0]].run(each[1]), wanted))
    records = dict(zip(wanted, made, strict=True))

    controls = {agent: records[agent, "control"] for agent in REPORTED}
    assert {agent: record.verdict for agent, record in controls.items()} == dict.fromkeys(REPORTED, "finished")
    table = {
        agent: {name: seen(projects[agent], records[agent, name], cell.why) for name, cell in row.items()}
        for agent, row in REPORTED.items()
    }
    assert table == REPORTED

    for (agent, scenario), record in records.items():
        if scenario == "control":
            continue
        cell = REPORTED[agent][scenario]
        assert record.verdict == ("not-recovered" if cell.broken else "recovered"), (agent, record.says)
        # Every agent ends by itself, and what it does is counted whole: requests, or connects to the dead port.
        assert record.wire.delivered is True
        assert record.exit.ended_by is None
        assert record.wire.retries == cell.requests - 1 + (cell.connects or 0)
        assert record.wire.requests_a_step == (1, 1, cell.requests)
        assert record.wire.side_calls == 0
        assert not any(each.status == "not-observable" for each in record.findings), record.findings
