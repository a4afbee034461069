"""One cell of the delivery matrix: a fault met on one wire, streaming or not, by a client that is a bare socket.

What the client sees (bytes, kind of close, refused connects) is held against what the fault declares, and so is
the wire log. A wait ends when what is waited for is there; only silence is watched for a fixed time.
"""

import errno
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import h11

from pytest_regcase.records.simulation import Simulation
from pytest_regcase.records.wire import Delivery, WireEvent
from pytest_regcase.recovery.delivery import Declares
from pytest_regcase.recovery.wire_facts import wire_facts
from pytest_regcase.supplier.inject import declares_for
from pytest_regcase.supplier.port import HOST
from tests.supplier.serving import LIMIT_SECONDS, RawClient, Serving

WIRE_REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai-chat": ("chat/completions", {"messages": [{"role": "user", "content": "Fix it."}]}),
    "openai-responses": ("responses", {"input": "Fix it."}),
    "anthropic-messages": ("messages", {"messages": [{"role": "user", "content": "Fix it."}], "max_tokens": 9}),
}
"""Path and least body of a model request, by wire."""
SHORT: dict[str, dict[str, Any]] = {
    "keep_alive_only": {"every_seconds": 0.01},
    "byte_trickle": {"seconds_a_byte": 0.005},
    "slow_answer": {"seconds": 0.05},
}
"""Settings that make a fault of ours quick, by kind."""
_SILENCE_SECONDS = 0.05


@dataclass(frozen=True)
class Seen:
    """What a client saw."""

    raw: bytes
    status: int | None
    body: bytes
    complete: bool
    """A whole HTTP answer came."""
    end: Literal["fin", "rst", "held"]


def simulation(kind: str, settings: Mapping[str, Any] = {}, **fault: Any) -> Simulation:
    """A simulation of that kind."""
    return Simulation.model_validate(
        {
            "id": "x-v1",
            "hypothesis": "hidden",
            "title": "t",
            "fault": {"kind": kind, "settings": dict(settings), **fault},
        }
    )


def declares_of(kind: str, settings: Mapping[str, Any]) -> Declares:
    """What the fault declares; read once for the many cells of one kind."""
    return _declares(kind, json.dumps(settings))


@cache
def _declares(kind: str, settings: str) -> Declares:
    return declares_for(simulation(kind, json.loads(settings)))


def ask(client: RawClient, serving: Serving, wire: str, *, streaming: bool, model: str = "m") -> None:
    """Send the least model request of `wire`, and do not wait."""
    path, body = WIRE_REQUESTS[wire]
    data = json.dumps({"model": model, "stream": streaming, **body}).encode()
    client.post(data, path=f"{serving.path}/{path}", headers="Connection: close\r\n")


def look(client: RawClient, serving: Serving, declared: Delivery, *, requests: int) -> Seen:
    """Read what comes: up to the end, or where it is to be held, up to what is to come and a moment longer.

    `requests` is how many model requests the supplier has had with this one.
    """
    if declared.then != "held":
        raw, end = _read_to_the_end(client.socket)
        return _seen(raw, end)
    serving.wait_logged("request", requests)
    raw = b""
    least_parts = {"none": 0, "some": 1, "repeated": 2}.get(declared.body, 0)
    if declared.answer != "none":
        while b"\r\n\r\n" not in raw:
            raw += client.socket.recv(65536)
        parts = int(not raw.endswith(b"\r\n\r\n"))
        while parts < least_parts:
            raw += client.socket.recv(65536)
            parts += 1
    if declared.body == "repeated":
        return _seen(raw, "held")
    client.socket.settimeout(_SILENCE_SECONDS)
    try:
        while more := client.socket.recv(65536):
            raw += more
    except TimeoutError:
        return _seen(raw, "held")
    return _seen(raw, "fin")


def _read_to_the_end(connection: socket.socket) -> tuple[bytes, Literal["fin", "rst"]]:
    raw = b""
    try:
        while data := connection.recv(65536):
            raw += data
    except ConnectionResetError:
        return raw, "rst"
    return raw, "fin"


def _seen(raw: bytes, end: Literal["fin", "rst", "held"]) -> Seen:
    parser = h11.Connection(h11.CLIENT)
    parser.send(h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")]))
    parser.send(h11.EndOfMessage())
    status, body, complete = None, b"", False
    parser.receive_data(raw)
    try:
        while (event := parser.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            else:
                complete = isinstance(event, h11.EndOfMessage)
                break
    except h11.RemoteProtocolError:
        complete = False
    return Seen(raw, status, body, complete, end)


def differences(seen: Seen, declared: Delivery) -> list[str]:
    """Return how what came differs from what is declared."""
    wrong = []
    if (declared.answer == "none") != (seen.raw == b""):
        wrong.append(f"answer {declared.answer} declared, {len(seen.raw)} bytes came")
    if declared.answer != "none" and seen.complete != (declared.answer == "complete"):
        wrong.append(f"answer {declared.answer} declared, complete is {seen.complete}")
    if declared.status is not None and seen.status != declared.status:
        wrong.append(f"status {declared.status} declared, {seen.status} came")
    if declared.body != "any" and (declared.body == "none") != (seen.body == b""):
        wrong.append(f"body {declared.body} declared, {seen.body!r} came")
    end = "held" if declared.then == "held" else declared.how or "fin"
    if seen.end != end:
        wrong.append(f"end {end} declared, {seen.end} came")
    return wrong


def delivered(
    declares: Declares, events: tuple[WireEvent, ...], *, connection: int | None = None
) -> tuple[bool | None, str | None]:
    """Say what the log shows, of one connection alone where it is named."""
    if connection is not None:
        events = tuple(each for each in events if each.get("conn", connection) == connection)
    facts = wire_facts(events, declares=declares, ended_by_us_at=None, last_step=None, failing_step=1)
    return facts.delivered, facts.why_not


def is_refused(port: int, host: str = HOST) -> bool:
    """Say whether a connect is refused; one that is reset was taken by a listener that was just going."""
    with socket.socket() as probe:
        probe.settimeout(LIMIT_SECONDS)
        return probe.connect_ex((host, port)) == errno.ECONNREFUSED
