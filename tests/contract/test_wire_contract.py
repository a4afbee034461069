"""What every registered wire must keep. A third party's wire runs through it by being registered."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_regcase import registry
from pytest_regcase.supplier.protocol import Call, HttpRequest, ModelRequest, PlainAnswer, Refusal, Reply
from pytest_regcase.supplier.routing import wire_of

WIRES = sorted(registry.names("wires"))
REPLIES = [
    pytest.param(Reply("i", "m", 1, "text"), id="text"),
    pytest.param(Reply("i", "m", 1, None, (Call("c", "f", '{"a": 1}'),)), id="call"),
    pytest.param(Reply("i", "m", 1, "Ä 中", (Call("c", "f", "{}"), Call("d", "g", "{}"))), id="parallel"),
    pytest.param(Reply("i", "m", 1, ""), id="empty"),
]
SLUGS = [
    *("bad_json", "bad_request", "no_model", "no_messages", "bad_messages", "unknown_url", "bad_method"),
    *("too_large", "key_rejected", "key_expired", "permission_denied", "quota_exhausted", "credit_too_low"),
    *("budget_exceeded", "payment_required", "rate_limited", "server_out_of_memory", "internal_error"),
    *("engine_dead", "loading", "service_unavailable", "overloaded", "context_too_long", "content_filtered"),
    "upstream_failed",
]
texts = st.text(max_size=60)
arguments = st.dictionaries(st.text(max_size=5), st.text(max_size=9) | st.integers() | st.none(), max_size=3).map(
    json.dumps
)
calls = st.builds(Call, st.text(min_size=1, max_size=9), st.text(min_size=1, max_size=9), arguments)
replies = st.builds(
    Reply,
    id=st.just("x_1"),
    model=st.just("m"),
    created=st.just(1),
    text=st.none() | texts,
    tool_calls=st.lists(calls, max_size=3, unique_by=lambda each: each.id).map(tuple),
    finish=st.none() | st.sampled_from(["stop", "length", "tool_calls", "end_turn", "tool_use", "odd"]),
    usage_asked=st.booleans(),
    prompt_tokens=st.integers(1, 99),
)


def wire_named(name: str) -> Any:
    return registry.load("wires", name)()


def request_for(path: str, *headers: str, method: str = "POST", body: bytes = b"") -> HttpRequest:
    return HttpRequest(method, path.replace("*", "x"), "", tuple((each, "v") for each in headers), body)


@pytest.mark.parametrize("name", WIRES)
def test_a_wire_goes_by_the_name_it_is_registered_under(name: str) -> None:
    wire = wire_named(name)
    assert wire.name == name
    assert all(each.startswith("/") for each in wire.paths)
    assert all(each == each.lower() for each in (*wire.marked_by, wire.request_id_header))
    assert wire.reply_id_prefix


@pytest.mark.parametrize("name", WIRES)
def test_a_request_to_a_path_of_a_wire_finds_it_among_all_wires(name: str) -> None:
    wires = [wire_named(each) for each in WIRES]
    wire = wire_named(name)
    for path in wire.paths:
        for order in (wires, wires[::-1]):
            found = wire_of(order, request_for(path, *wire.marked_by))
            assert found is not None
            # Without marks of its own, a path that is shared with another such wire would have two owners.
            assert found.name == name


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("reply", REPLIES)
def test_what_a_wire_renders_it_reads(name: str, streaming: bool, reply: Reply) -> None:
    wire = wire_named(name)
    pieces = list(wire.render(reply, streaming))
    read = wire.read_answer(b"".join(pieces), streaming)
    assert (read.text or "") == (reply.text or "")
    assert read.tool_calls == reply.tool_calls
    assert read.id == reply.id
    assert read.has_choice
    assert read.finish is not None
    assert read.error is None
    assert (len(pieces) > 1) == streaming


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("streaming", [False, True])
@given(reply=replies, data=st.data())
@settings(max_examples=40)
def test_any_reply_comes_back_and_half_of_it_never_raises(
    name: str, streaming: bool, reply: Reply, data: st.DataObject
) -> None:
    wire = wire_named(name)
    whole = b"".join(wire.render(reply, streaming))
    read = wire.read_answer(whole, streaming)
    assert (read.text or "") == (reply.text or "")
    sent, back = (reply.tool_calls, read.tool_calls)
    assert [(each.id, each.name) for each in back] == [(each.id, each.name) for each in sent]
    # Where an API takes arguments as an object, their spacing is its own.
    assert [json.loads(each.arguments) for each in back] == [json.loads(each.arguments) for each in sent]
    half = wire.read_answer(whole[: data.draw(st.integers(0, len(whole)))], streaming)
    assert (read.text or "").startswith(half.text or "")


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("reply", REPLIES)
def test_an_unfinished_stream_is_the_beginning_of_the_whole_one_and_does_not_say_that_it_ended(
    name: str, reply: Reply
) -> None:
    wire = wire_named(name)
    whole, unfinished = b"".join(wire.render(reply, True)), b"".join(wire.render_unfinished(reply))
    assert whole.startswith(unfinished)
    assert len(unfinished) < len(whole)
    assert unfinished.endswith(b"\n\n")
    read = wire.read_answer(unfinished, True)
    assert read.finish is None
    assert (read.text or "") == (reply.text or "")
    assert read.tool_calls == reply.tool_calls


@pytest.mark.parametrize("name", WIRES)
@given(body=st.binary(max_size=80), method=st.sampled_from(["GET", "POST", "PUT"]))
@settings(max_examples=30)
def test_a_wire_reads_anything_without_raising(name: str, body: bytes, method: str) -> None:
    wire = wire_named(name)
    for path in wire.paths:
        parsed = wire.parse(request_for(path, method=method, body=body))
        assert isinstance(parsed, ModelRequest | Refusal | PlainAnswer)


@pytest.mark.parametrize("name", WIRES)
@given(body=st.binary(max_size=80), streaming=st.booleans())
@settings(max_examples=30)
def test_a_wire_reads_any_answer_without_raising(name: str, body: bytes, streaming: bool) -> None:
    assert wire_named(name).read_answer(body, streaming) is not None


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("slug", SLUGS)
def test_an_error_is_json_with_words_of_the_api_or_ours(name: str, slug: str) -> None:
    wire = wire_named(name)
    error = json.loads(wire.render_error(500, slug, request_id="req_1"))["error"]
    assert error["type"]
    assert error["message"] not in ("", slug)
    assert json.loads(wire.render_error(500, slug, "own words"))["error"]["message"] == "own words"


@pytest.mark.parametrize("name", WIRES)
def test_an_unknown_slug_has_a_text(name: str) -> None:
    assert json.loads(wire_named(name).render_error(418, "no such slug"))["error"]["message"] == "no such slug"


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize("after", REPLIES)
def test_an_error_inside_a_stream_is_read_as_one(name: str, after: Reply) -> None:
    wire = wire_named(name)
    frame = wire.render_error_event(529, "overloaded", "own words")
    assert frame.endswith(b"\n\n")
    assert b"own words" in frame
    read = wire.read_answer(b"".join(wire.render_unfinished(after)) + frame, True)
    assert read.error is not None
    assert "own words" not in read.error
    assert read.finish is None


@pytest.mark.parametrize("name", WIRES)
def test_the_key_goes_into_a_header(name: str) -> None:
    headers = wire_named(name).key_headers("sk-x")
    assert any("sk-x" in value for _, value in headers)
