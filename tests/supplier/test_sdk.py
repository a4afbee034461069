"""The real openai SDK against the supplier: what its users see."""

import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import need_harness
from tests.supplier.serving import LIMIT_SECONDS, TWO_STEPS, Serving, assistant, call, fault

pytestmark = pytest.mark.harness
ASK: list[Any] = [{"role": "user", "content": "Fix it."}]
TOOLS: list[Any] = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]


@pytest.fixture(autouse=True)
def _sdk() -> None:
    need_harness("openai")


def client(serving: Serving, *, timeout: float = LIMIT_SECONDS) -> Any:
    return import_module("openai").OpenAI(
        base_url=serving.process.openai_base_url, api_key="sk-x", timeout=timeout
    )


def test_replies_and_streams_give_the_recorded_text_and_calls(tmp_path: Path) -> None:
    lines = (assistant(1, call("a", "x" * 60), call("b", "y"), text="word " * 20), assistant(2, text="end"))
    with Serving(tmp_path, lines=lines) as serving, client(serving) as sdk:
        create = sdk.chat.completions.create
        stream = create(model="m", messages=ASK, tools=TOOLS, stream=True)
        text, arguments, ids = "", {0: "", 1: ""}, []
        for chunk in stream:
            # A naive loop: it takes the first choice of every chunk.
            delta = chunk.choices[0].delta
            text += delta.content or ""
            for each in delta.tool_calls or ():
                arguments[each.index] += each.function.arguments or ""
                ids += [each.id] if each.id else []
        calls = [
            {"id": each_id, "type": "function", "function": {"name": "bash", "arguments": arguments[index]}}
            for index, each_id in enumerate(ids)
        ]
        results = [{"role": "tool", "tool_call_id": each, "content": "ok"} for each in ids]
        history = [*ASK, {"role": "assistant", "content": text, "tool_calls": calls}, *results]
        last = create(model="m", messages=history, tools=TOOLS)
        assert [each.id for each in sdk.models.list()] == ["regcase"]
    assert text == "word " * 20
    assert list(arguments.values()) == [each["arguments"] for each in lines[0]["tool_calls"]]
    assert last.choices[0].message.content == "end"
    assert last.usage.completion_tokens > 0


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("kind", "error", "requests"),
    [
        ("no_answer", "APITimeoutError", 3),
        ("process_killed", "APIConnectionError", 1),
        ("server_out_of_memory", "InternalServerError", 3),
        ("key_rejected", "AuthenticationError", 1),
    ],
)
def test_a_fault_raises_what_the_real_thing_raises(
    kind: str, error: str, requests: int, streaming: bool, tmp_path: Path
) -> None:
    # Only silence is met by a time-out; a short one could be met by an answer that is a little late.
    timeout = 1.0 if kind == "no_answer" else LIMIT_SECONDS
    with Serving(tmp_path, fault=fault(kind, at_step=1)) as serving, client(serving, timeout=timeout) as sdk:
        with pytest.raises(getattr(import_module("openai"), error)) as raised:
            list(sdk.chat.completions.create(model="m", messages=ASK, tools=TOOLS, stream=streaming))
        events = serving.stop()
    assert type(raised.value).__name__ == error
    seen = [each for each in events if each["event"] == "request"]
    assert [each["client_retry"] for each in seen] == list(range(requests))


@pytest.mark.parametrize("streaming", [False, True])
def test_an_empty_answer_is_no_error_to_the_sdk(streaming: bool, tmp_path: Path) -> None:
    with Serving(tmp_path, fault=fault("empty_answer", at_step=1)) as serving, client(serving) as sdk:
        answer = sdk.chat.completions.create(model="m", messages=ASK, tools=TOOLS, stream=streaming)
        if streaming:
            assert "".join(each.choices[0].delta.content or "" for each in answer) == ""
        else:
            assert answer.choices[0].message.content == ""


def test_parallel_clients_are_all_answered(tmp_path: Path) -> None:
    answers: list[str | None] = []
    with Serving(tmp_path, lines=TWO_STEPS) as serving:

        def title() -> None:
            with client(serving) as sdk:
                answers.append(sdk.chat.completions.create(model="m", messages=ASK).choices[0].message.content)

        threads = [threading.Thread(target=title) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert answers == ["OK"] * 8
