"""An agent's run, as coding agents make them: a system prompt, eight tools, a conversation that grows.

What a client sends goes out in one write, with the headers of the `openai` package.
"""

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from benchmarks.servers import TOKEN
from tests.supplier.serving import BASH, RawClient, Response

SYSTEM = "You work on a repository. Keep to its rules, change little, and test what you change.\n" * 40
TASK = "The second argument of `merge` is ignored where it is a list.\n"
OUTPUT = "src/merge.py:  if isinstance(other, list): return self._merged(other)\n" * 30
HEADERS = "".join(
    f"{name}: {value}\r\n"
    for name, value in {
        "Accept-Encoding": "gzip, deflate",
        "Connection": "keep-alive",
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": "OpenAI/Python 3.57.0",
        "X-Stainless-Lang": "python",
        "X-Stainless-Package-Version": "3.57.0",
        "X-Stainless-OS": "Linux",
        "X-Stainless-Arch": "x64",
        "X-Stainless-Runtime": "CPython",
        "X-Stainless-Runtime-Version": "3.11.9",
        "Authorization": "Bearer none",
        "X-Stainless-Async": "false",
        "x-stainless-retry-count": "0",
        "x-stainless-read-timeout": "600",
    }.items()
)


def tool(number: int) -> dict[str, Any]:
    """Return one of the tools that stand beside `bash`."""
    about = {"type": "string", "description": "What it is for, and which values it may have."}
    parameters = {
        "type": "object",
        "properties": {f"argument_{each}": about for each in range(4)},
        "required": ["argument_0"],
        "additionalProperties": False,
    }
    says = "What this tool does, when to use it, and what it refuses. " * 3
    return {
        "type": "function",
        "function": {"name": f"tool_{number}", "description": says, "parameters": parameters},
    }


TOOLS = (BASH, *[tool(number) for number in range(7)])


def recording(steps: int) -> tuple[dict[str, Any], ...]:
    """Return the transcript of a run of so many steps."""
    lines: list[dict[str, Any]] = [{"step": 0, "role": "user", "text": TASK}]
    for step in range(1, steps + 1):
        arguments = json.dumps({"command": f"sed -n '{step},{step + 80}p' src/merge.py && git diff --stat"})
        call = {"id": f"call_{step}", "name": "bash", "arguments": arguments}
        says = f"Step {step}: I look at the lines that handle the second argument and compare them with the test."
        lines.append({"step": step, "role": "assistant", "text": says, "tool_calls": [call]})
        lines.append({"step": step, "role": "tool", "tool_call_id": f"call_{step}", "raw_output": OUTPUT})
    return tuple(lines)


class Agent:
    """One run against one server, which must answer every step with the recorded reply.

    `shown`: how many of the latest messages it sends; None: the whole conversation. Leave it as a context manager.
    """

    def __init__(self, port: int, *, streaming: bool, output: str = OUTPUT, shown: int | None = None) -> None:
        self.client = RawClient(port, f"/{TOKEN}/v1")
        self.step = 0
        self._streaming = streaming
        self._output = output
        self._shown = shown
        self._head = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": TASK}]
        self._history: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.socket.close()

    def go_on(self) -> Response:
        """Ask for the next step and follow it."""
        latest = self._history if self._shown is None else self._history[-self._shown :]
        options: dict[str, Any] = {"stream": True} if self._streaming else {}
        answer = self.client.chat([*self._head, *latest], tools=TOOLS, headers=HEADERS, **options)
        message = streamed(answer) if self._streaming else answer.json["choices"][0]["message"]
        self.step += 1
        call = message["tool_calls"][0]
        assert (call["id"], f"Step {self.step}:" in message["content"]) == (f"call_{self.step}", True), message
        self._history += [message, {"role": "tool", "tool_call_id": call["id"], "content": self._output}]
        return answer


def streamed(answer: Response) -> dict[str, Any]:
    """Return the message that the events of a stream make up."""
    text, arguments, call_id, name = "", "", "", ""
    for each in answer.events[:-1]:
        delta: Mapping[str, Any] = each["choices"][0]["delta"]
        text += delta.get("content") or ""
        for call in delta.get("tool_calls", ()):
            call_id, name = call.get("id", call_id), call["function"].get("name", name)
            arguments += call["function"]["arguments"]
    function = {"name": name, "arguments": arguments}
    calls = [{"id": call_id, "type": "function", "function": function}]
    return {"role": "assistant", "content": text, "tool_calls": calls}
