"""A bare h11 server on asyncio streams, which gives the supplier's replies: what it is measured against.

``python -m benchmarks.bare_server SPEC.json`` with ``{"port", "replies": [{"text", "id", "name", "arguments"}]}``.
It reads a request's JSON for `model` and `stream` and answers the k-th request with the k-th reply, framed as the
supplier frames it. No log, no digests, no checks. Knows nothing of the package.
"""

import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import h11

PIECE = 24


def as_json(value: Any) -> bytes:
    """Return compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


class Bare:
    """Answers requests on any number of connections."""

    def __init__(self, replies: list[dict[str, str]]) -> None:
        self._replies = replies
        self._numbers = itertools.count(1)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until its client lets go."""
        connection = h11.Connection(h11.SERVER)
        body = bytearray()
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await reader.read(65536))
            elif isinstance(event, h11.Request):
                body = bytearray()
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                await self._answer(connection, writer, json.loads(body))
                connection.start_next_cycle()
            else:
                break
        writer.close()

    async def _answer(
        self, connection: h11.Connection, writer: asyncio.StreamWriter, asked: dict[str, Any]
    ) -> None:
        number = next(self._numbers)
        reply = self._replies[number - 1]
        about = {"id": f"chatcmpl-regcase{number:06d}", "created": int(time.time()), "model": asked["model"]}
        named = ("x-request-id", f"req_regcase_{number:06d}")
        if asked.get("stream"):
            kind = ("Content-Type", "text/event-stream; charset=utf-8")
            framing = ("Transfer-Encoding", "chunked")
            head = h11.Response(
                status_code=200, headers=[kind, framing, ("Cache-Control", "no-cache"), named], reason=b"OK"
            )
            writer.write(connection.send(head) or b"")
            for each in events(reply, about):
                writer.write(connection.send(h11.Data(data=each)) or b"")
                await writer.drain()
            writer.write(connection.send(h11.EndOfMessage()) or b"")
        else:
            body = as_json(whole(reply, about))
            headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body))), named]
            parts = [
                h11.Response(status_code=200, headers=headers, reason=b"OK"),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ]
            writer.write(b"".join([connection.send(each) or b"" for each in parts]))
        await writer.drain()


def whole(reply: dict[str, str], about: dict[str, Any]) -> dict[str, Any]:
    """Return a chat completion."""
    function = {"name": reply["name"], "arguments": reply["arguments"]}
    calls = [{"id": reply["id"], "type": "function", "function": function}]
    message = {"role": "assistant", "content": reply["text"], "refusal": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {**about, "object": "chat.completion", "system_fingerprint": None, "choices": [choice], "usage": usage}


def events(reply: dict[str, str], about: dict[str, Any]) -> Iterator[bytes]:
    """Yield the events of a stream."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        envelope = {**about, "object": "chat.completion.chunk", "system_fingerprint": None, "choices": [choice]}
        return b"data: " + as_json(envelope) + b"\n\n"

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    for each in pieces(reply["text"]):
        yield chunk({"content": each})
    function = {"name": reply["name"], "arguments": ""}
    yield chunk({"tool_calls": [{"id": reply["id"], "type": "function", "function": function, "index": 0}]})
    for each in pieces(reply["arguments"]):
        yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": each}}]})
    yield chunk({}, "tool_calls")
    yield b"data: [DONE]\n\n"


def pieces(text: str) -> list[str]:
    """Return a text in the supplier's pieces."""
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


async def run(spec: dict[str, Any]) -> None:
    """Serve until stdin ends, as the supplier does."""
    await asyncio.start_server(Bare(spec["replies"]).serve, "127.0.0.1", spec["port"])
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, lambda: None if os.read(0, 4096) else ended.set())
    os.write(1, b'{"say": "listening"}\n')
    await ended.wait()


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        given = json.load(file)
    asyncio.new_event_loop().run_until_complete(run(given))
    os._exit(0)
