import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_regcase.supplier.protocol import Call, HttpRequest, ModelRequest, PlainAnswer, Refusal, Reply
from pytest_regcase.supplier.wires.openai_chat import OpenAIChat

WIRE = OpenAIChat()
texts = st.text(st.characters(exclude_categories=["Cs"]))
calls = st.builds(Call, st.text(min_size=1, max_size=5), st.text(min_size=1, max_size=8), texts)
replies = st.builds(
    Reply,
    id=st.just("chatcmpl-1"),
    model=st.just("m"),
    created=st.just(1),
    text=st.none() | texts,
    tool_calls=st.lists(calls, max_size=3).map(tuple),
    usage_asked=st.booleans(),
    prompt_tokens=st.integers(1, 99),
)


def post(body: Any, path: str = "/v1/chat/completions", method: str = "POST") -> HttpRequest:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HttpRequest(method, path, "", (), content)


def parsed(**body: Any) -> ModelRequest:
    read = WIRE.parse(post({"model": "m", "messages": [{"role": "user", "content": "x"}], **body}))
    assert isinstance(read, ModelRequest)
    return read


def test_a_request_is_read() -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}, {"text": "b"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "out"},
    ]
    tools = [{"type": "function", "function": {"name": "f"}}, {"type": "custom"}]
    read = parsed(messages=messages, tools=tools, stream=True, stream_options={"include_usage": True})
    assert [each.text for each in read.messages] == ["ab", "", "out"]
    assert read.messages[1].tool_calls == (Call("c", "f", ""),)
    assert read.messages[2].tool_call_id == "c"
    assert read.tools == ("f",)
    assert read.streaming
    assert read.usage_asked


@pytest.mark.parametrize(
    ("body", "slug"),
    [
        (b"{", "bad_json"),
        (b"[]", "bad_json"),
        (b"[" * 100_000, "bad_json"),
        ({"messages": []}, "no_model"),
        ({"model": 3, "messages": []}, "no_model"),
        ({"model": "m"}, "no_messages"),
        ({"model": "m", "messages": []}, "bad_messages"),
        ({"model": "m", "messages": "x"}, "bad_messages"),
        ({"model": "m", "messages": ["x"]}, "bad_messages"),
    ],
)
def test_a_malformed_request_is_refused_as_the_real_api_does(body: Any, slug: str) -> None:
    refused = WIRE.parse(post(body))
    assert isinstance(refused, Refusal)
    assert (refused.status, refused.slug) == (400, slug)
    error = json.loads(WIRE.render_error(refused.status, refused.slug, refused.message))["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert error["message"]


def test_a_wrong_method_is_refused() -> None:
    refused = WIRE.parse(post(b"", method="GET"))
    assert isinstance(refused, Refusal)
    assert refused.status == 405


@pytest.mark.parametrize(("path", "name"), [("/v1/models", "regcase"), ("/v1/models/gpt-x", "gpt-x")])
def test_models_are_listed(path: str, name: str) -> None:
    answer = WIRE.parse(post(b"", path, "GET"))
    assert isinstance(answer, PlainAnswer)
    assert name in json.dumps(json.loads(answer.body))


@settings(max_examples=25)
@given(st.binary(max_size=200) | st.recursive(st.none() | st.text(), lambda each: st.lists(each)).map(repr))
def test_parsing_never_raises(body: Any) -> None:
    assert WIRE.parse(post(body)) is not None


@given(
    st.dictionaries(st.sampled_from(["model", "messages", "tools", "stream_options"]), st.integers() | st.text())
)
def test_odd_fields_never_raise(body: dict[str, Any]) -> None:
    assert WIRE.parse(post({"model": "m", "messages": [{"role": 3, "tool_calls": [{}, 1]}], **body})) is not None


@pytest.mark.parametrize("streaming", [False, True])
@given(reply=replies)
def test_what_is_rendered_is_read_back(streaming: bool, reply: Reply) -> None:
    read = WIRE.read_answer(b"".join(WIRE.render(reply, streaming)), streaming)
    expected_text = "" if reply.text is None and not reply.tool_calls else reply.text
    assert (read.text, read.tool_calls, read.id) == (expected_text, reply.tool_calls, reply.id)
    assert read.finish == ("tool_calls" if reply.tool_calls else "stop")
    assert read.has_choice
    assert read.error is None


@given(reply=replies)
def test_every_chunk_has_a_choice_unless_usage_was_asked_for(reply: Reply) -> None:
    *events, done = b"".join(WIRE.render(reply, True)).split(b"\n\n")[:-1]
    chunks = [json.loads(each.removeprefix(b"data: ")) for each in events]
    assert done == b"data: [DONE]"
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    without = [each for each in chunks if not each["choices"]]
    assert len(without) == reply.usage_asked
    assert all(each["usage"]["total_tokens"] > 0 for each in without)
    assert all(("usage" in each) == reply.usage_asked for each in chunks)


@pytest.mark.parametrize(
    ("recorded", "sent"), [("max_tokens", "length"), ("tool_use", "tool_calls"), ("odd", "stop")]
)
def test_finish_reasons_of_other_harnesses_are_translated(recorded: str, sent: str) -> None:
    reply = Reply("i", "m", 1, "x", finish=recorded)
    assert json.loads(b"".join(WIRE.render(reply, False)))["choices"][0]["finish_reason"] == sent


@pytest.mark.parametrize(
    ("body", "has_choice", "error"),
    [
        ({"error": {"message": "sk-secret", "code": "bad", "type": "t"}}, False, "bad"),
        ({"error": "text"}, False, "no code"),
        ({"choices": []}, False, None),
        ({"choices": [{"message": {"content": None}}]}, True, None),
        (3, False, None),
    ],
)
def test_odd_upstream_answers_are_read_and_no_error_text_is_kept(body: Any, has_choice: bool, error: str) -> None:
    read = WIRE.read_answer(json.dumps(body).encode(), False)
    assert (read.has_choice, read.error) == (has_choice, error)
    assert "sk-secret" not in repr(read)


def test_the_rejected_key_reads_as_the_real_api_words_it() -> None:
    error = json.loads(WIRE.render_error(401, "key_rejected"))["error"]
    assert error["code"] == "invalid_api_key"
    assert error["message"].startswith("Incorrect API key provided: ")


def test_a_stream_of_an_upstream_may_hold_line_separators_inside_its_texts() -> None:
    chunk = {"id": "i", "choices": [{"delta": {"content": "a\u2028b\x85c"}, "finish_reason": "stop"}]}
    body = b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\r\n\r\ndata: [DONE]\r\n\r\n"
    assert WIRE.read_answer(body, True).text == "a\u2028b\x85c"


@pytest.mark.parametrize(
    ("status", "slug", "kind", "code"),
    [
        (429, "quota_exhausted", "insufficient_quota", "insufficient_quota"),
        (429, "rate_limited", "tokens", "rate_limit_exceeded"),
        (422, "budget_exceeded", "budget_exceeded", "422"),
        (400, "context_too_long", "invalid_request_error", "context_length_exceeded"),
        (500, "engine_dead", "Internal Server Error", 500),
    ],
)
def test_errors_have_the_type_and_code_that_clients_branch_on(
    status: int, slug: str, kind: str, code: str | int
) -> None:
    error = json.loads(WIRE.render_error(status, slug))["error"]
    assert (error["type"], error["code"]) == (kind, code)
    assert set(error) == {"message", "type", "param", "code"}
