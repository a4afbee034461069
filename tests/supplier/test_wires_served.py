"""The same canonical steps through every wire of a running supplier, read by a raw socket client."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import MachineryError
from pytest_regcase.recovery.wire_facts import wire_facts
from pytest_regcase.supplier.spec import PassThrough
from tests.supplier.serving import TWO_STEPS, Serving, assistant, call, fault, result
from tests.supplier.speaking import PATHS, WIRES, Speaker, said

PARALLEL = (
    assistant(1, call("c1", "cat a"), call("c2", "cat b"), text="Looking."),
    result(1, "c1", "one"),
    result(1, "c2", "two"),
    assistant(2, text="Done so far."),
)


def requests_of(events: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    return [each for each in events if each["event"] == "request"]


@pytest.mark.parametrize("wire", WIRES)
def test_the_main_conversation_is_followed_step_by_step(wire: str, tmp_path: Path) -> None:
    speaker = Speaker(wire)
    with Serving(tmp_path, lines=PARALLEL) as serving:
        with serving.client() as client:
            title = Speaker(wire, tools=False).ask(client)
            first = speaker.ask(client)
            speaker.follow(first, "one", "another")
            second = speaker.ask(client)
            speaker.follow(second)
            third = speaker.ask(client)
        serving.wait_said("control-reached")
        events = serving.stop()
    assert said(wire, title) == ("OK", [])
    text, calls = said(wire, first)
    assert text == "Looking."
    assert [(each.id, each.arguments) for each in calls] == [
        ("c1", '{"command": "cat a"}'),
        ("c2", '{"command": "cat b"}'),
    ]
    assert [said(wire, each)[0] for each in (second, third)] == ["Done so far.", "Done."]
    seen = requests_of(events)
    assert {each["wire"] for each in seen} == {wire}
    assert {each["path"] for each in seen} == {f"/v1{PATHS[wire]}"}
    assert [(each["step"], each["side_call"]) for each in seen] == [(1, True), (1, False), (2, False), (3, False)]
    assert not any("off_prefix" in each for each in seen if not each["side_call"])
    says = "the result of call c2 (step 1) differs from the recorded one"
    assert seen[2]["differs"] == [{"kind": "tool-result", "says": says}]


@pytest.mark.parametrize("wire", WIRES)
def test_a_call_without_a_result_puts_the_agent_off_the_prefix(wire: str, tmp_path: Path) -> None:
    speaker = Speaker(wire)
    with Serving(tmp_path, lines=PARALLEL) as serving:
        with serving.client() as client:
            speaker.follow(speaker.ask(client), "one", "two")
            if wire == "anthropic-messages":
                speaker.history[-1]["content"].pop()
            else:
                speaker.history.pop()
            speaker.ask(client)
        events = serving.stop()
    assert requests_of(events)[1]["off_prefix"] == ["the request holds no result for call c2 of step 1"]


@pytest.mark.parametrize("wire", WIRES)
def test_a_retry_is_the_same_conversation_and_a_fault_is_delivered(wire: str, tmp_path: Path) -> None:
    with Serving(tmp_path, lines=PARALLEL, fault=fault("key_rejected", at_step=1)) as serving:
        with serving.client() as client:
            answers = [Speaker(wire).ask(client, headers=f"x-stainless-retry-count: {n}\r\n") for n in (0, 1)]
        events = serving.stop()
    assert [each.status for each in answers] == [401, 401]
    seen = requests_of(events)
    assert len({each["conversation"] for each in seen}) == 1
    assert [(each["phase"], each["client_retry"]) for each in seen] == [("faulted", 0), ("faulted", 1)]
    facts = wire_facts(events, declares=None, ended_by_us_at=None, last_step=2)
    assert (facts.faulted_requests, facts.retries) == (2, 1)


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_streamed_is_what_is_logged(wire: str, tmp_path: Path) -> None:
    with Serving(tmp_path, lines=PARALLEL) as serving:
        with serving.client() as client:
            answer = Speaker(wire).ask(client, stream=True)
        events = serving.stop()
    assert answer.headers["content-type"].startswith("text/event-stream")
    sent = next(each for each in events if each["event"] == "sent")
    assert (sent["text"], sent["complete"]) == ("Looking.", True)
    assert [each["id"] for each in sent["tool_calls"]] == ["c1", "c2"]


@pytest.mark.parametrize(
    ("wire", "headers", "header", "prefix"),
    [
        ("openai-chat", "", "x-request-id", "chatcmpl-"),
        ("openai-responses", "", "x-request-id", "resp_"),
        ("anthropic-messages", "anthropic-version: 2023-06-01\r\n", "request-id", "msg_"),
    ],
)
def test_ids_stand_where_that_api_has_them(
    wire: str, headers: str, header: str, prefix: str, tmp_path: Path
) -> None:
    with Serving(tmp_path, lines=PARALLEL) as serving:
        with serving.client() as client:
            reply = Speaker(wire).ask(client)
            client.post(b"{", path=client.path + PATHS[wire])
            refused = client.response()
            client.post(b"{}", path=client.path + "/nothing", headers=headers)
            unknown = client.response()
        serving.stop()
    assert reply.json["id"].startswith(prefix)
    assert reply.headers[header].startswith("req_")
    assert (refused.status, unknown.status) == (400, 404)
    for each in (refused, unknown):
        assert ("request_id" in each.json) == (wire == "anthropic-messages")
        assert each.json.get("request_id", each.headers[header]) == each.headers[header]


def test_counting_tokens_and_listing_models_moves_no_step(tmp_path: Path) -> None:
    with Serving(tmp_path, lines=PARALLEL) as serving:
        with serving.client() as client:
            body = json.dumps(Speaker("anthropic-messages").body()).encode()
            client.post(body, path=client.path + "/messages/count_tokens")
            assert client.response().json["input_tokens"] > 0
            client.post(
                json.dumps(Speaker("openai-responses").body()).encode(),
                path=client.path + "/responses/input_tokens",
            )
            assert client.response().json["input_tokens"] > 0
            assert client.get(client.path + "/models").json["object"] == "list"
            Speaker("anthropic-messages").ask(client)
        events = serving.stop()
    seen = requests_of(events)
    assert [each["wire"] for each in seen] == [
        *("anthropic-messages", "openai-responses", "openai-chat", "anthropic-messages")
    ]
    assert [each.get("step") for each in seen] == [None, None, None, 1]
    assert wire_facts(events, declares=None, ended_by_us_at=None, last_step=2).requests == 1


def test_an_agent_that_names_the_previous_response_is_on_the_prefix(tmp_path: Path) -> None:
    speaker = Speaker("openai-responses")
    with Serving(tmp_path, lines=TWO_STEPS) as serving:
        with serving.client() as client:
            first = speaker.ask(client)
            speaker.history = speaker.results(first, "old")
            second = speaker.ask(client, previous_response_id=first.json["id"])
            speaker.history = speaker.results(second, "new")
            third = speaker.ask(client, previous_response_id=second.json["id"])
            speaker.history = [{"role": "user", "content": "x"}]
            unknown = speaker.ask(client, previous_response_id="resp_of_another")
        events = serving.stop()
    assert [said("openai-responses", each)[0] for each in (first, second, third)] == [
        *("Looking.", "Fixing.", "Done.")
    ]
    seen = requests_of(events)
    assert [(each.get("step"), each.get("off_prefix"), each.get("differs")) for each in seen] == [
        *((1, None, None), (2, None, None), (3, None, None), (None, None, None))
    ]
    assert unknown.status == 400
    assert unknown.json["error"]["code"] == "previous_response_not_found"


def test_an_agent_that_names_items_is_on_the_prefix(tmp_path: Path) -> None:
    speaker = Speaker("openai-responses")
    with Serving(tmp_path, lines=TWO_STEPS) as serving:
        with serving.client() as client:
            first = speaker.ask(client)
            named = [{"type": "item_reference", "id": each["id"]} for each in first.json["output"]]
            speaker.history = [*speaker.history, *named, *speaker.results(first, "old")]
            second = speaker.ask(client)
        events = serving.stop()
    assert said("openai-responses", second)[0] == "Fixing."
    assert "off_prefix" not in requests_of(events)[1]


def test_an_agent_can_go_on_from_what_a_fault_answered(tmp_path: Path) -> None:
    speaker = Speaker("openai-responses")
    once = fault("empty_answer", at_step=1, lasts=1)
    with Serving(tmp_path, lines=TWO_STEPS, fault=once) as serving:
        with serving.client() as client:
            empty = speaker.ask(client)
            speaker.history = [{"role": "user", "content": "You said nothing."}]
            again = speaker.ask(client, previous_response_id=empty.json["id"])
        serving.stop()
    assert said("openai-responses", empty)[0] == ""
    assert said("openai-responses", again)[0] == "Looking."


def test_an_upstream_whose_wire_nobody_speaks_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(MachineryError, match="nothing here speaks the upstream's wire 'gemini'"):
        Serving(tmp_path, pass_through=PassThrough("http://x", wire="gemini"))
