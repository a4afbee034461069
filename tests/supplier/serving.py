"""A supplier under test, its parent's loop in a thread, and clients that show every byte."""

import json
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pytest_regcase import registry
from pytest_regcase.records.wire import WireEvent
from pytest_regcase.supplier.process import SupplierProcess
from pytest_regcase.supplier.spec import FaultSpec, SupplierSpec, new_token
from pytest_regcase.supplier.wire_log import read_wire_log

BASH = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
LIMIT_SECONDS = 20.0
"""After which a test that waits fails; nothing is asserted about how long things take."""


def call(call_id: str | None, command: str = "ls", name: str = "bash") -> dict[str, Any]:
    """A tool call of a transcript line."""
    line = {"name": name, "arguments": json.dumps({"command": command})}
    return line if call_id is None else {"id": call_id, **line}


def assistant(step: int, *calls: Mapping[str, Any], text: str | None = None) -> dict[str, Any]:
    """A reply of a transcript."""
    line: dict[str, Any] = {"step": step, "role": "assistant"}
    if text is not None:
        line["text"] = text
    return line | ({"tool_calls": list(calls)} if calls else {})


def result(step: int, call_id: str, raw: str) -> dict[str, Any]:
    """A tool result of a transcript."""
    return {"step": step, "role": "tool", "tool_call_id": call_id, "raw_output": raw}


TWO_STEPS = (
    {"step": 0, "role": "user", "text": "Fix it."},
    assistant(1, call("c1", "cat a"), text="Looking."),
    result(1, "c1", "old"),
    assistant(2, call("c2", "sed a"), text="Fixing."),
    result(2, "c2", "new"),
)


def fault(kind: str, **where: Any) -> FaultSpec:
    """One of the registered faults."""
    return FaultSpec(kind, registry.names("faults")[kind].value, **where)


class Serving:
    """A running supplier whose first-fault message is answered with `proceed`, unless `proceeds` is false."""

    def __init__(self, folder: Path, *, proceeds: bool = True, env_key: str | None = None, **spec: Any) -> None:
        self.said: list[dict[str, Any]] = []
        self.t0 = time.monotonic()
        self.log = folder / "wire.jsonl"
        self.process = SupplierProcess.start(
            SupplierSpec(wire_log=str(self.log), t0=self.t0, token=new_token(), **spec), env_key=env_key
        )
        self._proceeds = proceeds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def port(self) -> int:
        return self.process.port

    @property
    def path(self) -> str:
        return f"/{self.process.spec.token}/v1"

    def stop(self) -> tuple[WireEvent, ...]:
        """Stop the supplier and return the whole wire log."""
        self._stop.set()
        self._thread.join(LIMIT_SECONDS)
        self.process.stop()
        return self.events()

    def events(self) -> tuple[WireEvent, ...]:
        return read_wire_log(self.log)

    def wait_for(self, there: Callable[[], Any]) -> None:
        """Wait until `there` says yes."""
        limit = time.monotonic() + LIMIT_SECONDS
        while not there():
            assert time.monotonic() < limit, (self.said, self.events())
            time.sleep(0.01)

    def wait_said(self, what: str) -> None:
        self.wait_for(lambda: any(each["say"] == what for each in self.said))

    def wait_logged(self, event: str, count: int = 1) -> None:
        self.wait_for(lambda: sum(each["event"] == event for each in self.events()) >= count)

    def client(self) -> "RawClient":
        return RawClient(self.port, self.path)

    def _pump(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.fileno(), selectors.EVENT_READ)
            while not self._stop.is_set() and not self.process.closed:
                if not selector.select(0.02):
                    continue
                for message in self.process.read_messages():
                    if message["say"] == "first-fault" and self._proceeds:
                        self.process.proceed()
                    self.said.append(message)


class Response:
    """What came back on a raw socket."""

    def __init__(self, raw: bytes, status: int, headers: dict[str, str], body: bytes) -> None:
        self.raw = raw
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The parsed events of a stream, the last one as text."""
        datas = [each.removeprefix(b"data: ") for each in self.body.split(b"\n\n") if each]
        return [json.loads(each) if each != b"[DONE]" else "[DONE]" for each in datas]


class RawClient:
    """One connection, no library: what is sent and what comes is exactly what the test says."""

    def __init__(self, port: int, path: str) -> None:
        self.path = path
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_SECONDS)
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def post(self, body: bytes, *, path: str | None = None, headers: str = "", version: str = "1.1") -> None:
        """Send a POST and do not wait."""
        target = path if path is not None else f"{self.path}/chat/completions"
        head = f"POST {target} HTTP/{version}\r\nHost: x\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
        self.socket.sendall(head.encode() + body)

    def ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (BASH,),
        headers: str = "",
        **options: Any,
    ) -> None:
        """Send a chat completion request and do not wait."""
        body: dict[str, Any] = {"model": "m", "messages": list(messages), **options}
        if tools:
            body["tools"] = list(tools)
        self.post(json.dumps(body).encode(), headers=headers)

    def chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> Response:
        """Send a chat completion request and read the whole answer."""
        self.ask(messages, **options)
        return self.response()

    def get(self, path: str) -> Response:
        """Send a GET and read the whole answer."""
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return self.response()

    def response(self) -> Response:
        """Read one whole answer: by length, by chunks, or to the end."""
        raw = self._until(b"\r\n\r\n")
        lines = raw.decode().split("\r\n")
        status = int(lines[0].split(" ")[1])
        headers = {k.lower(): v for k, _, v in (each.partition(": ") for each in lines[1:] if each)}
        if "content-length" in headers:
            body = self._exactly(int(headers["content-length"]))
            return Response(raw + body, status, headers, body)
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self._until(b"\r\n"), 16):
                body += self._exactly(size)
                assert self._exactly(2) == b"\r\n"
            assert self._exactly(2) == b"\r\n"
            return Response(raw, status, headers, body)
        body = self.rest()
        return Response(raw + body, status, headers, body)

    def rest(self) -> bytes:
        """Read until the server ends the connection."""
        found, self._rest = self._rest, b""
        while data := self.socket.recv(65536):
            found += data
        return found

    def rest_until(self, mark: bytes) -> bytes:
        """Read until what came ends with `mark`."""
        found, self._rest = self._rest, b""
        while not found.endswith(mark):
            data = self.socket.recv(65536)
            assert data, f"the connection ended after {found!r}"
            found += data
        return found

    def hears_nothing_for(self, seconds: float) -> bool:
        """Say whether no byte and no end comes in that time."""
        self.socket.settimeout(seconds)
        try:
            self.socket.recv(1)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(LIMIT_SECONDS)
        return False

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._rest:
            data = self.socket.recv(65536)
            assert data, f"the connection ended after {self._rest!r}"
            self._rest += data
        found, _, self._rest = self._rest.partition(mark)
        return found + mark

    def _exactly(self, count: int) -> bytes:
        while len(self._rest) < count:
            data = self.socket.recv(65536)
            assert data, f"the connection ended after {self._rest!r}"
            self._rest += data
        found, self._rest = self._rest[:count], self._rest[count:]
        return found


def echoing(history: list[dict[str, Any]], answer: Response, tool_output: str = "ok") -> list[dict[str, Any]]:
    """Return the next request's messages of an agent that follows `answer`."""
    message = answer.json["choices"][0]["message"]
    results = [
        {"role": "tool", "tool_call_id": each["id"], "content": tool_output}
        for each in message.get("tool_calls", ())
    ]
    return [*history, message, *results]
