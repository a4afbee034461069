"""A local chat-completions server that drives a tool-using agent to its end, or fails it in a seeded way.

It stands for the real supplier. Which attempt fails is drawn once an attempt, from a seed.
"""

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

How = Literal["stall", "reject"]

SCRIPT = ("cat notes.txt", "echo first >> notes.txt", "echo second >> notes.txt")
"""Commands of steps 1 to 3; step 4 submits."""


@dataclass
class LocalUpstream:
    """What the server does and what it saw."""

    rate: float = 0.0
    """Share of attempts that fail."""
    seed: int = 0
    step: int = 3
    """The step at which a failing attempt fails."""
    how: How = "stall"
    canned: bool = False
    """Every attempt gets the very same answers, ids included, as from a cache."""
    base_url: str = ""
    attempts: list[bool] = field(default_factory=list)
    """One entry an attempt: whether it was drawn to fail."""
    requests: int = 0
    keys: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def answer(self, body: dict[str, Any], key: str | None) -> tuple[int, dict[str, Any]] | None:
        """Return status and body; None: no answer at all."""
        step = sum(message["role"] == "assistant" for message in body["messages"]) + 1
        with self._lock:
            self.requests += 1
            if key is not None:
                self.keys.add(key)
            if step == 1:
                self.attempts.append(self._random.random() < self.rate)
            number, fails = self.requests, bool(self.attempts) and self.attempts[-1]
        if fails and step == self.step:
            if self.how == "stall":
                self._stop.wait(30)
                return None
            return 401, {"error": {"message": "Incorrect API key provided.", "code": "invalid_api_key"}}
        return 200, _completion(step, step if self.canned else number, canned=self.canned)


@contextmanager
def serving(upstream: LocalUpstream) -> Iterator[LocalUpstream]:
    """Serve on a loopback port until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = upstream.answer(body, self.headers.get("Authorization"))
            if answer is None:
                self.close_connection = True
                return
            content = json.dumps(answer[1]).encode()
            self.send_response(answer[0])
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    upstream.base_url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield upstream
    finally:
        upstream._stop.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _completion(step: int, number: int, *, canned: bool) -> dict[str, Any]:
    if step <= len(SCRIPT):
        name, arguments = "bash", {"command": SCRIPT[step - 1]}
    else:
        name, arguments = "submit", {"answer": "both lines are in notes.txt"}
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    return {
        "id": f"chatcmpl-{0 if canned else time.time_ns()}-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": "local",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": f"Step {step}.", "tool_calls": [call]},
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
