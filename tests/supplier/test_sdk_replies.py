"""The real SDKs on every wire: a script's texts and tool calls, parallel ones too, streamed and not.

Each test is one loop as an SDK's users write it: ask, run the calls, hand the results back, ask again.
"""

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.records.wire import WireEvent
from tests.conftest import need_harness
from tests.supplier.serving import Serving, assistant, call, fault

pytestmark = pytest.mark.harness
TEXT = "Some words, Ä and 中. " * 5
LINES = (assistant(1, call("c1", "x" * 60), call("c2", "y"), text=TEXT), assistant(2, text="end"))
CALLS = [("c1", "bash", {"command": "x" * 60}), ("c2", "bash", {"command": "y"})]
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
Said = tuple[str, list[tuple[str, str, Any]]]
"""The text of a reply, and its calls: id, name, arguments as a value."""
Loop = Callable[[Any], tuple[Said, Said]]


def openai_client(serving: Serving) -> Any:
    need_harness("openai")
    return import_module("openai").OpenAI(base_url=serving.process.openai_base_url, api_key="sk-x", max_retries=0)


def anthropic_client(serving: Serving) -> Any:
    need_harness("anthropic")
    return import_module("anthropic").Anthropic(
        base_url=serving.process.anthropic_base_url, api_key="sk-x", max_retries=0
    )


def _tool_messages(said: Said) -> list[dict[str, Any]]:
    return [{"role": "tool", "tool_call_id": each, "content": "ok"} for each, *_ in said[1]]


def chat(client: Any) -> tuple[Said, Said]:
    ask: dict[str, Any] = {
        "model": "m",
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}],
        "messages": [{"role": "user", "content": "Fix it."}],
    }
    message = client.chat.completions.create(**ask).choices[0].message
    first = (
        message.content,
        [(each.id, each.function.name, json.loads(each.function.arguments)) for each in message.tool_calls],
    )
    ask["messages"] += [
        message,
        *({"role": "tool", "tool_call_id": each, "content": "ok"} for each, *_ in first[1]),
    ]
    return first, (client.chat.completions.create(**ask).choices[0].message.content, [])


def chat_streamed(client: Any) -> tuple[Said, Said]:
    ask: dict[str, Any] = {
        "model": "m",
        "stream": True,
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}],
        "messages": [{"role": "user", "content": "Fix it."}],
    }

    def read() -> tuple[str, dict[int, list[str]]]:
        text, calls = "", dict[int, list[str]]()
        for chunk in client.chat.completions.create(**ask):
            # A naive loop: it takes the first choice of every chunk.
            delta = chunk.choices[0].delta
            text += delta.content or ""
            for each in delta.tool_calls or ():
                known = calls.setdefault(each.index, [each.id or "", each.function.name or "", ""])
                known[2] += each.function.arguments or ""
        return text, calls

    text, calls = read()
    made = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls.values()
    ]
    results = [{"role": "tool", "tool_call_id": each["id"], "content": "ok"} for each in made]
    ask["messages"] += [{"role": "assistant", "content": text, "tool_calls": made}, *results]
    second, none = read()
    assert none == {}
    return (text, [(call_id, name, json.loads(each)) for call_id, name, each in calls.values()]), (second, [])


def chat_helper(client: Any) -> tuple[Said, Said]:
    ask: dict[str, Any] = {
        "model": "m",
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}],
        "messages": [{"role": "user", "content": "Fix it."}],
        # The helper asks for usage itself; the chunk with it has no choice.
        "stream_options": {"include_usage": True},
    }
    with client.chat.completions.stream(**ask) as stream:
        whole = stream.get_final_completion()
    assert whole.usage.completion_tokens > 0
    message = whole.choices[0].message
    first = (
        message.content,
        [(each.id, each.function.name, json.loads(each.function.arguments)) for each in message.tool_calls],
    )
    ask["messages"] += [
        message,
        *({"role": "tool", "tool_call_id": each, "content": "ok"} for each, *_ in first[1]),
    ]
    with client.chat.completions.stream(**ask) as stream:
        return first, (stream.get_final_completion().choices[0].message.content, [])


def _of_response(response: Any) -> Said:
    calls = [each for each in response.output if each.type == "function_call"]
    return response.output_text, [(each.call_id, each.name, json.loads(each.arguments)) for each in calls]


def _outputs(said: Said) -> list[dict[str, Any]]:
    return [{"type": "function_call_output", "call_id": each, "output": "ok"} for each, *_ in said[1]]


RESPONSES: dict[str, Any] = {"model": "m", "tools": [{"type": "function", "name": "bash", "parameters": SCHEMA}]}


def responses(client: Any) -> tuple[Said, Said]:
    asked = [{"role": "user", "content": "Fix it."}]
    response = client.responses.create(**RESPONSES, input=asked)
    first = _of_response(response)
    following = [*asked, *response.output, *_outputs(first)]
    return first, _of_response(client.responses.create(**RESPONSES, input=following))


def responses_by_id(client: Any) -> tuple[Said, Said]:
    response = client.responses.create(**RESPONSES, input="Fix it.")
    first = _of_response(response)
    following = client.responses.create(**RESPONSES, input=_outputs(first), previous_response_id=response.id)
    return first, _of_response(following)


def responses_streamed(client: Any) -> tuple[Said, Said]:
    asked = [{"role": "user", "content": "Fix it."}]
    text, done, whole = "", [], None
    for number, event in enumerate(client.responses.create(**RESPONSES, input=asked, stream=True)):
        assert event.sequence_number == number
        if event.type == "response.output_text.delta":
            text += event.delta
        elif event.type == "response.output_item.done":
            done.append(event.item)
        elif event.type == "response.completed":
            whole = event.response
    assert whole is not None
    assert whole.output == done
    first = _of_response(whole)
    assert first[0] == text
    with client.responses.stream(**RESPONSES, input=[*asked, *done, *_outputs(first)]) as stream:
        return first, _of_response(stream.get_final_response())


def responses_helper(client: Any) -> tuple[Said, Said]:
    asked = [{"role": "user", "content": "Fix it."}]
    with client.responses.stream(**RESPONSES, input=asked) as stream:
        response = stream.get_final_response()
    first = _of_response(response)
    with client.responses.stream(**RESPONSES, input=_outputs(first), previous_response_id=response.id) as stream:
        return first, _of_response(stream.get_final_response())


MESSAGES: dict[str, Any] = {
    "model": "m",
    "max_tokens": 99,
    "system": "Be brief.",
    "tools": [{"name": "bash", "input_schema": SCHEMA}],
}


def _of_message(message: Any) -> Said:
    uses = [each for each in message.content if each.type == "tool_use"]
    text = "".join(each.text for each in message.content if each.type == "text")
    return text, [(each.id, each.name, each.input) for each in uses]


def _with_results(message: Any, said: Said) -> list[Any]:
    blocks = [{"type": "tool_result", "tool_use_id": each, "content": "ok"} for each, *_ in said[1]]
    return [
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": message.content},
        {"role": "user", "content": blocks},
    ]


def messages(client: Any) -> tuple[Said, Said]:
    message = client.messages.create(**MESSAGES, messages=[{"role": "user", "content": "Fix it."}])
    first = _of_message(message)
    assert message.stop_reason == "tool_use"
    last = client.messages.create(**MESSAGES, messages=_with_results(message, first))
    assert last.stop_reason == "end_turn"
    assert last._request_id.startswith("req_")
    return first, _of_message(last)


def messages_streamed(client: Any) -> tuple[Said, Said]:
    text = ""
    with client.messages.stream(**MESSAGES, messages=[{"role": "user", "content": "Fix it."}]) as stream:
        for piece in stream.text_stream:
            text += piece
        message = stream.get_final_message()
    first = _of_message(message)
    assert first[0] == text
    assert message.stop_reason == "tool_use"
    assert message.usage.output_tokens > 0
    kinds = [
        each.type
        for each in client.messages.create(**MESSAGES, messages=_with_results(message, first), stream=True)
    ]
    assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
    # The SDK drops the pings. The client lost that answer, say, and asks once more: the same reply again.
    again = client.messages.create(
        **MESSAGES, messages=_with_results(message, first), extra_headers={"x-stainless-retry-count": "1"}
    )
    return first, _of_message(again)


LOOPS = [
    *((openai_client, each) for each in (chat, chat_streamed, chat_helper)),
    *((openai_client, each) for each in (responses, responses_by_id, responses_streamed, responses_helper)),
    *((anthropic_client, each) for each in (messages, messages_streamed)),
]


@pytest.mark.parametrize(("connect", "loop"), LOOPS, ids=[each.__name__ for _, each in LOOPS])
def test_a_loop_gets_the_scripts_text_and_calls_and_stays_on_the_prefix(
    connect: Callable[[Serving], Any], loop: Loop, tmp_path: Path
) -> None:
    with Serving(tmp_path, lines=LINES, lines_from="script") as serving, connect(serving) as client:
        first, second = loop(client)
        events: tuple[WireEvent, ...] = serving.stop()
    assert first == (TEXT, CALLS)
    assert second == ("end", [])
    seen = [each for each in events if each["event"] == "request"]
    assert [each["step"] for each in seen][:2] == [1, 2]
    assert not any("off_prefix" in each for each in seen)
    wire = "anthropic-messages" if connect is anthropic_client else "openai-"
    assert all(each["wire"].startswith(wire) for each in seen)


def test_lists_of_models_and_token_counts_are_answered(tmp_path: Path) -> None:
    asked: Any = [{"role": "user", "content": "Fix it."}]
    with Serving(tmp_path, lines=LINES) as serving:
        with anthropic_client(serving) as client:
            assert client.messages.count_tokens(model="m", messages=asked).input_tokens > 0
            assert [each.id for each in client.models.list()] == ["regcase"]
            assert client.models.retrieve("claude-x").id == "claude-x"
        with openai_client(serving) as client:
            assert client.responses.input_tokens.count(model="m", input="Fix it.").input_tokens > 0
            assert [each.id for each in client.models.list()] == ["regcase"]


@pytest.mark.parametrize(
    ("connect", "ask"),
    [
        (openai_client, lambda client: client.responses.create(model="m", input="x")),
        (
            anthropic_client,
            lambda client: client.messages.create(
                model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]
            ),
        ),
    ],
    ids=["responses", "messages"],
)
def test_a_rejected_key_raises_what_the_real_one_raises(
    connect: Callable[[Serving], Any], ask: Callable[[Any], Any], tmp_path: Path
) -> None:
    with Serving(tmp_path, fault=fault("key_rejected", at_step=1)) as serving, connect(serving) as client:
        with pytest.raises(Exception, match="401") as raised:
            ask(client)
        serving.stop()
    assert type(raised.value).__name__ == "AuthenticationError"
    error: Any = raised.value
    assert error.request_id.startswith("req_")
    body = error.body
    word = body["error"]["type"] if connect is anthropic_client else body["code"]
    assert word in ("authentication_error", "invalid_api_key")
