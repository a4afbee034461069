"""A good agent that never fails as a process: exit code 0 always, and the status of the trial in its result file.

Anthropic messages over urllib, no stream; one retry after what may pass. Run as a script by its path.
"""

import argparse
import contextlib
import http.client
import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

TOOLS = [{"name": "bash", "input_schema": {"type": "object"}}]
TIME_OUT_SECONDS = 2.5


class ModelFailure(Exception):
    """No usable answer came."""

    def __init__(self, text: str, *, may_pass: bool) -> None:
        super().__init__(text)
        self.may_pass = may_pass


def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Ask once, for no longer than the time-out in all: a read time-out alone never ends a trickle."""
    found: list[dict[str, Any] | Exception] = []

    def work() -> None:
        try:
            found.append(_post(messages))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(TIME_OUT_SECONDS)
    answer = found[0] if found else ModelFailure("timed out", may_pass=True)
    if isinstance(answer, Exception):
        raise answer
    if not any(
        block.get("text", "").strip() or block["type"] == "tool_use" for block in answer.get("content") or ()
    ):
        raise ModelFailure(f"the answer says nothing: {str(answer)[:200]}", may_pass=False)
    if answer.get("stop_reason") not in ("end_turn", "tool_use"):
        raise ModelFailure(f"the answer is not whole: stop_reason {answer.get('stop_reason')}", may_pass=False)
    return answer


def _post(messages: list[dict[str, Any]]) -> dict[str, Any]:
    body = {"model": "m", "max_tokens": 999, "tools": TOOLS, "messages": messages}
    headers = {
        "x-api-key": os.environ["ANTHROPIC_API_KEY"],
        "anthropic-version": "2023-06-01",
        "content-type": "application/json",
    }
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=TIME_OUT_SECONDS) as response:
            answer = json.load(response)
    except urllib.error.HTTPError as error:
        with contextlib.suppress(OSError, http.client.HTTPException):
            text = error.read().decode(errors="replace")
            raise ModelFailure(f"HTTP {error.code}: {text[:300]}", may_pass=error.code >= 500) from None
        raise ModelFailure(f"HTTP {error.code}", may_pass=error.code >= 500) from None
    except (OSError, http.client.HTTPException) as error:
        raise ModelFailure(f"{type(error).__name__}: {error}", may_pass=True) from error
    except ValueError as error:
        raise ModelFailure(f"no JSON came: {error}", may_pass=False) from error
    if not isinstance(answer, dict) or answer.get("type") == "error":
        raise ModelFailure(f"an error came with status 200: {str(answer)[:300]}", may_pass=False)
    return answer


def ask_twice(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Ask, and once more after a failure that may pass."""
    try:
        return ask(messages)
    except ModelFailure as failure:
        if not failure.may_pass:
            raise
        print(f"model call failed, one more try: {failure}")
        return ask(messages)


def work(task: str) -> str:
    """Work until the model has nothing more to do; return what it says then."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    while True:
        answer = ask_twice(messages)
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        if not calls:
            return "".join(block.get("text", "") for block in answer["content"])
        results = []
        for call in calls:
            done = subprocess.run(
                call["input"]["command"], shell=True, capture_output=True, text=True, check=False
            )
            results.append({"type": "tool_result", "tool_use_id": call["id"], "content": done.stdout})
        messages += [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": results}]


def main() -> None:
    """Run, and write the result whatever happens."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    try:
        result = {"status": "ok", "answer": work(options.task.read_text()), "error": None}
        diff = subprocess.run(["git", "diff"], capture_output=True, text=True, check=False)
        result["patch"] = diff.stdout
    except ModelFailure as failure:
        print(f"model call failed: {failure}")
        result = {"status": "error", "answer": None, "error": str(failure), "patch": None}
    options.out.mkdir(exist_ok=True)
    (options.out / "result.json").write_text(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)  # an abandoned request's thread holds nobody up


if __name__ == "__main__":
    main()
