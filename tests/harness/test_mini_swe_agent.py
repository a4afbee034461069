"""The real mini-swe-agent command line under two simulations: what it does is known from recorded runs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PYPROJECT = """
[tool.regcase.agents.default]
command = ["mini", "-y", "--exit-immediately", "-m", "openai/{model}", "-t", "{task}",
           "-o", "{out_dir}/trajectory.traj.json", "-c", "mini.yaml", "-c", "model.model_kwargs.timeout=3"]
output = "{out_dir}"
closing_reply = { tool_calls = [
  { name = "bash", arguments = '{"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}' } ] }
deadline_seconds = 90
cap_seconds = 200
revision_paths = ["pyproject.toml"]
[tool.regcase.agents.default.env]
OPENAI_BASE_URL = "{openai_base_url}"
OPENAI_API_KEY = "{api_key}"
LITELLM_LOCAL_MODEL_COST_MAP = "True"
MSWEA_CONFIGURED = "true"
MSWEA_COST_TRACKING = "ignore_errors"
MSWEA_GLOBAL_CONFIG_DIR = "{out_dir}/mini-config"
MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT = "2"
"""
CASE = """
schema = 1
id = "calc-step-3"
title = "no reply at step 3"
[observation]
symptom = "the model answered step 2, then no reply at step 3 is recorded"
source_event = "sweep-9/trial-4"
cause_status = "unknown"
failing_step = 3
[task]
text_file = "recorded/task.txt"
work_tree = "recorded/work_tree"
[replies]
source = "script"
file = "recorded/script.jsonl"
[[hypotheses]]
id = "guesses"
simulations = ["auth-rejected-v1", "deadline-no-answer-v1"]
[handover]
owner = "eval-harness-oncall"
next_decision = "read the server's own logs"
"""
COMMANDS = ("cat sums.py", "sed -i 's/a - b/a + b/' sums.py")


@pytest.fixture
def mini_project(tmp_path: Path) -> Path:
    """A case with two recorded replies, its fix half done at the fault, and mini-swe-agent as the agent."""
    recorded = tmp_path / "cases" / "calc-step-3" / "recorded"
    (recorded / "work_tree").mkdir(parents=True)
    (recorded / "work_tree" / "sums.py").write_text("def add(a, b):\n    return a - b\n")
    (recorded / "task.txt").write_text("sums.py has two bugs. Fix both.\n")
    lines = [
        {
            "step": step,
            "role": "assistant",
            "text": f"Step {step}.",
            "tool_calls": [{"id": f"call_{step}", "name": "bash", "arguments": json.dumps({"command": command})}],
        }
        for step, command in enumerate(COMMANDS, start=1)
    ]
    (recorded / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (recorded.parent / "case.toml").write_text(CASE)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    return tmp_path


@pytest.mark.harness
@pytest.mark.slow
def test_the_command_line_with_two_tries(mini_project: Path, harness_python: str) -> None:
    regcase = str(Path(harness_python).parent / "regcase")
    subprocess.run([regcase, "seal", "calc-step-3"], cwd=mini_project, check=True, capture_output=True)
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "--regcase", "-v", "-p", "no:randomly", "-p", "no:rerunfailures"],
        cwd=mini_project,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    records = _records(mini_project)
    assert records["control"]["verdict"] == "finished", result.stdout

    rejected = records["auth-rejected-v1"]
    assert rejected["verdict"] == "recovered", rejected
    assert rejected["wire"]["delivered"] is True
    assert rejected["wire"]["retries"] == 0

    silent = records["deadline-no-answer-v1"]
    assert silent["wire"]["delivered"] is True
    assert silent["verdict"] == "not-recovered", silent
    assert _broken(silent) == ["max_retries"], silent["findings"]
    # Two tries of the harness, three requests of the client library each.
    assert silent["wire"]["retries"] == 5
    assert result.returncode == 1


def _broken(record: dict[str, Any]) -> list[str]:
    return [each["expectation"] for each in record["findings"] if each["status"] == "broken"]


def _records(project: Path) -> dict[str, dict[str, Any]]:
    from pytest_regcase.config import load_project
    from pytest_regcase.ledger.store import Ledger

    ledger = Ledger.open(load_project(project).ledger_url())
    try:
        return {row.record.scenario: row.record.to_plain() for row in ledger.rows()}
    finally:
        ledger.close()
