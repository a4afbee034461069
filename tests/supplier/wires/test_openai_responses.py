import json
from typing import Any

import pytest

from pytest_regcase.supplier.protocol import Call, HttpRequest, Message, ModelRequest, PlainAnswer, Refusal, Reply
from pytest_regcase.supplier.wires.openai_responses import OpenAIResponses

WIRE = OpenAIResponses()
PARALLEL = Reply("resp_1", "m", 1, "word " * 8, (Call("c1", "f", '{"a": 1}'), Call("c2", "g", "")))


def post(body: Any, path: str = "/v1/responses", method: str = "POST") -> HttpRequest:
    return HttpRequest(method, path, "", (), body if isinstance(body, bytes) else json.dumps(body).encode())


def parsed(**body: Any) -> ModelRequest:
    read = WIRE.parse(post({"model": "m", "input": "x", **body}))
    assert isinstance(read, ModelRequest)
    return read


def events(reply: Reply) -> list[dict[str, Any]]:
    found = []
    for each in WIRE.render(reply, True):
        name, data = each.decode().removesuffix("\n\n").split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
    return found


def test_an_assistants_turn_is_one_message_and_every_result_has_its_call() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "reasoning", "id": "rs_2", "summary": []},
        {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "raw"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]},
        {"type": "web_search_call", "id": "ws_1"},
    ]
    tools = [{"type": "function", "name": "f"}, {"type": "custom", "name": "patch"}, {"type": "local_shell"}]
    read = parsed(input=items, instructions="Be brief.", tools=tools, stream=True)
    assert read.messages == (
        Message("system", "Be brief."),
        Message("user", "a"),
        Message("assistant", "Looking.", (Call("c1", "f", "{}"), Call("c2", "patch", "raw"))),
        Message("tool", "one", tool_call_id="c1"),
        Message("tool", "two", tool_call_id="c2"),
    )
    assert read.tools == ("f", "patch", "local_shell")
    assert (read.streaming, read.kept, read.continues) == (True, True, None)


def test_a_text_is_a_user_message() -> None:
    assert parsed(store=False).messages == (Message("user", "x"),)
    assert not parsed(store=False).kept


def test_what_a_request_names_is_known_by_the_reply_it_was_in() -> None:
    output = json.loads(b"".join(WIRE.render(PARALLEL, False)))["output"]
    named = [{"type": "item_reference", "id": each["id"]} for each in (output[1], output[0])]
    result = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
    read = parsed(input=[named[0], result], previous_response_id="resp_0")
    assert read.continues == "resp_0"
    assert read.messages[0] == Message("assistant", "", stands_for="resp_1")
    assert parsed(input=[named[1]]).messages == (Message("assistant", "", stands_for="resp_1"),)
    # Several items of one reply in a row are one message.
    assert parsed(input=[*named, result]).messages == read.messages
    assert parsed(input=[{"type": "item_reference", "id": "rs_1"}, result]).messages == read.messages[1:]


@pytest.mark.parametrize(
    ("body", "slug", "param"),
    [
        (b"{", "bad_json", None),
        ({"input": "x"}, "no_model", "model"),
        ({"model": "m"}, "no_messages", "input"),
        ({"model": "m", "input": []}, "no_messages", "input"),
        ({"model": "m", "input": 3}, "bad_messages", "input"),
        ({"model": "m", "input": ["x"]}, "bad_messages", "input"),
    ],
)
def test_a_malformed_request_is_refused_as_the_real_api_does(body: Any, slug: str, param: str | None) -> None:
    for path in WIRE.paths:
        refused = WIRE.parse(post(body, path))
        assert isinstance(refused, Refusal)
        assert (refused.status, refused.slug) == (400, slug)
        error = json.loads(WIRE.render_error(refused.status, refused.slug, refused.message))["error"]
        assert (error["type"], error["param"]) == ("invalid_request_error", param)


def test_a_wrong_method_is_refused() -> None:
    refused = WIRE.parse(post(b"", method="GET"))
    assert isinstance(refused, Refusal)
    assert refused.status == 405


def test_tokens_are_counted() -> None:
    answer = WIRE.parse(post({"model": "m", "input": "x" * 40}, "/v1/responses/input_tokens"))
    assert isinstance(answer, PlainAnswer)
    assert json.loads(answer.body) == {"object": "response.input_tokens", "input_tokens": 11}


def test_the_events_are_numbered_and_build_the_response_that_ends_them() -> None:
    found = events(PARALLEL)
    assert [each["sequence_number"] for each in found] == list(range(len(found)))
    assert [each["type"] for each in found[:2]] == ["response.created", "response.in_progress"]
    assert found[0]["response"]["output"] == []
    assert found[0]["response"]["usage"] is None
    (end,) = [each for each in found if each["type"] == "response.completed"]
    assert end is found[-1]
    done = [each["item"] for each in found if each["type"] == "response.output_item.done"]
    assert end["response"] == json.loads(b"".join(WIRE.render(PARALLEL, False)))
    assert end["response"]["output"] == done
    assert [each["type"] for each in done] == ["message", "function_call", "function_call"]
    assert end["response"]["usage"]["output_tokens"] > 0
    for index, item in enumerate(done):
        deltas = [each for each in found if each["type"].endswith(".delta") and each["output_index"] == index]
        assert {each["item_id"] for each in deltas} <= {item["id"]}
        assert "".join(each["delta"] for each in deltas) == item.get("arguments", PARALLEL.text)


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("refusal", "content_filter")])
def test_a_reply_that_was_cut_short_is_incomplete(finish: str, reason: str) -> None:
    reply = Reply("resp_1", "m", 1, "half", finish=finish)
    end = events(reply)[-1]
    assert end["type"] == "response.incomplete"
    assert end["response"]["incomplete_details"] == {"reason": reason}
    assert WIRE.read_answer(b"".join(WIRE.render(reply, True)), True).finish in ("length", "content_filter")


@pytest.mark.parametrize(
    ("body", "has_choice", "error"),
    [
        ({"output": []}, False, None),
        ({"output": [{"type": "reasoning"}]}, False, None),
        ({"status": "failed", "error": {"code": "server_error", "message": "sk-secret"}}, False, "server_error"),
        ({"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]}, True, None),
        (3, False, None),
    ],
)
def test_odd_upstream_answers_are_read_and_no_error_text_is_kept(body: Any, has_choice: bool, error: str) -> None:
    read = WIRE.read_answer(json.dumps(body).encode(), False)
    assert (read.has_choice, read.error) == (has_choice, error)
    assert "sk-secret" not in repr(read)


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "error", "code": "server_error", "message": "sk-secret", "param": None},
        {"type": "error", "error": {"type": "server_error", "code": "server_error", "message": "sk-secret"}},
        {"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error"}}},
    ],
)
def test_every_form_of_an_error_in_a_stream_is_read(frame: dict[str, Any]) -> None:
    read = WIRE.read_answer(b"data: " + json.dumps(frame).encode() + b"\n\n", True)
    assert (read.error, read.finish) == ("server_error", None)
