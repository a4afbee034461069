"""A good agent that streams: chat completions as events over asyncio, and it goes on where a fault heals.

It keeps its conversation as a list of messages, its state beside it, and a log file of its own; stderr stays
empty. An answer counts once its stream came to an end with a finish reason. Run as a script by its path.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TIME_OUT_SECONDS = 2.5
TRIES = 3
PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": PARAMETERS}}]


class Unanswered(Exception):
    """The model gave no whole answer."""

    def __init__(self, text: str, *, again: bool) -> None:
        super().__init__(text)
        self.again = again


async def events(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    """Yield the data of each event; an answer with a length, or in chunks, is read the same way."""
    async for raw in reader:
        line = raw.decode(errors="replace").strip()
        if line.startswith("data:"):
            yield line[5:].strip()
        elif line.startswith("{"):
            yield line  # no stream after all


async def stream(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Ask once and put the answer together from its parts."""
    url = urlsplit(os.environ["OPENAI_BASE_URL"])
    body = json.dumps({"model": "m", "stream": True, "messages": messages, "tools": TOOLS}).encode()
    head = (
        f"POST {url.path}/chat/completions HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {os.environ['OPENAI_API_KEY']}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    try:
        writer.write(head.encode() + body)
        await writer.drain()
        status = int((await reader.readline()).split(b" ")[1])
        while (await reader.readline()).strip():
            pass
        if status != 200:
            said = " ".join([each async for each in events(reader)])
            raise Unanswered(f"HTTP {status} {said[:300]}", again=status >= 500 or status == 429)
        return await put_together(reader)
    finally:
        writer.close()


async def put_together(reader: asyncio.StreamReader) -> dict[str, Any]:
    """Return the message that the events make up."""
    text, calls, finish, ended = "", dict[int, dict[str, Any]](), None, False
    async for data in events(reader):
        if data == "[DONE]":
            ended = True
            break
        part = json.loads(data)
        if "error" in part:
            raise Unanswered(f"an error in the stream: {part['error']}", again=True)
        for choice in part.get("choices") or ():
            delta = choice.get("delta") or {}
            text += delta.get("content") or ""
            finish = choice.get("finish_reason") or finish
            for piece in delta.get("tool_calls") or ():
                call = calls.setdefault(piece["index"], {"id": "", "name": "", "arguments": ""})
                call["id"] += piece.get("id") or ""
                call["name"] += piece["function"].get("name") or ""
                call["arguments"] += piece["function"].get("arguments") or ""
    if not ended or finish not in ("stop", "tool_calls"):
        raise Unanswered(f"the stream broke off (finish reason {finish})", again=not ended)
    if not text.strip() and not calls:
        raise Unanswered("an empty answer", again=False)
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {
                "id": each["id"],
                "type": "function",
                "function": {"name": each["name"], "arguments": each["arguments"]},
            }
            for _, each in sorted(calls.items())
        ]
    return message


async def answered(messages: list[dict[str, Any]], log: Path) -> dict[str, Any]:
    """Ask until there is an answer, three times at most."""
    for number in range(1, TRIES + 1):
        try:
            return await asyncio.wait_for(stream(messages), TIME_OUT_SECONDS)
        except Unanswered as failure:
            note(log, f"try {number} failed: {failure}")
            if not failure.again or number == TRIES:
                raise
        except (TimeoutError, OSError, EOFError, IndexError, ValueError) as error:
            note(log, f"try {number} failed: {type(error).__name__}: {error}")
            if number == TRIES:
                raise Unanswered(type(error).__name__, again=False) from error
        await asyncio.sleep(0.1 * number)
    raise AssertionError("the last try returns or raises")


def note(log: Path, text: str) -> None:
    """Add a line to the log."""
    with log.open("a") as file:
        file.write(f"{text}\n")


async def main() -> int:
    """Work on the task; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True)
    log = options.out / "agent.log"
    messages: list[dict[str, Any]] = [{"role": "user", "content": options.task.read_text()}]
    state: dict[str, Any] = {"status": "finished", "patch": None}
    try:
        while True:
            messages.append(await answered(messages, log))
            calls = messages[-1].get("tool_calls")
            if not calls:
                break
            for call in calls:
                command = json.loads(call["function"]["arguments"])["command"]
                done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout})
        state["patch"] = subprocess.run(["git", "diff"], capture_output=True, text=True, check=False).stdout
    except Unanswered as failure:
        note(log, f"gave up: {failure}")
        state = {"status": "failed", "patch": None}
    (options.out / "messages.json").write_text(json.dumps(messages))
    (options.out / "state.json").write_text(json.dumps(state))
    return 0 if state["status"] == "finished" else 3


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
