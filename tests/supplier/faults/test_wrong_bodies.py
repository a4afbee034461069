import json

import pytest

from pytest_regcase import registry
from tests.supplier.faults.conftest import FaultyService

WIRES = sorted(registry.names("wires"))
STREAMING = [pytest.param(False, id="whole"), pytest.param(True, id="stream")]


@pytest.mark.parametrize("streaming", STREAMING)
@pytest.mark.parametrize("wire", WIRES)
def test_an_error_document_comes_with_200_and_is_no_stream(
    wire: str, streaming: bool, faulty: FaultyService
) -> None:
    answer = faulty.meet("error_in_body", wire=wire, streaming=streaming)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json["error"]["message"] == "Provider returned error"
    read = registry.load("wires", wire)().read_answer(answer.body, False)
    assert not read.has_choice
    assert read.error is not None


@pytest.mark.parametrize("streaming", STREAMING)
def test_a_web_page_comes_with_200(streaming: bool, faulty: FaultyService) -> None:
    answer = faulty.meet("html_in_body", streaming=streaming)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.body.startswith(b"<!DOCTYPE html>")


@pytest.mark.parametrize(("streaming", "kind"), [(False, "application/json"), (True, "text/event-stream")])
def test_an_empty_body_is_whole(streaming: bool, kind: str, faulty: FaultyService) -> None:
    answer = faulty.meet("empty_body", streaming=streaming)
    assert (answer.status, answer.headers["content-length"], answer.body) == (200, "0", b"")
    assert answer.headers["content-type"].startswith(kind)


@pytest.mark.parametrize("wire", WIRES)
def test_cut_json_is_as_long_as_it_says(wire: str, faulty: FaultyService) -> None:
    answer = faulty.meet("truncated_json", wire=wire)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert int(answer.headers["content-length"]) == len(answer.body)
    assert answer.body.startswith(b"{")
    with pytest.raises(json.JSONDecodeError):
        json.loads(answer.body)


@pytest.mark.parametrize("wire", WIRES)
def test_a_cut_event_is_an_event_whose_data_is_no_json(wire: str, faulty: FaultyService) -> None:
    answer = faulty.meet("truncated_json", wire=wire, streaming=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.body.endswith(b"\n\n")
    (data,) = [each.removeprefix(b"data: ") for each in answer.body.split(b"\n") if each.startswith(b"data: ")]
    assert data.startswith(b"{")
    with pytest.raises(json.JSONDecodeError):
        json.loads(data)
