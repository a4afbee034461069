import json
from typing import Any

import pytest

from pytest_regcase import registry
from pytest_regcase.records.wire import Delivery, NotApplicable
from tests.supplier.faults.conftest import FaultyService
from tests.supplier.serving import Response

WIRES = sorted(registry.names("wires"))
LISTS = {"openai-chat": "choices", "openai-responses": "output", "anthropic-messages": "content"}
WHOLE_200 = Delivery(answer="complete", status=200, then="answered")


def fault_of(kind: str, **settings: Any) -> Any:
    cls = registry.load("faults", kind)
    return cls(cls.settings_model(**settings))


def documents(answer: Response) -> list[Any]:
    lines = [each.removeprefix(b"data: ") for each in answer.body.split(b"\n") if each.startswith(b"data: {")]
    return [json.loads(each) for each in lines]


@pytest.mark.parametrize("wire", WIRES)
def test_the_list_of_answers_is_empty(wire: str, faulty: FaultyService) -> None:
    answer = faulty.meet("empty_choices", wire=wire)
    assert (answer.status, answer.json[LISTS[wire]]) == (200, [])
    read = registry.load("wires", wire)().read_answer(answer.body, False)
    assert (read.text or "", read.tool_calls, read.error) == ("", (), None)
    assert read.id
    assert fault_of("empty_choices").declares(wire, False) == WHOLE_200


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_begins_and_ends_without_any_part_of_an_answer(wire: str, faulty: FaultyService) -> None:
    answer = faulty.meet("empty_choices", wire=wire, streaming=True)
    found = documents(answer)
    if wire == "openai-chat":
        assert [each["choices"] for each in found] == [[]] * len(found)
        assert answer.body.endswith(b"data: [DONE]\n\n")
    elif wire == "anthropic-messages":
        kinds = [each["type"] for each in found if each["type"] != "ping"]
        assert kinds == ["message_start", "message_delta", "message_stop"]
    else:
        assert found[-1]["type"] == "response.completed"
        assert found[-1]["response"]["output"] == []
        assert not [each for each in found if "output_index" in each]
    assert len(found) >= 2


def test_an_unknown_wire_has_no_such_list() -> None:
    declared = fault_of("empty_choices").declares("some-other-wire", False)
    assert isinstance(declared, NotApplicable)
    assert "some-other-wire" in declared.reason


def test_a_text_can_be_null_in_chat_completions_only(faulty: FaultyService) -> None:
    fault = fault_of("empty_answer", content="null")
    assert isinstance(fault.declares("anthropic-messages", False), NotApplicable)
    assert fault.declares("openai-chat", True) == WHOLE_200
    whole = faulty.meet("empty_answer", content="null").json["choices"][0]
    assert (whole["message"]["content"], whole["finish_reason"]) == (None, "stop")
    assert "tool_calls" not in whole["message"]
    stream = faulty.meet("empty_answer", content="null", streaming=True)
    chunks = [each["choices"][0] for each in documents(stream)]
    assert {each["delta"].get("content") for each in chunks} == {None}
    assert [each["finish_reason"] for each in chunks][-1] == "stop"


@pytest.mark.parametrize("content", ["empty", "null"])
def test_an_empty_answer_says_how_it_ended(content: str, faulty: FaultyService) -> None:
    (choice,) = faulty.meet("empty_answer", content=content, finish="length").json["choices"]
    assert choice["finish_reason"] == "length"
    assert not choice["message"]["content"]


@pytest.mark.parametrize("wire", WIRES)
def test_a_filtered_answer_is_empty_and_its_finish_reason_says_why(wire: str, faulty: FaultyService) -> None:
    assert fault_of("content_filtered", blocks="answer").declares(wire, False) == WHOLE_200
    answer = faulty.meet("content_filtered", wire=wire, blocks="answer")
    read = registry.load("wires", wire)().read_answer(answer.body, False)
    assert (answer.status, read.text or "") == (200, "")
    healthy = faulty.meet("empty_answer", wire=wire)
    ended = {"anthropic-messages": "refusal"}.get(wire, "content_filter")
    assert ended in answer.body.decode()
    assert ended not in healthy.body.decode()
