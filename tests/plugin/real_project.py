"""A small project that runs the demo agent for real, and the real supplier that its live attempts reach."""

import json
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.gate_project import GateProject

FAILING_STEP = 2

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
    """Cases with one recorded reply; the trial failed at step 2. Attempts start real processes."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        super().__init__(pytester)
        (self.root / "conftest.py").unlink()
        self.use_agent("agent")

    def use_agent(self, module: str, *words: str) -> None:
        """Run ``pytest_regcase.demo.MODULE`` with `words` before its options."""
        text = AGENT.format(module=module, words="".join(f'"{each}", ' for each in words))
        (self.root / "pyproject.toml").write_text(text)

    def use_upstream(self, base_url: str) -> None:
        """Let live attempts reach this supplier."""
        path = self.root / "pyproject.toml"
        path.write_text(path.read_text() + f'[tool.regcase.upstream]\nbase_url = "{base_url}"\n')

    def add_real_case(self, case_id: str, simulations: Sequence[str], symptom: str = "") -> Path:
        """Write a sealed case with a script, a task and a work tree; `symptom` adds to what it is known by."""
        recorded = self.root / "cases" / case_id / "recorded"
        (recorded / "work_tree").mkdir(parents=True)
        (recorded / "work_tree" / "code.py").write_text("number = 1\n")
        (recorded / "task.txt").write_text("Make number two.\n")
        (recorded / "script.jsonl").write_text(json.dumps(say(1, "bash", command=EDIT)) + "\n")
        return self.add_case(case_id, simulations, more=REPLIES + symptom, failing_step=FAILING_STEP)


class LocalUpstream:
    """A supplier of chat completions on a free port; `fails(draw, step)` says which requests get no answer.

    A draw is one conversation, numbered from 0 in the order of their first requests.
    """

    def __init__(self, fails: Callable[[int, int], bool]) -> None:
        self._fails = fails
        self._draws = 0
        self._answers = 0
        self._lock = threading.Lock()
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = upstream.answer(body)
                self.close_connection = True
                if answer is None:
                    return
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> "LocalUpstream":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: dict[str, Any]) -> bytes | None:
        """Return a chat completion, or None: the connection is closed without a byte."""
        step = 1 + sum(message["role"] == "assistant" for message in request["messages"])
        with self._lock:
            if step == 1:
                self._draws += 1
            self._answers += 1
            draw, number = self._draws - 1, self._answers
        if self._fails(draw, step):
            return None
        reply = say(step, "submit", answer="done") if step > FAILING_STEP else say(step, "bash", command="true")
        (call,) = reply["tool_calls"]
        function = {"name": call["name"], "arguments": call["arguments"]}
        tool_calls = [{"id": f"{call['id']}_{number}", "type": "function", "function": function}]
        message = {"role": "assistant", "content": reply["text"], "tool_calls": tool_calls}
        completion = {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 1,
            "model": request["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        }
        return json.dumps(completion).encode()
