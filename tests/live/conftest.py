"""A small project with one case whose fix can be claimed, and the commands to run over it."""

import subprocess
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_regcase.cli import main
from tests.plugin.gate_project import WITHOUT_OTHERS
from tests.plugin.warm_pytest import warm_pytest

PYPROJECT = """
[tool.regcase]
[tool.regcase.upstream]
base_url = "{upstream}"

[tool.regcase.agents.default]
command = ["python", "-m", "pytest_regcase.demo.agent", "--timeout", "{patience}",
           "--task", "{{task_file}}", "--out", "{{out_dir}}"]
env = {{ OPENAI_BASE_URL = "{{openai_base_url}}", OPENAI_API_KEY = "{{api_key}}" }}
output = "{{out_dir}}"
deadline_seconds = 60
revision_paths = ["agent.txt"]
"""
CASE = """
schema = 1
id = "silent-step-3"
title = "no answer at step 3"
[observation]
symptom = "the model answered step 2, then stopped responding at step 3"
source_event = "sweep-7/trial-12"
cause_status = "unknown"
failing_step = 3
[baseline]
failures = 3
trials = 10
kind = "all-attempts"
[task]
text_file = "recorded/task.txt"
work_tree = "recorded/work_tree"
[replies]
source = "script"
file = "recorded/script.jsonl"
[symptom_match]
termination = ["error", "cut-off"]
error_type = "[Tt]ime.?out"
no_reply = true
[[hypotheses]]
id = "auth"
simulations = ["auth-rejected-v1"]
[expected_recovery]
stop_within_seconds = 30
[handover]
owner = "eval-harness-oncall"
next_decision = "read the server's own logs"
[handover.rerun_rule]
max_failure_rate = "0.30"
"""
SCRIPT = """\
{"step": 1, "role": "assistant", "text": "Step 1.", "tool_calls": \
[{"id": "c1", "name": "bash", "arguments": "{\\"command\\": \\"cat notes.txt\\"}"}]}
{"step": 2, "role": "assistant", "text": "Step 2.", "tool_calls": \
[{"id": "c2", "name": "bash", "arguments": "{\\"command\\": \\"echo first >> notes.txt\\"}"}]}
"""


@dataclass(frozen=True)
class LiveProject:
    """A project folder and what to run in it."""

    root: Path

    def point_at(self, base_url: str, *, patience: float = 20.0) -> None:
        """Write the configuration with this upstream, and how long the agent waits for an answer of it.

        Only an upstream that stalls is to be met with little patience: to let go of an answer that is a little
        late makes the attempt no draw.
        """
        text = PYPROJECT.format(upstream=base_url, patience=patience)
        (self.root / "pyproject.toml").write_text(text)

    def regcase(self, *arguments: str) -> int:
        """Run a command; return its exit code."""
        with chdir(self.root):
            return main([*arguments])

    def pytest(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a nightly gate."""
        nightly = [*WITHOUT_OTHERS, "--regcase", "--regcase-profile=nightly", "-v"]
        with chdir(self.root):
            return warm_pytest().run([*nightly, *arguments])


@pytest.fixture
def project(tmp_path: Path) -> LiveProject:
    """A sealed case in a project whose agent is the good one."""
    recorded = tmp_path / "cases" / "silent-step-3" / "recorded"
    (recorded / "work_tree").mkdir(parents=True)
    (recorded / "work_tree" / "notes.txt").write_text("notes\n")
    (recorded / "task.txt").write_text("Add two lines to notes.txt, then submit.\n")
    (recorded / "script.jsonl").write_text(SCRIPT)
    (recorded.parent / "case.toml").write_text(CASE)
    (tmp_path / "agent.txt").write_text("revision 1\n")
    made = LiveProject(tmp_path)
    made.point_at("http://127.0.0.1:9/v1")
    assert made.regcase("seal", "silent-step-3") == 0
    return made
