"""A project whose one case, with two recorded replies, is run by the real mini-swe-agent command line."""

import json
from collections.abc import Sequence
from pathlib import Path

PYPROJECT = """
[tool.regcase.agents.default]
command = ["mini", "-y", "--exit-immediately", "-m", "openai/{{model}}", "-t", "{{task}}",
           "-o", "{{out_dir}}/trajectory.traj.json", "-c", "mini.yaml"{arguments}]
output = "{{out_dir}}"
closing_reply = {{ tool_calls = [
  {{ name = "bash", arguments = '{{"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}}' }} ] }}
revision_paths = ["pyproject.toml"]
{settings}
[tool.regcase.agents.default.env]
OPENAI_BASE_URL = "{{openai_base_url}}"
OPENAI_API_KEY = "{{api_key}}"
LITELLM_LOCAL_MODEL_COST_MAP = "True"
MSWEA_CONFIGURED = "true"
MSWEA_COST_TRACKING = "ignore_errors"
MSWEA_GLOBAL_CONFIG_DIR = "{{out_dir}}/mini-config"
{env}
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
simulations = {simulations}
[handover]
owner = "eval-harness-oncall"
next_decision = "read the server's own logs"
"""
COMMANDS = ("cat sums.py", "sed -i 's/a - b/a + b/' sums.py")
"""The fix is half done at the fault."""


def make_mini_project(
    root: Path, simulations: Sequence[str], *, settings: str, arguments: Sequence[str] = (), env: str = ""
) -> Path:
    """Write the project; returns its case file, which is not sealed.

    `settings` and `env` are lines of the agent's tables, `arguments` more words of its command.
    """
    recorded = root / "cases" / "calc-step-3" / "recorded"
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
    case = recorded.parent / "case.toml"
    case.write_text(CASE.format(simulations=json.dumps(list(simulations))))
    more = "".join(f", {json.dumps(word)}" for word in arguments)
    (root / "pyproject.toml").write_text(PYPROJECT.format(settings=settings, arguments=more, env=env))
    return case
