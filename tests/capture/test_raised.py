"""Every link of what was raised, with what client libraries put on it."""

import importlib
import json
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_regcase.capture.raised import error_of
from pytest_regcase.records.trial import TrialError


class Answer:
    """A response as httpx and requests have it."""

    def __init__(self, status_code: int = 500, text: str = "", headers: Mapping[str, str] | None = None) -> None:
        self.status_code = status_code
        self.text = text
        self.headers = headers or {}


class Unread:
    status_code = 502

    @property
    def text(self) -> str:
        raise RuntimeError("the stream was not read")


def with_fields(**fields: object) -> Exception:
    error = ValueError("refused")
    for name, value in fields.items():
        setattr(error, name, value)
    return error


def caught(error: BaseException) -> TrialError:
    """Return the record of an error that was really raised."""
    try:
        raise error
    except BaseException as raised:
        return error_of(raised, raised_by="agent")


def chained() -> BaseException:
    try:
        try:
            try:
                raise OSError("reset by peer")
            except OSError:
                raise TimeoutError("no answer") from None
        except TimeoutError as error:
            raise RuntimeError("call failed") from error
    except RuntimeError as error:
        return error


def test_the_whole_chain_outermost_first_and_from_none_hides_no_link() -> None:
    found = error_of(chained())
    assert (found.type, found.message, found.raised_by) == ("RuntimeError", "call failed", "unknown")
    assert [(link.type, link.message) for link in found.chain] == [
        ("RuntimeError", "call failed"),
        ("TimeoutError", "no answer"),
        ("OSError", "reset by peer"),
    ]
    assert found.traceback is not None
    assert "direct cause" in found.traceback
    assert "OSError" not in found.traceback


def test_a_cause_and_a_context_are_both_links() -> None:
    error = RuntimeError("top")
    error.__cause__ = KeyError("cause")
    error.__context__ = IndexError("context")
    assert {link.type for link in error_of(error).chain} == {"RuntimeError", "KeyError", "IndexError"}


def test_a_cycle_ends() -> None:
    first, second = RuntimeError("first"), RuntimeError("second")
    first.__cause__, second.__context__ = second, first
    assert [link.message for link in caught(first).chain] == ["first", "second"]


def test_members_of_a_group_are_links() -> None:
    group = ExceptionGroup("two", [ConnectionError("a"), ExceptionGroup("one", [TimeoutError("b")])])
    assert {"ConnectionError", "TimeoutError"} <= {link.type for link in error_of(group).chain}


@pytest.mark.parametrize(
    ("fields", "stands"),
    [
        ({"status_code": 429}, {"status_code": 429}),
        ({"status": "503"}, {"status_code": 503}),
        ({"http_status": 402}, {"status_code": 402}),
        ({"response": Answer(529, "overloaded")}, {"status_code": 529, "body": "overloaded"}),
        ({"response": Unread()}, {"status_code": 502}),
        ({"code": "insufficient_quota", "type": "t"}, {"code": "insufficient_quota", "error_type": "t"}),
        ({"code": 1113}, {"code": "1113"}),
        ({"code": lambda: 8}, {}),
        ({"body": {"error": {"code": 5, "raw": b"\xff"}}}, {"body": {"error": {"code": 5, "raw": "\\xff"}}}),
        ({"body": "", "response": Answer(500, "said")}, {"status_code": 500}),
        ({"request_id": "req_1"}, {"request_id": "req_1"}),
        ({"response": Answer(headers={"request-id": "req_2"})}, {"status_code": 500, "request_id": "req_2"}),
        ({"response": Answer(headers={"x-request-id": "req_3"})}, {"status_code": 500, "request_id": "req_3"}),
        (
            {"response": {"Error": {"Code": "X"}, "ResponseMetadata": {"HTTPStatusCode": 400, "RequestId": "r"}}},
            {
                "status_code": 400,
                "request_id": "r",
                "body": {"Error": {"Code": "X"}, "ResponseMetadata": {"HTTPStatusCode": 400, "RequestId": "r"}},
            },
        ),
    ],
)
def test_what_client_libraries_put_on_an_error(fields: dict[str, object], stands: dict[str, Any]) -> None:
    (link,) = error_of(with_fields(**fields)).chain
    assert link.to_sparse() == {"type": "ValueError", "message": "refused", **stands}


@pytest.mark.harness
def test_a_real_client_library(harness_python: str) -> None:
    httpx, openai = importlib.import_module("httpx"), importlib.import_module("openai")
    answer = httpx.Response(
        429,
        headers={"x-request-id": "req_9"},
        json={"error": {"message": "quota", "type": "insufficient_quota", "code": "insufficient_quota"}},
        request=httpx.Request("POST", "http://localhost/v1"),
    )
    link = error_of(openai.RateLimitError("quota", response=answer, body=answer.json()["error"])).chain[0]
    assert (link.type, link.status_code, link.code, link.request_id) == (
        "openai.RateLimitError",
        429,
        "insufficient_quota",
        "req_9",
    )
    assert link.body["message"] == "quota"


class Sulky(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not today")

    @property
    def status_code(self) -> int:
        raise RuntimeError("nor that")


def test_an_error_whose_code_raises_is_recorded() -> None:
    found = caught(Sulky())
    assert found.type == "Sulky"
    assert found.message is not None
    assert "its str() raised RuntimeError" in found.message
    json.dumps(found.to_plain(), allow_nan=False)


def test_a_long_traceback_keeps_its_two_ends() -> None:
    def sink(depth: int) -> None:
        # Lines that differ are not folded into one.
        eval(f"again({depth})" + " " * 5000, {"again": lambda _: sink(depth - 1) if depth else 1 / 0})

    try:
        sink(120)
    except ZeroDivisionError as error:
        found = error_of(error)
    assert found.traceback is not None
    assert len(found.traceback) < 300_000
    assert found.traceback.startswith("Traceback")
    assert found.traceback.endswith("division by zero\n")
