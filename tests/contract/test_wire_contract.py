"""What every registered wire must keep. A third party's wire runs through it by being registered."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase import registry
from pytest_regcase.supplier.protocol import Call, HttpRequest, ModelRequest, PlainAnswer, Refusal, Reply

WIRES = sorted(registry.names("wires"))
REPLIES = [
    pytest.param(Reply("i", "m", 1, "text"), id="text"),
    pytest.param(Reply("i", "m", 1, None, (Call("c", "f", '{"a": 1}'),)), id="call"),
    pytest.param(Reply("i", "m", 1, "Ä 中", (Call("c", "f", "{}"), Call("d", "g", "{}"))), id="parallel"),
    pytest.param(Reply("i", "m", 1, ""), id="empty"),
]


def wire_named(name: str) -> Any:
    return registry.load("wires", name)()


@pytest.mark.parametrize("name", WIRES)
def test_a_wire_goes_by_the_name_it_is_registered_under(name: str) -> None:
    wire = wire_named(name)
    assert wire.name == name
    assert all(each.startswith("/") for each in wire.paths)


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("reply", REPLIES)
def test_what_a_wire_renders_it_reads(name: str, streaming: bool, reply: Reply) -> None:
    wire = wire_named(name)
    pieces = list(wire.render(reply, streaming))
    read = wire.read_answer(b"".join(pieces), streaming)
    assert (read.text or "") == (reply.text or "")
    assert read.tool_calls == reply.tool_calls
    assert read.has_choice
    assert read.finish is not None
    assert (len(pieces) > 1) == streaming


@pytest.mark.parametrize("name", WIRES)
@given(body=st.binary(max_size=80), method=st.sampled_from(["GET", "POST", "PUT"]))
def test_a_wire_reads_anything_without_raising(name: str, body: bytes, method: str) -> None:
    wire = wire_named(name)
    for path in wire.paths:
        parsed = wire.parse(HttpRequest(method, path.replace("*", "x"), "", (), body))
        assert isinstance(parsed, ModelRequest | Refusal | PlainAnswer)


@pytest.mark.parametrize("name", WIRES)
@given(body=st.binary(max_size=80), streaming=st.booleans())
def test_a_wire_reads_any_answer_without_raising(name: str, body: bytes, streaming: bool) -> None:
    assert wire_named(name).read_answer(body, streaming) is not None


@pytest.mark.parametrize("name", WIRES)
def test_errors_are_json_and_unknown_slugs_have_a_text(name: str) -> None:
    for slug in ("key_rejected", "server_out_of_memory", "upstream_failed", "no such slug"):
        assert json.loads(wire_named(name).render_error(500, slug))
        assert "own words" in wire_named(name).render_error(500, slug, "own words").decode()


@pytest.mark.parametrize("name", WIRES)
def test_the_key_goes_into_a_header(name: str) -> None:
    headers = wire_named(name).key_headers("sk-x")
    assert any("sk-x" in value for _, value in headers)
