import json
from typing import Any

import pytest

from pytest_regcase.supplier.protocol import Call, HttpRequest, Message, ModelRequest, PlainAnswer, Refusal, Reply
from pytest_regcase.supplier.wires.anthropic_messages import AnthropicMessages

WIRE = AnthropicMessages()
ASK = [{"role": "user", "content": "x"}]
PARALLEL = Reply("msg_1", "m", 1, "word " * 8, (Call("c1", "f", '{"a": 1}'), Call("c2", "g", "{}")))


def post(body: Any, path: str = "/v1/messages", method: str = "POST") -> HttpRequest:
    return HttpRequest(method, path, "", (), body if isinstance(body, bytes) else json.dumps(body).encode())


def parsed(**body: Any) -> ModelRequest:
    read = WIRE.parse(post({"model": "m", "max_tokens": 9, "messages": ASK, **body}))
    assert isinstance(read, ModelRequest)
    return read


def events(reply: Reply) -> list[dict[str, Any]]:
    found = []
    for each in WIRE.render(reply, True):
        name, data = each.decode().removesuffix("\n\n").split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
    return found


def test_tool_results_are_messages_of_their_own_in_their_place() -> None:
    messages = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
                {"type": "tool_use", "id": "c2", "name": "g", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
                {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "two"}]},
                {"type": "text", "text": "and now"},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c3"}]},
    ]
    system = [{"type": "text", "text": "Be "}, {"type": "text", "text": "brief.", "cache_control": {}}]
    tools = [{"name": "f", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}]
    read = parsed(messages=messages, system=system, tools=tools, stream=True)
    assert read.messages == (
        Message("system", "Be brief."),
        Message("user", "ab"),
        Message("assistant", "Looking.", (Call("c1", "f", '{"a": 1}'), Call("c2", "g", "{}"))),
        Message("tool", "one", tool_call_id="c1"),
        Message("tool", "two", tool_call_id="c2"),
        Message("user", "and now"),
        Message("tool", "", tool_call_id="c3"),
    )
    assert read.tools == ("f", "bash")
    assert read.streaming


def test_a_moving_cache_mark_does_not_change_the_conversation() -> None:
    marked = [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}]
    assert parsed(messages=marked).messages == parsed().messages


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "The request body is not valid JSON"),
        ({"messages": ASK, "max_tokens": 1}, "model: Field required"),
        ({"model": "m", "max_tokens": 1}, "messages: Field required"),
        ({"model": "m", "messages": []}, "max_tokens: Field required"),
        ({"model": "m", "messages": ASK, "max_tokens": 0}, "max_tokens: Input should be greater than or equal"),
        ({"model": "m", "messages": ASK, "max_tokens": "9"}, "max_tokens: Input should be a valid integer"),
        ({"model": "m", "messages": ASK, "max_tokens": True}, "max_tokens: Input should be a valid integer"),
        ({"model": "m", "messages": [], "max_tokens": 1}, "messages: at least one message is required"),
        ({"model": "m", "messages": "x", "max_tokens": 1}, "messages: Input should be a valid list"),
        ({"model": "m", "messages": [3], "max_tokens": 1}, "messages.0: Input should be a valid dictionary"),
        (
            {"model": "m", "messages": [{"role": "system", "content": "x"}], "max_tokens": 1},
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter',
        ),
        (
            {"model": "m", "messages": [*ASK, {"role": "tool", "content": "x"}], "max_tokens": 1},
            "messages.1.role: Input should be 'user' or 'assistant'",
        ),
        ({"model": "m", "messages": [{"role": "user"}], "max_tokens": 1}, "messages.0.content: Input should be"),
    ],
)
def test_a_malformed_request_is_refused_as_the_real_api_does(body: Any, message: str) -> None:
    refused = WIRE.parse(post(body))
    assert isinstance(refused, Refusal)
    answer = json.loads(WIRE.render_error(refused.status, refused.slug, refused.message, request_id="req_1"))
    assert (answer["type"], answer["request_id"]) == ("error", "req_1")
    assert answer["error"]["type"] == "invalid_request_error"
    assert answer["error"]["message"].startswith(message)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (402, "billing_error"),
        (403, "permission_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_the_type_of_an_error_follows_from_its_status(status: int, kind: str) -> None:
    assert json.loads(WIRE.render_error(status, "internal_error"))["error"]["type"] == kind


def test_a_wrong_method_is_refused() -> None:
    for path in WIRE.paths:
        refused = WIRE.parse(post(b"", path.replace("*", "x"), method="PUT"))
        assert isinstance(refused, Refusal)
        assert refused.status == 405


def test_tokens_are_counted_without_max_tokens() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "x" * 40}]}
    answer = WIRE.parse(post(body, "/v1/messages/count_tokens"))
    assert isinstance(answer, PlainAnswer)
    assert json.loads(answer.body) == {"input_tokens": 11}
    assert isinstance(WIRE.parse(post({}, "/v1/messages/count_tokens")), Refusal)


def test_models_are_listed() -> None:
    answers = [WIRE.parse(post(b"", path, "GET")) for path in ("/v1/models", "/v1/models/claude-x")]
    listed, one = (json.loads(each.body) for each in answers if isinstance(each, PlainAnswer))
    assert [each["id"] for each in listed["data"]] == ["regcase"]
    assert not listed["has_more"]
    assert (one["type"], one["id"]) == ("model", "claude-x")


def test_the_events_build_the_message_that_is_sent_where_nobody_streams() -> None:
    found = events(PARALLEL)
    whole = json.loads(b"".join(WIRE.render(PARALLEL, False)))
    kinds = [each["type"] for each in found]
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
    assert kinds.count("ping") == 1
    assert found[0]["message"]["content"] == []
    assert found[0]["message"]["stop_reason"] is None
    for index, block in enumerate(whole["content"]):
        own = [each for each in found if each.get("index") == index]
        assert [each["type"] for each in (own[0], own[-1])] == ["content_block_start", "content_block_stop"]
        deltas = [each["delta"] for each in own if each["type"] == "content_block_delta"]
        if block["type"] == "text":
            assert "".join(each["text"] for each in deltas) == block["text"]
        else:
            assert own[0]["content_block"]["input"] == {}
            assert json.loads("".join(each["partial_json"] for each in deltas) or "{}") == block["input"]
    assert found[-2]["delta"]["stop_reason"] == whole["stop_reason"] == "tool_use"
    assert found[-2]["usage"]["output_tokens"] == whole["usage"]["output_tokens"] > 0


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("arguments", ["{broken", '"a text"', '{"a": NaN}', '{"a": 1e999}'])
def test_arguments_that_are_no_object_stand_inside_of_one_and_come_back(arguments: str, streaming: bool) -> None:
    reply = Reply("msg_1", "m", 1, None, (Call("c", "f", arguments),))
    body = b"".join(WIRE.render(reply, streaming))
    assert b"INVALID_JSON" in body
    assert WIRE.read_answer(body, streaming).tool_calls == reply.tool_calls


@pytest.mark.parametrize(
    ("recorded", "calls", "sent"),
    [
        ("stop", (), "end_turn"),
        ("stop", PARALLEL.tool_calls, "tool_use"),
        ("length", PARALLEL.tool_calls, "max_tokens"),
        ("content_filter", (), "refusal"),
        ("odd", (), "end_turn"),
    ],
)
def test_finish_reasons_of_other_harnesses_are_translated(
    recorded: str, calls: tuple[Call, ...], sent: str
) -> None:
    reply = Reply("i", "m", 1, "x", calls, finish=recorded)
    assert json.loads(b"".join(WIRE.render(reply, False)))["stop_reason"] == sent


@pytest.mark.parametrize(
    ("body", "has_choice", "error"),
    [
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "sk-secret"}},
            False,
            "overloaded_error",
        ),
        ({"type": "message", "content": []}, True, None),
        ({"type": "message", "content": None}, False, None),
        ([], False, None),
    ],
)
def test_odd_upstream_answers_are_read_and_no_error_text_is_kept(body: Any, has_choice: bool, error: str) -> None:
    read = WIRE.read_answer(json.dumps(body).encode(), False)
    assert (read.has_choice, read.error) == (has_choice, error)
    assert "sk-secret" not in repr(read)


def test_a_call_that_broke_off_keeps_what_came() -> None:
    whole = b"".join(WIRE.render(Reply("msg_1", "m", 1, None, (Call("c", "f", '{"a": "bcd"}'),)), True))
    cut = whole[: whole.index(b"bcd") + 3] + b'"}}\n\n'
    assert WIRE.read_answer(cut, True).tool_calls == (Call("c", "f", '{"a": "bcd'),)
