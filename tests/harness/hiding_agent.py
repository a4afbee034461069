"""A usual loop on the openai SDK, plain or with the call wrapped in `except Exception: return None`.

python hiding_agent.py plain|hide --task FILE --out DIR
"""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

MODE = sys.argv[1]
TASK = Path(sys.argv[sys.argv.index("--task") + 1]).read_text()
OUT = Path(sys.argv[sys.argv.index("--out") + 1])
BASH = {"name": "bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}


def main() -> None:
    """Work until there is no call, then hand in what lies there."""
    client = import_module("openai").OpenAI(timeout=1.0)
    messages: list[dict[str, Any]] = [{"role": "user", "content": TASK}]

    def ask() -> Any:
        tools = [{"type": "function", "function": BASH}]
        return client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message

    while True:
        try:
            message = ask()
        except Exception:
            if MODE == "plain":
                raise
            message = None
        messages.append({"role": "assistant", "content": message.content if message else None})
        if message is None or not message.tool_calls:
            break
        messages[-1]["tool_calls"] = [each.model_dump() for each in message.tool_calls]
        for call in message.tool_calls:
            command = json.loads(call.function.arguments)["command"]
            done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": done.stdout})
    patch = subprocess.run(["git", "diff"], capture_output=True, text=True, check=True).stdout
    (OUT / "answer.json").write_text(json.dumps({"patch": patch, "answer": messages[-1]["content"]}))
    print("done")


if __name__ == "__main__":
    main()
