import pytest

from pytest_regcase.supplier.protocol import HttpRequest
from pytest_regcase.supplier.routing import answering_wire, wire_of
from pytest_regcase.supplier.wires.anthropic_messages import AnthropicMessages
from pytest_regcase.supplier.wires.openai_chat import OpenAIChat
from pytest_regcase.supplier.wires.openai_responses import OpenAIResponses

CHAT, RESPONSES, ANTHROPIC = OpenAIChat(), OpenAIResponses(), AnthropicMessages()
ALL = (ANTHROPIC, CHAT, RESPONSES)


def request(path: str, **headers: str) -> HttpRequest:
    return HttpRequest(
        "GET", path, "", tuple((name.replace("_", "-"), each) for name, each in headers.items()), b""
    )


@pytest.mark.parametrize(
    ("path", "headers", "wire"),
    [
        ("/v1/chat/completions", {}, CHAT),
        ("/v1/responses", {}, RESPONSES),
        ("/v1/responses/input_tokens", {}, RESPONSES),
        ("/v1/messages", {}, ANTHROPIC),
        ("/v1/messages/count_tokens", {}, ANTHROPIC),
        ("/v1/models", {"authorization": "Bearer x"}, CHAT),
        ("/v1/models/gpt-x", {}, CHAT),
        ("/v1/models", {"anthropic_version": "2023-06-01"}, ANTHROPIC),
        ("/v1/models/claude-x", {"x_api_key": "sk"}, ANTHROPIC),
        ("/v1/files", {}, None),
        ("/v1/models/a/b", {}, None),
        ("/v1/chat/completions", {"x_api_key": "sk"}, CHAT),
    ],
)
def test_one_wire_serves_a_path_whatever_order_the_wires_are_in(
    path: str, headers: dict[str, str], wire: object
) -> None:
    for wires in (ALL, ALL[::-1]):
        assert wire_of(wires, request(path, **headers)) is wire


def test_what_no_wire_serves_is_refused_in_the_words_of_the_clients_own_api() -> None:
    assert answering_wire((CHAT, ANTHROPIC), request("/v1/files", anthropic_version="1")) is ANTHROPIC
    assert answering_wire((ANTHROPIC, CHAT), request("/v1/files")) is CHAT
    assert answering_wire((ANTHROPIC, CHAT)) is CHAT
    assert answering_wire((ANTHROPIC,)) is ANTHROPIC
