"""A small HTTP server that answers from a script: real sockets on 127.0.0.1, nothing of the package's supplier."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Answer = Callable[[BaseHTTPRequestHandler], None]


def bash(command: str, call_id: str = "call_1", name: str = "bash") -> Answer:
    """Ask for one shell command."""
    return says(None, [(call_id, name, json.dumps({"command": command}))])


def submit(answer: str, name: str = "submit") -> Answer:
    """Ask to hand in."""
    return says(None, [("call_9", name, json.dumps({"answer": answer}))])


def says(text: str | None, calls: Sequence[tuple[str, str, str]] = (), finish: str = "stop") -> Answer:
    """Answer with a text, calls, or nothing at all."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in calls
        ]
    body = {
        "id": "x",
        "model": "served-model",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"total_tokens": 3},
    }
    return sends(200, json.dumps(body))


def sends(status: int, body: str) -> Answer:
    """Answer with these bytes."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body.encode())))
        handler.end_headers()
        handler.wfile.write(body.encode())

    return answer


def fails(status: int, message: str) -> Answer:
    """Answer with an error in OpenAI's shape."""
    return sends(status, json.dumps({"error": {"message": message, "type": "x", "code": None}}))


def cuts(handler: BaseHTTPRequestHandler) -> None:
    """Send half an answer and close."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.close_connection = True


def closes(handler: BaseHTTPRequestHandler) -> None:
    """Close without a byte."""
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


@dataclass
class ScriptedSupplier:
    """Gives the answers in order, then the last one for ever; `hang` never answers."""

    answers: Sequence[Answer]
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def hang(self, handler: BaseHTTPRequestHandler) -> None:
        """Take the request and never answer it."""
        self._over.wait()
        handler.close_connection = True

    def trickle(self, handler: BaseHTTPRequestHandler) -> None:
        """Send one byte of the answer after the other, and never the last."""
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        with contextlib.suppress(OSError):
            while not self._over.wait(0.05):
                handler.wfile.write(b" ")
        handler.close_connection = True

    @property
    def base_url(self) -> str:
        """What OPENAI_BASE_URL is to be."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/token/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        supplier = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                supplier.requests.append(json.loads(self.rfile.read(length)))
                supplier.paths.append(self.path)
                supplier.keys.append(self.headers["Authorization"])
                at = min(len(supplier.requests), len(supplier.answers)) - 1
                supplier.answers[at](self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
                """Stay silent."""

        return Handler
