import json
from typing import Any

import pytest

from pytest_regcase import registry
from pytest_regcase.records.wire import WireEvent
from pytest_regcase.supplier.faults.silences import BEGUN_TEXT
from pytest_regcase.supplier.protocol import UpstreamReply
from tests.supplier.faults.conftest import FaultyService
from tests.supplier.serving import RawClient

LAST_PIECE = BEGUN_TEXT[len(BEGUN_TEXT) // 24 * 24 :].encode()
"""What stands in the last event with content: wires cut a text into pieces of 24 characters."""


def met(
    faulty: FaultyService, kind: str, wire: str, until: bytes, *, streaming: bool = True, **settings: Any
) -> tuple[bytes, WireEvent]:
    """What came up to `until`, and the `sent` event after the client let go there."""
    with faulty.serving.client() as client:
        asked = faulty.ask(client, kind, wire, streaming=streaming, **settings)
        raw = read_until(client, until)
    return raw, faulty.sent(asked)


def read_until(client: RawClient, mark: bytes) -> bytes:
    raw = b""
    while mark not in raw:
        data = client.socket.recv(65536)
        assert data, raw
        raw += data
    return raw


def said(wire: str, raw: bytes) -> UpstreamReply:
    """What the wire reads in a chunked stream that broke off."""
    _, _, rest = raw.partition(b"\r\n\r\n")
    body = b""
    while b"\r\n" in rest:
        size, _, rest = rest.partition(b"\r\n")
        body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    reply: UpstreamReply = registry.load("wires", wire)().read_answer(body, True)
    return reply


@pytest.mark.parametrize(
    ("wire", "ping"),
    [
        ("openai-chat", b": keep-alive\n\n"),
        ("openai-responses", b": keep-alive\n\n"),
        ("anthropic-messages", b'event: ping\ndata: {"type": "ping"}\n\n'),
    ],
)
def test_pings_are_those_of_the_wire_and_hold_no_content(faulty: FaultyService, wire: str, ping: bytes) -> None:
    raw, sent = met(faulty, "keep_alive_only", wire, ping + b"\r\n", every_seconds=0.01)
    assert ping in raw
    assert said(wire, raw) == UpstreamReply()
    assert "text" not in sent
    assert sent["fault_kind"] == "any_fault"


@pytest.mark.parametrize("wire", sorted(registry.names("wires")))
def test_a_stall_comes_after_the_whole_text_and_says_no_end(faulty: FaultyService, wire: str) -> None:
    raw, sent = met(faulty, "mid_stream_stall", wire, LAST_PIECE)
    reply = said(wire, raw)
    assert (reply.text, reply.finish) == (BEGUN_TEXT, None)
    assert (sent["text"], sent["unfinished"], sent["complete"]) == (BEGUN_TEXT, True, False)


def test_outside_of_a_stream_half_of_a_document_comes(faulty: FaultyService) -> None:
    raw, sent = met(faulty, "mid_stream_stall", "openai-chat", b'"message"', streaming=False)
    head, _, body = raw.partition(b"\r\n\r\n")
    assert int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]) > len(body)
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        json.loads(body)
    assert "text" not in sent, "half a document has no text that a client could read"


def test_a_trickle_is_logged_as_far_as_it_came(faulty: FaultyService) -> None:
    raw, sent = met(faulty, "byte_trickle", "openai-chat", b"\r\n1\r\nd\r\n1\r\na", seconds_a_byte=0.002)
    assert raw.startswith(b"HTTP/1.1 200 ")
    assert sent["parts"] >= 2
    assert sent["bytes"] >= len(raw)
    assert "text" not in sent, "the first event was not whole"


def test_headers_alone_name_the_request(faulty: FaultyService) -> None:
    raw, sent = met(faulty, "headers_then_silence", "openai-chat", b"\r\n\r\n", streaming=False)
    assert b"content-length: 1024\r\n" in raw.lower()
    assert b"x-request-id: req_" in raw
    assert (sent["parts"], sent["complete"]) == (0, False)


@pytest.mark.parametrize("streaming", [False, True])
def test_a_slow_answer_is_a_good_one(faulty: FaultyService, streaming: bool) -> None:
    answer = faulty.meet("slow_answer", streaming=streaming, seconds=0.01, text="Late.")
    assert answer.status == 200
    text = (
        "".join(each["choices"][0]["delta"].get("content") or "" for each in answer.events[:-1])
        if streaming
        else answer.json["choices"][0]["message"]["content"]
    )
    assert text == "Late."
