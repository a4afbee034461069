"""A small project that runs the demo agent for real."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.gate_project import GateProject

AGENT = """\
[tool.regcase]
[tool.regcase.agents.default]
command = ["python", "-m", "pytest_regcase.demo.{module}", {words}"--task={{task_file}}", "--out={{out_dir}}"]
env = {{ OPENAI_BASE_URL = "{{openai_base_url}}", OPENAI_API_KEY = "{{api_key}}" }}
output = "{{out_dir}}"
"""

REPLIES = """
[task]
text_file = "recorded/task.txt"
work_tree = "recorded/work_tree"

[replies]
source = "script"
file = "recorded/script.jsonl"

[symptom_match]
termination = ["error", "cut-off"]
no_reply = true
"""

EDIT = "sed -i s/1/2/ code.py"


def say(step: int, tool: str, **arguments: str) -> dict[str, Any]:
    """One reply that calls one tool."""
    call = {"id": f"call_{step}", "name": tool, "arguments": json.dumps(arguments)}
    return {"step": step, "role": "assistant", "text": f"step {step}", "tool_calls": [call]}


class RealProject(GateProject):
    """Cases with one recorded reply where no script is given; the trial failed behind it. Attempts are real."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        super().__init__(pytester)
        (self.root / "conftest.py").unlink()
        self.use_agent("agent")

    def use_agent(self, module: str, *words: str) -> None:
        """Run ``pytest_regcase.demo.MODULE`` with `words` before its options."""
        text = AGENT.format(module=module, words="".join(f'"{each}", ' for each in words))
        (self.root / "pyproject.toml").write_text(text)

    def add_real_case(
        self,
        case_id: str,
        simulations: Sequence[str],
        symptom: str = "",
        script: Sequence[Mapping[str, Any]] = (say(1, "bash", command=EDIT),),
    ) -> Path:
        """Write a sealed case with a script, a task and a work tree; `symptom` adds to what it is known by."""
        recorded = self.root / "cases" / case_id / "recorded"
        (recorded / "work_tree").mkdir(parents=True)
        (recorded / "work_tree" / "code.py").write_text("number = 1\n")
        (recorded / "task.txt").write_text("Make number two.\n")
        (recorded / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in script))
        failing_step = 1 + sum(line["role"] == "assistant" for line in script)
        return self.add_case(case_id, simulations, more=REPLIES + symptom, failing_step=failing_step)
