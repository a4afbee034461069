"""A small agent on a public client library with the library's own time-out: one question, and a good end.

python timing_agent.py openai|openai-async|anthropic|anthropic-async RETRIES|default --task FILE --out DIR
"""

import asyncio
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

NAME, RETRIES = sys.argv[1:3]
TASK = Path(sys.argv[sys.argv.index("--task") + 1]).read_text()
OUT = Path(sys.argv[sys.argv.index("--out") + 1])
MESSAGES = [{"role": "user", "content": TASK}]
OPTIONS: dict[str, Any] = {} if RETRIES == "default" else {"max_retries": int(RETRIES)}


def ask() -> Any:
    """Ask once, with the client's own time-out of 600 s."""
    library, _, is_async = NAME.partition("-")
    module = import_module(library)
    if library == "openai":
        client = module.AsyncOpenAI(**OPTIONS) if is_async else module.OpenAI(**OPTIONS)
        question = client.chat.completions.create(model="m", messages=MESSAGES)
    else:
        client = module.AsyncAnthropic(**OPTIONS) if is_async else module.Anthropic(**OPTIONS)
        question = client.messages.create(model="m", max_tokens=100, messages=MESSAGES)
    return asyncio.run(question) if is_async else question


def main() -> int:
    """Write what happened as ``trial.jsonl``."""
    lines: list[dict[str, Any]] = [
        {"kind": "trial", "schema": 1, "harness": "timing", "run_id": "1", "task_text": TASK},
        {"kind": "step", "step": 0, "role": "user", "text": TASK},
    ]
    try:
        ask()
        lines.append({"kind": "end", "termination": "finished", "outcome": "undetermined"})
        return 0
    except Exception as error:
        print(f"gave up: {type(error).__name__}: {error}", file=sys.stderr)
        said = {"type": type(error).__name__, "message": str(error)}
        lines.append({"kind": "error", **said, "raised_by": "supplier"})
        lines.append({"kind": "end", "termination": "error", "outcome": "undetermined"})
        return 1
    finally:
        (OUT / "trial.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))


if __name__ == "__main__":
    sys.exit(main())
