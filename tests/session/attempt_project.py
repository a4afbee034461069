"""A small project on disk whose one case any demo agent can be run over, attempt by attempt."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_regcase.case_files import LoadedCase, load_case, load_simulations, seal_case
from pytest_regcase.config import Project, load_project
from pytest_regcase.records.attempt import AttemptPlan, AttemptRecord
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.session.attempt import run_attempt
from pytest_regcase.session.plan import plan_case

TIMING = ("--timeout", "5")
"""For faults that are answered at once: a time-out in the place of such an answer would show something else."""
PYPROJECT = """
[tool.regcase.agents.default]
command = {command}
output = "{{out_dir}}"
deadline_seconds = {deadline}
cap_seconds = 60
revision_paths = ["pyproject.toml"]
env.OPENAI_BASE_URL = "{{openai_base_url}}"
env.OPENAI_API_KEY = "{{api_key}}"
env.ANTHROPIC_BASE_URL = "{{anthropic_base_url}}"
env.ANTHROPIC_API_KEY = "{{api_key}}"
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
{work_tree}
[replies]
source = "script"
file = "recorded/script.jsonl"
[[hypotheses]]
id = "all"
simulations = {simulations}
[expected_recovery]
stop_within_seconds = {stop}
{expected}
[handover]
owner = "eval-harness-oncall"
next_decision = "read the server's own logs"
"""
SIMULATIONS = (
    "deadline-no-answer-v1",
    "oom-killed-v1",
    "oom-server-error-v1",
    "auth-rejected-v1",
    "hidden-rejection-v1",
)
COMMANDS = ("cat sums.py", "sed -i 's/a - b/a + b/' sums.py")
"""The second one fixes one bug of two, so the work tree holds a half patch at the fault."""


@dataclass(frozen=True)
class AttemptProject:
    """The project, its case, and a session to run attempts in."""

    project: Project
    loaded: LoadedCase
    snapshot: SessionSnapshot

    def plans(self) -> dict[str, AttemptPlan]:
        """The planned attempts by scenario."""
        planned = plan_case(self.project, self.loaded, load_simulations(self.project), self.snapshot)
        return {plan.key.scenario: plan for plan in planned}

    def run(self, scenario: str) -> AttemptRecord:
        """Run one attempt of a scenario."""
        simulation = load_simulations(self.project).get(scenario)
        return run_attempt(
            self.project, self.loaded, simulation, self.plans()[scenario], self.snapshot, try_number=0
        )

    def file_of(self, record: AttemptRecord, name: str) -> str:
        """Return the text of a file in the attempt's folder."""
        assert record.folder is not None
        return (self.project.root / record.folder / name).read_text()

    def wire_events(self, record: AttemptRecord) -> list[dict[str, Any]]:
        """Return the wire log of an attempt."""
        return [json.loads(line) for line in self.file_of(record, "wire.jsonl").splitlines()]


def make_project(
    root: Path,
    command: Sequence[str],
    *,
    stop_within_seconds: float = 6,
    deadline_seconds: float = 7,
    work_tree: bool = True,
    tool: str = "bash",
    simulations: Sequence[str] = SIMULATIONS,
    expected: str = "",
    places: str = "",
) -> AttemptProject:
    """Write the project and load it; `command` is without ``--task`` and ``--out``.

    `expected` are further lines of the expected recovery, `places` of the agent's configuration.
    """
    recorded = root / "cases" / "calc-step-3" / "recorded"
    recorded.mkdir(parents=True)
    if work_tree:
        (recorded / "work_tree").mkdir()
        (recorded / "work_tree" / "sums.py").write_text(
            "def add(a, b):\n    return a - b\n\n\ndef half(a):\n    return a\n"
        )
    (recorded / "task.txt").write_text("sums.py has two bugs. Fix both, then submit.\n")
    lines = [
        {
            "step": step,
            "role": "assistant",
            "text": f"Step {step} of the recorded trial.",
            "tool_calls": [{"id": f"call_{step}", "name": tool, "arguments": json.dumps({"command": shell})}],
        }
        for step, shell in enumerate(COMMANDS, start=1)
    ]
    (recorded / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    case_path = recorded.parent / "case.toml"
    case_path.write_text(
        CASE.format(
            work_tree='work_tree = "recorded/work_tree"' if work_tree else "",
            simulations=json.dumps(simulations),
            stop=stop_within_seconds,
            expected=expected,
        )
    )
    whole = [*command, "--task", "{task_file}", "--out", "{out_dir}"]
    (root / "pyproject.toml").write_text(
        PYPROJECT.format(command=json.dumps(whole), deadline=deadline_seconds) + places
    )
    seal_case(case_path)
    return AttemptProject(
        project=load_project(root),
        loaded=load_case(case_path),
        snapshot=SessionSnapshot(
            session_id="s1",
            folder=str(root / ".regcase" / "sessions" / "s1"),
            ledger_id="l1",
            agent_digests={"default": "sha256:" + "0" * 64},
        ),
    )
