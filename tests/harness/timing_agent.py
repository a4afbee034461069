"""A small agent on a public client library with the library's own time-out: one question, and a good end.

python timing_agent.py openai|openai-async|anthropic|anthropic-async RETRIES|default --task FILE --out DIR
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

NAME, RETRIES = sys.argv[1:3]
TASK = Path(sys.argv[sys.argv.index("--task") + 1]).read_text()
OUT = Path(sys.argv[sys.argv.index("--out") + 1])
MESSAGES = [{"role": "user", "content": TASK}]
OPTIONS: dict[str, Any] = {} if RETRIES == "default" else {"max_retries": int(RETRIES)}


def ask() -> Any:
    """Ask once, with the client's own time-out of 600 s."""
    if NAME == "openai":
        from openai import OpenAI

        return OpenAI(**OPTIONS).chat.completions.create(model="m", messages=MESSAGES)  # type: ignore[arg-type]
    if NAME == "openai-async":
        from openai import AsyncOpenAI

        client = AsyncOpenAI(**OPTIONS)
        return asyncio.run(client.chat.completions.create(model="m", messages=MESSAGES))  # type: ignore[arg-type]
    if NAME == "anthropic":
        from anthropic import Anthropic

        return Anthropic(**OPTIONS).messages.create(model="m", max_tokens=100, messages=MESSAGES)  # type: ignore[arg-type]
    from anthropic import AsyncAnthropic

    claude = AsyncAnthropic(**OPTIONS)
    return asyncio.run(claude.messages.create(model="m", max_tokens=100, messages=MESSAGES))  # type: ignore[arg-type]


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
