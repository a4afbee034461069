"""OTLP traces with GenAI spans: one trial a trace, old and new names, content where it is recorded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.otlp import Otlp
from pytest_regcase.importers.otlp_messages import attributes_of, given_messages, said_message
from pytest_regcase.importers.source import find_trials, read_one
from pytest_regcase.records.trial import Trial

GOLD = Path(__file__).parent.parent / "gold" / "otlp"
FAILED, RETRIED = "5b8efff798038103d269b633813fc601", "5b8efff798038103d269b633813fc602"


def attributes(**values: Any) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]


def document(*spans: dict[str, Any], resource: Any = ()) -> dict[str, Any]:
    return {
        "resourceSpans": [{"resource": {"attributes": list(resource)}, "scopeSpans": [{"spans": list(spans)}]}]
    }


def a_span(number: int, **more: Any) -> dict[str, Any]:
    return {
        "traceId": "AB" * 16,
        "spanId": f"{number:016X}",
        "startTimeUnixNano": str(1_790_000_000_000_000_000 + number),
        "endTimeUnixNano": str(1_790_000_001_000_000_000 + number),
        "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}],
        **more,
    }


@pytest.fixture
def read(tmp_path: Path) -> Callable[[dict[str, Any]], Trial]:
    def trial(content: dict[str, Any]) -> Trial:
        path = tmp_path / "x.json"
        path.write_text(json.dumps(content))
        (ref,) = Otlp().list_trials(path)
        return Otlp().read(path, ref)

    return trial


def test_the_failed_trace_of_two_is_the_one_that_is_read() -> None:
    trial = read_one(GOLD / "two_traces.json")
    assert (trial.event_id, trial.event_id_from, trial.run_id) == (FAILED, "recorded", "sweep-7")
    assert (trial.task_id, trial.attempt) == ("calc-001", 2)
    assert (trial.harness, trial.revision, trial.model) == ("calc-agent", "0.4.1", "replay-1")
    assert (trial.termination, trial.outcome, trial.failing_step, trial.model_requests) == (
        "error", "undetermined", 2, 3,
    )  # fmt: skip
    assert trial.error is not None
    assert (trial.error.type, trial.error.message, trial.error.raised_by) == (
        "TimeoutError", "no answer within 3 s", "supplier",
    )  # fmt: skip
    assert trial.error.traceback is not None
    assert 'File "agent.py", line 2, in step' in trial.error.traceback
    assert trial.conditions == {"gen_ai.provider.name": "openai", "gen_ai.request.max_tokens": 512}
    assert trial.started_at is not None
    assert trial.started_at.isoformat() == "2026-09-21T14:13:20+00:00"


def test_its_words_stand_with_their_steps() -> None:
    trial = read_one(GOLD / "two_traces.json")
    assert [(line.step, line.role) for line in trial.steps] == [
        (0, "system"), (0, "user"), (1, "assistant"), (1, "tool"), (2, "assistant"), (2, "assistant"),
    ]  # fmt: skip
    reply = trial.steps[2]
    assert (reply.text, reply.finish, reply.model) == ("I look at the file.", "tool_call", "replay-1-0921")
    assert reply.usage == {"input_tokens": 30, "output_tokens": 9}
    assert reply.offered_tools == ("bash",)
    assert [(each.id, each.name, each.arguments) for each in reply.tool_calls] == [
        ("call_1", "bash", '{"command": "cat calc.py"}')
    ]
    assert trial.steps[3].tool_call_id == "call_1"
    assert [line.error for line in trial.steps[4:]] == ["no answer within 3 s"] * 2
    assert trial.missing == ("1 content part of type reasoning left out",)
    assert "look first" not in trial.model_dump_json()


def test_a_retried_call_is_no_failure_and_a_sub_agent_no_step() -> None:
    refs = {ref.key: ref for ref in find_trials(GOLD / "two_traces.json").refs}
    assert list(refs) == [FAILED, RETRIED]
    assert (refs[RETRIED].failed, refs[RETRIED].refusal) == (False, "no-sign-of-failure")
    trial = Otlp().read(GOLD / "two_traces.json", refs[RETRIED])
    assert (trial.termination, trial.error, trial.failing_step) == ("finished", None, 2)
    assert [line.error for line in trial.steps if line.error] == ["no answer within 3 s"]
    assert any("side calls" in each for each in trial.missing)


def test_lines_with_old_names_and_a_root_that_never_ended() -> None:
    trial = read_one(GOLD / "cut_off.jsonl")
    assert (trial.termination, trial.failing_step, trial.error) == ("cut-off", 2, None)
    assert [(line.step, line.role, line.text) for line in trial.steps[:2]] == [
        (0, "system", "You repair code."), (0, "user", "add() in calc.py subtracts"),
    ]  # fmt: skip
    assert trial.steps[2].tool_calls[0].arguments == '{"command": "cat calc.py"}'
    assert trial.steps[2].usage == {"prompt_tokens": 30, "completion_tokens": 9}
    assert trial.steps[3].text == "def add(a, b):\n    return a - b\n"
    assert "the span above 2 others is not in the log" in trial.missing


def test_an_exception_event_alone_is_no_error(read: Callable[..., Trial]) -> None:
    raised = {"name": "exception", "attributes": attributes(**{"exception.type": "ValueError"})}
    assert read(document(a_span(1, events=[raised]))).error is None
    trial = read(document(a_span(1, events=[raised], status={"code": 2})))
    assert trial.error is not None
    assert (trial.error.type, trial.error.message, trial.termination) == ("ValueError", None, "error")


def test_ids_compare_without_case_and_an_empty_parent_is_none(read: Callable[..., Trial]) -> None:
    trial = read(document(a_span(10, parentSpanId=""), a_span(11, parentSpanId=f"{10:016x}")))
    assert (trial.event_id, trial.termination) == ("ab" * 16, "finished")


def test_a_span_that_is_there_twice_is_one(read: Callable[..., Trial]) -> None:
    assert read(document(a_span(1), a_span(1))).failing_step == 1


def test_what_is_no_trace_of_an_agent_is_no_trial(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document(a_span(1, attributes=attributes(**{"http.route": "/"})))))
    with pytest.raises(ImportRefused) as refusal:
        read_one(path)
    assert refusal.value.slug == "no-trial"


def test_an_unknown_service_is_no_harness(read: Callable[..., Trial]) -> None:
    trial = read(document(a_span(1), resource=attributes(**{"service.name": "unknown_service:python"})))
    assert (trial.harness, trial.revision) == (None, None)


def test_spans_without_a_trace_id_are_counted(read: Callable[..., Trial]) -> None:
    trial = read(document(a_span(1), a_span(2, traceId="")))
    assert "1 span without a trace id left out" in trial.missing


def test_the_values_of_attributes_are_plain() -> None:
    found = attributes_of(
        [
            {"key": "int", "value": {"intValue": "30"}},
            {"key": "bool", "value": {"boolValue": False}},
            {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "a"}, {"doubleValue": 0.5}]}}},
            {"key": "map", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"intValue": 3}}]}}},
            {"key": "huge", "value": {"intValue": "9" * 30}},
            {"key": "none", "value": {}},
            {"value": {"intValue": "1"}},
            7,
        ]
    )
    assert found == {
        "int": 30, "bool": False, "list": ["a", 0.5], "map": {"k": 3}, "huge": "9" * 30, "none": None,
    }  # fmt: skip


def test_deprecated_texts_and_events_hold_the_same_messages() -> None:
    deprecated = {
        "gen_ai.prompt": '[{"role": "user", "parts": [{"type": "text", "content": "repair"}]}]',
        "gen_ai.completion": '{"text": "done", "finish_reason": "stop"}',
    }
    (asked,) = given_messages(deprecated, ())
    assert asked["content"] == [{"type": "text", "text": "repair"}]
    said = said_message(deprecated, ())
    assert said is not None
    assert (said["role"], said["content"], said["finish_reason"]) == ("assistant", "done", "stop")
    events = [
        ("gen_ai.user.message", {"content": "repair"}),
        ("gen_ai.tool.message", {"id": "call_1", "content": "ok"}),
        ("gen_ai.choice", {"finish_reason": "stop", "message": '{"content": "done"}'}),
        ("exception", {}),
    ]
    assert given_messages({}, events) == (
        {"role": "user", "content": "repair"},
        {"role": "tool", "content": "ok", "tool_call_id": "call_1"},
    )
    assert said_message({}, events) == {"role": "assistant", "content": "done", "finish_reason": "stop"}
    assert (given_messages({}, ()), said_message({}, ())) == ((), None)
