"""Chat messages in three spellings become the same lines."""

from typing import Any

import pytest

from pytest_regcase.importers.chat_messages import ChatLines, arguments_text, content_of, tool_calls_of
from pytest_regcase.records.trial import ToolCall, TranscriptLine

CALL = ToolCall(id="call_1", name="bash", arguments='{"command": "ls"}')
OPENAI: list[Any] = [
    {"role": "system", "content": "You are an agent."},
    {"role": "user", "content": [{"type": "text", "text": "Fix it."}]},
    {
        "role": "assistant",
        "content": "Look.",
        "tool_calls": [{"id": "call_1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "calc.py"},
    {"role": "assistant", "content": "Done."},
]
ANTHROPIC: list[Any] = [
    {"role": "system", "content": "You are an agent."},
    {"role": "user", "content": "Fix it."},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Look."},
            {"type": "tool_use", "id": "call_1", "name": "bash", "input": {"command": "ls"}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "calc.py"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
]
RESPONSES: list[Any] = [
    {"role": "developer", "content": "You are an agent."},
    {"role": "user", "content": [{"type": "input_text", "text": "Fix it."}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Look."}]},
    {"type": "function_call", "call_id": "call_1", "id": "fc_1", "name": "bash", "arguments": '{"command": "ls"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "calc.py"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
]


def lines_of(messages: list[Any]) -> list[TranscriptLine]:
    return ChatLines().take_all(messages).lines


def without_places(messages: list[Any]) -> list[dict[str, Any]]:
    return [line.model_dump(exclude={"origin"}) for line in lines_of(messages)]


def test_steps_roles_and_places() -> None:
    assert [(line.step, line.role, line.text, line.origin) for line in lines_of(OPENAI)] == [
        (0, "system", "You are an agent.", "messages[0]"),
        (0, "user", "Fix it.", "messages[1]"),
        (1, "assistant", "Look.", "messages[2]"),
        (1, "tool", "calc.py", "messages[3]"),
        (2, "assistant", "Done.", "messages[4]"),
    ]
    assert lines_of(OPENAI)[2].tool_calls == (CALL,)
    assert lines_of(OPENAI)[3].tool_call_id == "call_1"


@pytest.mark.parametrize("messages", [ANTHROPIC, RESPONSES], ids=["anthropic", "responses"])
def test_the_three_spellings_say_the_same(messages: list[Any]) -> None:
    assert without_places(messages) == without_places(OPENAI)


def test_a_block_of_a_message_has_its_own_place() -> None:
    assert lines_of(ANTHROPIC)[3].origin == "messages[3].content[0]"
    assert [line.origin for line in lines_of(RESPONSES)] == [f"messages[{each}]" for each in (0, 1, 2, 4, 5)]


@pytest.mark.parametrize(
    "call",
    [
        {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}},
        {"id": "call_1", "function": {"name": "bash", "arguments": {"command": "ls"}}},
        {"id": "call_1", "name": "bash", "arguments": '{"command": "ls"}'},
        {"id": "call_1", "name": "bash", "args": {"command": "ls"}, "type": "tool_call"},
        {"call_id": "call_1", "id": "fc_1", "name": "bash", "arguments": '{"command": "ls"}'},
        ["call_1", "bash", '{"command": "ls"}'],
    ],
    ids=str,
)
def test_each_spelling_of_a_call(call: Any) -> None:
    assert tool_calls_of([call]) == (CALL,)


@pytest.mark.parametrize(
    "value", [None, 1, "x", [None], [{}], [{"name": ""}], [["a", "", "{}"]], [{"function": 1}]]
)
def test_what_is_no_call_is_none(value: Any) -> None:
    assert tool_calls_of(value) == ()


@pytest.mark.parametrize(
    ("value", "written"), [(None, "{}"), ("", ""), ("{a", "{a"), ({"é": 1}, '{"é": 1}'), ([1], "[1]"), (0, "0")]
)
def test_arguments_are_kept_as_written(value: Any, written: str) -> None:
    assert arguments_text(value) == written


def test_a_result_far_behind_has_the_step_of_its_call() -> None:
    late = [OPENAI[2], {"role": "assistant", "content": "And more."}, OPENAI[3]]
    assert [line.step for line in lines_of(late)] == [1, 2, 1]


def test_parallel_calls_and_a_text_behind_results() -> None:
    results = [
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "no"}], "is_error": True},
        {"type": "tool_result", "tool_use_id": "b"},
        {"type": "text", "text": "Go on."},
    ]
    lines = lines_of([{"role": "user", "content": results}])
    assert [(line.role, line.tool_call_id, line.text, line.error) for line in lines] == [
        ("tool", "a", "no", "no"),
        ("tool", "b", None, None),
        ("user", None, "Go on.", None),
    ]


def test_items_of_the_models_in_a_row_are_one_reply_until_it_is_ended() -> None:
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    chat = ChatLines().take_all([call, {**call, "call_id": "b"}])
    assert [len(line.tool_calls) for line in chat.lines] == [2]
    chat.end_reply()
    chat.take({**call, "call_id": "c"}, "x")
    assert [len(line.tool_calls) for line in chat.lines] == [2, 1]
    assert chat.replies == 2


def test_two_plain_answers_in_a_row_are_two_replies() -> None:
    assert [line.step for line in lines_of([OPENAI[4], OPENAI[4]])] == [1, 2]


def test_a_plain_answer_with_its_calls_as_items_is_one_reply() -> None:
    assert [line.tool_calls for line in lines_of([{"role": "assistant", "content": "Look."}, RESPONSES[3]])] == [
        (CALL,)
    ]


def test_a_failed_call_is_no_reply_and_stands_on_the_step_that_never_came() -> None:
    chat = ChatLines().take_all(OPENAI[:4])
    line = chat.failed_call("log[9]", "timed out", model="m")
    assert (line.step, line.is_reply, line.error, line.model) == (2, False, "timed out", "m")
    assert chat.replies == 1


def test_a_whole_response_is_one_reply() -> None:
    response = {
        "object": "response",
        "model": "m",
        "usage": {"input_tokens": 3, "output_tokens_details": None},
        "output": [{"type": "reasoning", "summary": []}, RESPONSES[2], RESPONSES[3]],
    }
    chat = ChatLines()
    chat.take(response, "x")
    (line,) = chat.lines
    assert (line.text, line.tool_calls, line.model, line.usage) == ("Look.", (CALL,), "m", {"input_tokens": 3})
    assert chat.missing == ["1 content part of type reasoning left out"]


def test_what_is_left_out_is_said() -> None:
    content = ["a", {"type": "text", "text": "b"}, {"type": "image_url"}, {"type": 3}, 4, {"text": "c"}]
    chat = ChatLines().take_all([{"role": "user", "content": content}, {"role": "critic"}, 42])
    assert chat.lines[0].text == "abc"
    assert chat.missing == [
        "1 content part of type image_url left out",
        "2 content parts of type unknown left out",
        "2 messages without a role that we know left out",
    ]


def test_an_absent_text_is_not_an_empty_one() -> None:
    assert content_of(None).text is None
    assert content_of("").text == ""
    assert content_of([]).text == ""
    assert content_of(ANTHROPIC[2]["content"][1:]).text is None


def test_facts_given_win_over_what_the_message_says() -> None:
    chat = ChatLines()
    message = {"role": "assistant", "content": "x", "finish_reason": "stop", "model": "a", "timestamp": 1.5}
    chat.take(message, "m", model="b", offered_tools=("bash",))
    (line,) = chat.lines
    assert (line.finish, line.model, line.offered_tools) == ("stop", "b", ("bash",))
    assert line.at is not None
    assert line.at.timestamp() == 1.5


def test_the_call_of_2023() -> None:
    old = {"role": "assistant", "content": None, "function_call": {"name": "bash", "arguments": "{}"}}
    (reply, result) = lines_of([old, {"role": "function", "name": "bash", "content": "ok"}])
    assert reply.tool_calls == (ToolCall(name="bash"),)
    assert (result.role, result.step, result.tool_call_id) == ("tool", 1, None)


@pytest.mark.parametrize("wrong", [None, [], {}, 1, "x", [[]], [{"type": []}]], ids=repr)
def test_any_field_may_be_of_another_type(wrong: Any) -> None:
    for message in [*OPENAI, *ANTHROPIC, *RESPONSES]:
        for key in message:
            ChatLines().take({**message, key: wrong}, "x")


@pytest.mark.parametrize("kind", ["custom_tool_call", "function_call"])
def test_items_without_a_name_or_with_odd_values(kind: str) -> None:
    chat = ChatLines().take_all([{"type": kind}, {"type": f"{kind}_output", "output": {"a": 1}}])
    assert [(line.role, line.text) for line in chat.lines] == [("assistant", None), ("tool", '{"a": 1}')]
