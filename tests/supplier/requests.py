"""Canonical requests for tests of the parts that know no wire."""

from collections.abc import Iterable

from pytest_regcase.supplier.protocol import Call, Message, ModelRequest


def user(text: str = "Fix it.") -> Message:
    return Message("user", text)


def said(*call_ids: str, text: str = "", name: str = "bash") -> Message:
    return Message("assistant", text, tuple(Call(each, name) for each in call_ids))


def got(call_id: str, text: str = "ok") -> Message:
    return Message("tool", text, tool_call_id=call_id)


def request(*messages: Message, tools: Iterable[str] = ("bash",)) -> ModelRequest:
    return ModelRequest("openai-chat", "m", False, messages or (user(),), tuple(tools))
