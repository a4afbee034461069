"""The supplier's own id of each reply, where a harness keeps it: what tells a draw from an answer given twice."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.importers.collection import collect

GOLD = Path(__file__).parent.parent / "gold"


def ids(path: Path) -> list[str | None]:
    """Return the ids of the replies of all trials."""
    with collect(path) as found:
        return [line.response_id for entry in found.entries for line in found.read(entry).replies]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claude-code/finished.jsonl", "msg_1"),
        ("openhands/output.jsonl", "gen-1"),
        ("openhands-events/finished.json", "gen-1"),
        ("openhands-v1/finished.jsonl", "test-response-1"),
    ],
)
def test_samples_hold_it(name: str, expected: str) -> None:
    assert ids(GOLD / name)[0] == expected


def _mini(document: Any) -> None:
    for number, message in enumerate(document["messages"]):
        if message["role"] == "assistant":
            message.setdefault("extra", {})["response"] = {"id": f"chatcmpl-{number}", "choices": []}


def _inspect(document: Any) -> None:
    for sample in document["samples"]:
        for number, event in enumerate(sample["events"]):
            if event["event"] == "model":
                event["call"] = {"request": {}, "response": {"id": f"chatcmpl-{sample['id']}-{number}"}}


def _pydantic(document: Any) -> None:
    for number, message in enumerate(document):
        if message["kind"] == "response":
            message["provider_response_id"] = f"chatcmpl-{number}"


@pytest.mark.parametrize(
    ("name", "with_ids"),
    [
        ("mini-swe-agent/submitted.traj.json", _mini),
        ("inspect/sweep.json", _inspect),
        ("pydantic-ai/ended_by_output_tool.json", _pydantic),
    ],
)
def test_a_log_that_holds_it_is_read_with_it(name: str, with_ids: Callable[[Any], None], tmp_path: Path) -> None:
    document = json.loads((GOLD / name).read_text())
    path = tmp_path / Path(name).name
    path.write_text(json.dumps(document))
    assert not any(ids(path))
    with_ids(document)
    path.write_text(json.dumps(document))
    found = ids(path)
    assert found
    assert all(str(each).startswith("chatcmpl-") for each in found)
    assert len(set(found)) == len(found)


def test_a_span_has_it_too(tmp_path: Path) -> None:
    document = json.loads((GOLD / "otlp" / "two_traces.json").read_text())
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                span["attributes"].append({"key": "gen_ai.response.id", "value": {"stringValue": "resp-1"}})
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document))
    assert set(ids(path)) == {"resp-1"}
