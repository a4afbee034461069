"""What the real client libraries make of each fault: the exception and the number of requests.

The rows are those of the measured tables (openai 3.57.0, anthropic 2.14.0, httpx 0.28.1). One supplier and one
client process serve them all; requests are counted by the supplier.
"""

import json
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_regcase import registry
from pytest_regcase.records.wire import WireEvent
from pytest_regcase.supplier.inject import wire_entries
from pytest_regcase.supplier.spec import FaultSpec
from tests.conftest import REPOSITORY, need_harness
from tests.supplier.faults.any_fault import ENTRY, model_for
from tests.supplier.serving import Serving, fault

pytestmark = pytest.mark.harness
CALLS = Path(__file__).with_name("client_calls.py")
LIMIT_SECONDS = 120


@dataclass(frozen=True)
class Row:
    """One call, and what it must come to: an exception, or what is returned."""

    kind: str
    client: str
    raises: str | None
    requests: int
    streaming: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    """Further values of the exception."""
    says: str = ""
    """A part of its text."""
    waits: tuple[float, ...] | None = None
    """What was to be slept between the requests; None: the client's own back-off, not looked at."""
    silent: bool = False
    """The client is to give up by itself, so its time-out is short."""

    def __str__(self) -> str:
        words = [
            self.kind,
            *map(str, self.settings.values()),
            self.client,
            *(["stream"] if self.streaming else []),
        ]
        return "-".join(words)


def everywhere(kind: str, httpx: str, error: str, **options: Any) -> list[Row]:
    """A row a client: httpx makes one request, the SDKs three with their own class."""
    return [
        Row(kind, "httpx", f"httpx.{httpx}", 1, **options),
        *(Row(kind, each, f"{each}.{error}", 3, **options) for each in ("openai", "anthropic")),
    ]


def both(kind: str, error: str, requests: int, other: str = "", **options: Any) -> list[Row]:
    """A row an SDK; `other` is anthropic's class where it has one of its own."""
    return [
        Row(kind, "openai", f"openai.{error}", requests, **options),
        Row(kind, "anthropic", f"anthropic.{other or error}", requests, **options),
    ]


RAISED = [
    # Nothing or too little comes.
    *everywhere("no_answer", "ReadTimeout", "APITimeoutError", silent=True),
    *everywhere("headers_then_silence", "ReadTimeout", "APITimeoutError", silent=True),
    *everywhere("reset_before_answer", "ReadError", "APIConnectionError"),
    *everywhere("closed_without_answer", "RemoteProtocolError", "APIConnectionError"),
    *everywhere("body_too_short", "RemoteProtocolError", "APIConnectionError"),
    # In a stream whose head has come, nothing is tried again.
    Row("mid_stream_stall", "openai", "openai.APITimeoutError", 1, streaming=True, silent=True),
    Row("body_too_short", "httpx", "httpx.RemoteProtocolError", 1, streaming=True),
    Row("body_too_short", "openai", "openai.APIConnectionError", 1, streaming=True),
    Row("body_too_short", "anthropic", "httpx2.RemoteProtocolError", 1, streaming=True),
    Row("mid_stream_error", "openai", "openai.APIError", 1, streaming=True, facts={"status_code": None}),
    Row(
        "mid_stream_error", "openai", "openai.APIError", 1, streaming=True,
        settings={"slug": "engine_dead", "status": 500}, facts={"status_code": None, "code": "500"},
    ),
    Row(
        "mid_stream_error", "anthropic", "anthropic.APIStatusError", 1, streaming=True,
        facts={"status_code": 200, "type": "overloaded_error"},
    ),
    # An answer that is no reply.
    *(Row("empty_body", each, "json.JSONDecodeError", 1) for each in ("openai", "anthropic")),
    *(Row("truncated_json", each, "json.JSONDecodeError", 1) for each in ("openai", "anthropic")),
    *(Row("truncated_json", each, "json.JSONDecodeError", 1, streaming=True) for each in ("openai", "anthropic")),
    # Refused for good: one request. But what has the status of a passing failure is tried three times.
    *both("key_rejected", "AuthenticationError", 1, facts={"status_code": 401}),
    *both("key_expired", "AuthenticationError", 1),
    *both("key_expired", "PermissionDeniedError", 1, settings={"status": 403}),
    *both("permission_denied", "PermissionDeniedError", 1, facts={"status_code": 403}),
    *both("content_filtered", "BadRequestError", 1),
    *both("context_too_long", "BadRequestError", 1),
    Row("credit_too_low", "anthropic", "anthropic.BadRequestError", 1, says="credit balance is too low"),
    Row("budget_exceeded", "openai", "openai.APIStatusError", 1, facts={"status_code": 402}),
    Row("budget_exceeded", "anthropic", "anthropic.PaymentRequiredError", 1),
    *both("budget_exceeded", "BadRequestError", 1, settings={"status": 400}),
    *both("budget_exceeded", "UnprocessableEntityError", 1, settings={"status": 422}),
    *both("budget_exceeded", "RateLimitError", 3, settings={"status": 429}),
    Row("quota_exhausted", "openai", "openai.RateLimitError", 3, facts={"code": "insufficient_quota"}),
    *both("server_out_of_memory", "InternalServerError", 3, says="CUDA out of memory"),
    *both("model_loading", "InternalServerError", 3, "ServiceUnavailableError"),
    *both("service_unavailable", "InternalServerError", 3, "ServiceUnavailableError"),
    *both("overloaded", "InternalServerError", 3, "OverloadedError"),
    *both("gateway_timeout", "InternalServerError", 3, "GatewayTimeoutError", says="504"),
    *both("gateway_timeout", "InternalServerError", 3, settings={"gateway": "cloudflare"}, says="524"),
    # Retry-After: obeyed, in every form. Above two minutes openai gives up and anthropic obeys.
    *both("rate_limited", "RateLimitError", 3, waits=(2.0, 2.0)),
    *both(
        "rate_limited", "RateLimitError", 3, waits=(0.25, 0.25),
        settings={"retry_after": "milliseconds", "wait_seconds": 0.25},
    ),
    Row("rate_limited", "openai", "openai.RateLimitError", 1, settings={"wait_seconds": 300.0}, waits=()),
    Row("rate_limited", "openai", "openai.RateLimitError", 1, settings={"wait_seconds": 86400.0}, waits=()),
    Row(
        "rate_limited", "anthropic", "anthropic.RateLimitError", 3,
        settings={"wait_seconds": 86400.0}, waits=(86400.0, 86400.0),
    ),
]  # fmt: skip
DATED = both("rate_limited", "RateLimitError", 3, settings={"retry_after": "date", "wait_seconds": 60.0})
RETURNED: list[tuple[Row, dict[str, Any] | type]] = [
    # No exception: the call looks like a success.
    (Row("error_in_body", "openai", None, 1), {"choices": None}),
    (Row("error_in_body", "openai", None, 1, streaming=True), {"chunks": 0, "finish": None}),
    (Row("error_in_body", "anthropic", None, 1), {"content": None}),
    (Row("html_in_body", "openai", None, 1), str),
    (Row("html_in_body", "anthropic", None, 1), str),
    (Row("empty_choices", "openai", None, 1), {"choices": []}),
    (Row("empty_choices", "openai", None, 1, streaming=True), {"text": "", "finish": None}),
    (Row("empty_choices", "anthropic", None, 1), {"content": [], "stop_reason": "end_turn"}),
    (Row("stream_without_end", "openai", None, 1, streaming=True), {"finish": None}),
    (Row("stream_without_end", "anthropic", None, 1, streaming=True), {"finish": None}),
    (
        Row("content_filtered", "openai", None, 1, streaming=True, settings={"blocks": "answer"}),
        {"text": "", "finish": "content_filter"},
    ),
    (
        Row("content_filtered", "anthropic", None, 1, streaming=True, settings={"blocks": "answer"}),
        {"text": "", "finish": "refusal"},
    ),
]
NULL = Row("empty_answer", "openai", None, 1, settings={"content": "null"})
REFUSED = [
    Row("connection_refused", "openai", "openai.APIConnectionError", 1),
    Row("connection_refused", "anthropic", "anthropic.APIConnectionError", 0),
    Row("connection_refused", "httpx", "httpx.ConnectError", 0),
]
ROWS = [*RAISED, *DATED, *(row for row, _ in RETURNED), NULL]


class Outcome(NamedTuple):
    """What one call came to, and how often the supplier was asked."""

    found: dict[str, Any]
    requests: int
    retries: tuple[int | None, ...]


@pytest.fixture(scope="module")
def python(harness_python: str) -> str:
    for each in ("anthropic", "httpx"):
        need_harness(each)
    return harness_python


@pytest.fixture(scope="module")
def outcomes(python: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """Every row's outcome, by its name."""
    refusal = fault("connection_refused", at_step=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(REPOSITORY), prepend=os.pathsep)
        any_fault = FaultSpec("any_fault", ENTRY, at_step=1)
        answering = Serving(tmp_path_factory.mktemp("answering"), wires=wire_entries(), fault=any_fault)
        refusing = Serving(tmp_path_factory.mktemp("refusing"), wires=wire_entries(), fault=refusal)
    with answering, refusing:
        found = calls(python, [*((answering, row) for row in ROWS), *((refusing, row) for row in REFUSED)])
        answered, refused = requests_of(answering.stop()), requests_of(refusing.stop())
    # The model name, and with it the body, is another one in each row; the tries of a row have one body.
    counted = [list(group) for _, group in groupby(answered, lambda each: each["body_digest"])]
    assert len(counted) == len(ROWS)
    # The first row is the one whose request closes the listener; what comes later leaves no trace.
    counted += [refused, *([] for _ in REFUSED[1:])]
    return {
        str(row): Outcome(each, len(seen), tuple(one.get("client_retry") for one in seen))
        for row, each, seen in zip([*ROWS, *REFUSED], found, counted, strict=True)
    }


def calls(python: str, rows: Iterable[tuple[Serving, Row]]) -> list[dict[str, Any]]:
    """Make all calls in one process."""
    lines = []
    for serving, row in rows:
        process = serving.process
        line = {
            "client": row.client,
            "streaming": row.streaming,
            "timeout": 0.3 if row.silent else 30.0,
            "model": model_for(registry.names("faults")[row.kind].value, row.settings, str(row)),
            "base_url": process.anthropic_base_url if row.client == "anthropic" else process.openai_base_url,
        }
        lines.append(json.dumps(line))
    done = subprocess.run(
        [python, str(CALLS)],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def requests_of(events: Iterable[WireEvent]) -> list[WireEvent]:
    return [each for each in events if each["event"] == "request"]


@pytest.mark.parametrize("row", RAISED, ids=str)
def test_a_fault_raises_what_was_measured_after_as_many_requests(row: Row, outcomes: dict[str, Outcome]) -> None:
    found, requests, retries = outcomes[str(row)]
    assert (found.get("raised"), requests) == (row.raises, row.requests), found
    assert row.says in found["says"]
    assert {name: found.get(name) for name in row.facts} == row.facts
    if row.client != "httpx":
        assert retries == tuple(range(requests))
        assert len(found["waits"]) == requests - 1
    if row.waits is not None:
        assert tuple(found["waits"]) == row.waits


@pytest.mark.parametrize("row", DATED, ids=str)
def test_a_date_to_wait_for_is_obeyed(row: Row, outcomes: dict[str, Outcome]) -> None:
    found, requests, _ = outcomes[str(row)]
    assert (found.get("raised"), requests) == (row.raises, row.requests), found
    # Counted from each library's own look at its clock: within the minute, and far above its own back-off.
    assert all(30 < each <= 61 for each in found["waits"]), found["waits"]
    assert len(found["waits"]) == 2


@pytest.mark.parametrize(
    ("row", "expected"), RETURNED, ids=lambda each: str(each) if isinstance(each, Row) else ""
)
def test_a_fault_passes_for_an_answer(
    row: Row, expected: dict[str, Any] | type, outcomes: dict[str, Outcome]
) -> None:
    found, requests, _ = outcomes[str(row)]
    assert "raised" not in found, found
    assert requests == row.requests
    if isinstance(expected, type):
        assert isinstance(found["returned"], expected)
    else:
        assert {name: found["returned"][name] for name in expected} == expected


def test_a_null_content_passes_for_an_answer(outcomes: dict[str, Outcome]) -> None:
    found, requests, _ = outcomes[str(NULL)]
    (choice,) = found["returned"]["choices"]
    assert (choice["message"]["content"], choice["finish_reason"], requests) == (None, "stop", 1)


@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_a_refused_connection_is_tried_again_without_a_trace(row: Row, outcomes: dict[str, Outcome]) -> None:
    found, requests, _ = outcomes[str(row)]
    assert (found.get("raised"), requests) == (row.raises, row.requests), found
    assert len(found["waits"]) == (0 if row.client == "httpx" else 2)
