"""What goes into a callable and comes out of it is read as its API says."""

from collections.abc import Iterator
from typing import Any

import pytest

from pytest_regcase import registry
from pytest_regcase.errors import UsageRefused
from pytest_regcase.supplier.in_process import inject
from pytest_regcase.supplier.in_process.reading import CallReader
from pytest_regcase.supplier.protocol import Call, Message

TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]


def reader(wire: str = "openai-chat", **options: Any) -> CallReader:
    return CallReader(registry.load("wires", wire)(), options.get("read"))


class Model:
    """An object of a client library."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        assert mode == "json"
        return self._data


CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1",
    "choices": [{"message": {"content": "Looking.", "tool_calls": [CALL]}, "finish_reason": "tool_calls"}],
}
CHUNKS: list[dict[str, Any]] = [
    {"choices": [{"delta": {"role": "assistant", "content": "Look"}, "finish_reason": None}]},
    {"choices": [{"delta": {"content": "ing."}, "finish_reason": None}]},
    {"choices": [{"delta": {}, "finish_reason": "stop"}]},
]
MESSAGE = {"id": "msg_1", "content": [{"type": "text", "text": "Looking."}], "stop_reason": "end_turn"}


@pytest.mark.parametrize("reply", [COMPLETION, Model(COMPLETION)], ids=["json", "object"])
def test_a_reply_of_an_api(reply: Any) -> None:
    said = reader().reply(reply)
    assert (said.text, said.tool_calls) == ("Looking.", (Call("c1", "bash", '{"command": "ls"}'),))


def test_a_reply_of_another_api() -> None:
    assert reader("anthropic-messages").reply(MESSAGE).text == "Looking."


def test_the_parts_of_a_stream() -> None:
    chunks = [Model(each) for each in CHUNKS]
    said = reader().parts(chunks, whole=True)
    assert (said.text, said.finish) == ("Looking.", "stop")
    assert reader().parts(chunks[:1], whole=False).text == "Look"
    assert reader().parts([], whole=True).text == ""


def test_what_cannot_be_read_is_refused_unless_somebody_can() -> None:
    with pytest.raises(UsageRefused, match="it is a int, no text and no answer of openai-chat") as refused:
        reader().reply(42)
    assert "Pass read=" in refused.value.text
    with pytest.raises(UsageRefused, match="it is a object"):
        reader().parts([object()], whole=True)
    assert reader(read=str).reply(42).text == "42"
    assert reader(read=str).parts([4, 2], whole=True).text == "42"
    assert reader(read=lambda _: None).reply(42).text == ""


def test_arguments_like_those_of_an_api() -> None:
    request = reader().request(
        (), {"messages": [{"role": "user", "content": "Go."}], "tools": TOOLS}, streaming=False
    )
    assert (request.messages, request.tools) == ((Message("user", "Go."),), ("bash",))


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [(("Go.",), {}), ((), {"prompt": "Go."}), (([{"role": "user", "content": "Go."}],), {"model": "m"})],
)
def test_other_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    assert reader().request(args, kwargs, streaming=True).messages == (Message("user", "Go."),)


def test_arguments_that_say_nothing() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert reader().request((loop,), {}, streaming=False).messages == (Message("user", ""),)


def test_a_finished_stream_is_whole_though_nobody_read_its_end() -> None:
    def chat() -> Iterator[Any]:
        yield from CHUNKS
        yield {"choices": []}

    injection = inject(chat, "auth-rejected-v1", errors={"auth": OSError}, failing_step=2)
    for chunk in (stream := injection.supplier()):
        if chunk["choices"] and chunk["choices"][0]["finish_reason"]:
            stream.close()
            break
    assert [(each.text, each.unfinished) for each in injection.facts().replies] == [("Looking.", False)]


def test_an_unreadable_reply_is_no_reply() -> None:
    injection = inject(lambda: 42, "auth-rejected-v1", errors={"auth": OSError}, failing_step=2)
    with pytest.raises(UsageRefused):
        injection.supplier()
    assert injection.facts().upstream_failures == ("UsageRefused",)
