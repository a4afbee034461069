"""Makes the small samples in this folder by running the harnesses themselves, without network or a model.

Needs the `harness` extra. Run from the repository root: ``python -m tests.gold.make_samples``. Ids and times
differ on every run, so tests name none of them. Only paths are rewritten, and `traceback_ansi` is left out.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.importers.zips import read_members, write_zip

GOLD = Path(__file__).parent
CALC = "def add(a, b):\n    return a - b\n"
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "bash", "arguments": '{"command": "cat calc.py"}'},
}


def main() -> None:
    """Make all samples."""
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        os.environ |= {"MSWEA_CONFIGURED": "true", "MSWEA_SILENT_STARTUP": "1", "HOME": scratch}
        Path("calc.py").write_text(CALC)
        for arguments in (["init", "-q"], ["add", "calc.py"]):
            subprocess.run(["git", *arguments], check=True)
        make_mini()
        make_inspect(Path(scratch))


def make_mini() -> None:
    """Run mini-swe-agent's own loop with its deterministic model."""
    # By name: the type checker runs where no harness is installed.
    default_agent: Any = import_module("minisweagent.agents.default").DefaultAgent
    environment: Any = import_module("minisweagent.environments.local").LocalEnvironment
    models: Any = import_module("minisweagent.models.test_models")
    replaying: Any = models.DeterministicToolcallModel

    def reply(text: str, number: int, command: str) -> dict[str, Any]:
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "bash", "arguments": json.dumps({"command": command})},
        }
        return dict(
            models.make_toolcall_output(text, [call], [{"command": command, "tool_call_id": f"call_{number}"}])
        )

    look = reply("Look first.", 1, "cat calc.py")
    fix = reply("Fix it.", 2, "sed -i 's/a - b/a + b/' calc.py")
    submit = reply("Done.", 3, "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; git diff")

    class Failing(replaying):  # type: ignore[misc]
        def query(self, messages: list[dict[str, Any]], **kwargs: Any) -> dict[str, Any]:
            if sum(each.get("role") == "assistant" for each in messages) == len(self.config.outputs):
                raise TimeoutError("no answer within 3 s")
            return dict(super().query(messages, **kwargs))

    def run(name: str, model: Any, **config: Any) -> None:
        Path("calc.py").write_text(CALC)
        path = GOLD / "mini-swe-agent" / f"{name}.traj.json"
        agent = default_agent(
            model,
            environment(timeout=30),
            system_template="You can run shell commands.",
            instance_template="Fix this: {{task}}\n\nReply with one command.",
            output_path=path,
            cost_limit=0,
            **config,
        )
        with contextlib.suppress(TimeoutError):
            agent.run("add() in calc.py subtracts")
        document = json.loads(neutral(path.read_text()))
        path.write_text(json.dumps(document, indent=1) + "\n")

    run("submitted", replaying(outputs=[look, fix, submit]))
    run("call_failed", Failing(outputs=[look, fix]))
    run("limit", replaying(outputs=[look, fix, submit]), step_limit=2)
    # As the file looks when the process is killed while the third call waits: everything but the exit message.
    cut = json.loads((GOLD / "mini-swe-agent" / "call_failed.traj.json").read_text())
    cut["messages"].pop()
    cut["info"] |= {"exit_status": "", "submission": ""}
    cut["info"]["model_stats"]["api_calls"] -= 1
    (GOLD / "mini-swe-agent" / "cut_off.traj.json").write_text(json.dumps(cut, indent=1) + "\n")


INSPECT = '''
import sys
from inspect_ai import Task, eval, task
from inspect_ai.dataset import Sample
from inspect_ai.agent import react
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.tool import tool

@tool
def look():
    async def execute(name: str):
        """Look at a file.

        Args:
            name: which one
        """
        return "the content of " + name
    return execute

def answer(messages, tools, choice, config):
    asked = str(messages[1].content)
    seen = sum(each.role == "assistant" for each in messages)
    if "goodbye" in asked and seen == 2:
        raise ConnectionError("the supplier closed the stream")
    if "hello" in asked:
        output = ModelOutput.for_tool_call("mockllm/model", "submit", {"answer": "hello"})
    else:
        output = ModelOutput.for_tool_call("mockllm/model", "look", {"name": f"file-{seen + 1}"})
    output.usage = ModelUsage(input_tokens=10, output_tokens=2, total_tokens=12)
    return output

@task
def greeting():
    samples = [Sample(id="good", input="Say hello.", target="hello"),
               Sample(id="bad", input="Say goodbye.", target="goodbye"),
               Sample(id=3, input="Say it forever.", target="x")]
    return Task(dataset=samples, solver=react(tools=[look()]), scorer=includes())

eval(greeting(), model=get_model("mockllm/model", custom_outputs=answer), log_dir=sys.argv[1],
     log_format=sys.argv[2], display="none", max_samples=1, fail_on_error=True)
eval(greeting(), model=get_model("mockllm/model", custom_outputs=answer), log_dir=sys.argv[1] + "-limit",
     log_format=sys.argv[2], display="none", sample_id="3", message_limit=6)
'''


def make_inspect(scratch: Path) -> None:
    """Run Inspect with its mock model: one sample passes, one fails in its third model call, one is cancelled."""
    (scratch / "sweep.py").write_text(INSPECT)
    for kind in ("eval", "json"):
        subprocess.run([sys.executable, "sweep.py", f"logs-{kind}", kind], check=True, cwd=scratch)
        for folder, name in ((f"logs-{kind}", "sweep"), (f"logs-{kind}-limit", "limit")):
            (log,) = (scratch / folder).glob(f"*.{kind}")
            target = GOLD / "inspect" / f"{name}.{kind}"
            if kind == "json":
                document = without_ansi(json.loads(neutral(log.read_text())))
                target.write_text(json.dumps(document, indent=1) + "\n")
            else:
                write_zip(
                    target,
                    [
                        (member, json.dumps(without_ansi(json.loads(neutral(content.decode())))).encode())
                        for member, content in read_members(log)
                    ],
                )


def neutral(text: str) -> str:
    """Rewrite the paths of the machine on which this runs."""
    text = re.sub(r'/[^\\"\s]*?/site-packages/', "/opt/agent/site-packages/", text)
    text = re.sub(r'/[^\\"\s]*?/lib/python3\.\d+/', "/usr/lib/python3/", text)
    text = text.replace(str(GOLD), "/opt/agent/out").replace(str(Path(__file__)), "/opt/agent/make_samples.py")
    return re.sub(re.escape(tempfile.gettempdir()) + r"/tmp[a-z0-9_]+", "/opt/agent/work", text)


def without_ansi(value: Any) -> Any:
    """Leave the coloured copies of tracebacks out: they are the largest part of a log."""
    if isinstance(value, dict):
        return {key: "" if key == "traceback_ansi" else without_ansi(item) for key, item in value.items()}
    return [without_ansi(item) for item in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
