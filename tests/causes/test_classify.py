import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

from pytest_regcase.causes import classify_failure
from pytest_regcase.records.trial import ErrorLink, TrialError
from pytest_regcase.records.words import FailureCauseWord
from tests.causes.raised import raised

CAUSES = get_args(FailureCauseWord)
KEY = ("key_budget", "key_auth")
HELD_OUT = tomllib.loads((Path(__file__).parent / "held_out.toml").read_text(encoding="utf-8"))["row"]


@pytest.mark.parametrize("row", HELD_OUT, ids=[str(number) for number in range(len(HELD_OUT))])
def test_texts_of_other_suppliers_and_of_tools(row: dict[str, Any]) -> None:
    keys = {"type": "type", "text": "message", "status": "status_code", "code": "code"}
    found = classify_failure({keys[key]: value for key, value in row.items() if key in keys})
    assert row["expect"] in (found.cause, found.kind), found


def test_every_row_of_the_reference(shared_reference: Path, capsys: pytest.CaptureFixture[str]) -> None:
    yaml = pytest.importorskip("yaml", reason="reading the reference needs PyYAML")
    rows = yaml.safe_load((shared_reference / "classifier.yaml").read_text(encoding="utf-8"))
    missed = []
    as_objects = 0
    for row in rows:
        error = raised(row["exception"], row["message"], row["status"])
        as_objects += error is not None
        # What was written down of a chain has the message at its end.
        first, *further = row["exception"].split(" <- ")
        found = classify_failure(
            error
            if error is not None
            else {
                "type": first,
                "message": row["message"],
                "status_code": row["status"],
                "chain": [{"type": each} for each in further],
            }
        )
        got, expected = (found.cause if row["expect"] in CAUSES else found.kind), row["expect"]
        if got != expected:
            missed.append(f"{row['id']}: {expected} expected, {found.cause}/{found.kind} found ({found.said})")
        assert not (expected in KEY and found.cause == "transient"), row["id"]
        assert not (found.cause in KEY and expected not in (*KEY, "unknown")), row["id"]
    with capsys.disabled():
        print(f"\nclassifier.yaml: {len(rows) - len(missed)} of {len(rows)} right, {as_objects} as objects")
        print(*missed, sep="\n")
    assert len(missed) <= len(rows) // 20, missed


class Odd(Exception):
    """Refuses to say anything."""

    def __str__(self) -> str:
        raise RuntimeError("no")

    @property
    def code(self) -> str:
        raise RuntimeError("no")


class RateLimitError(Exception):
    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.__dict__.update(facts)


def test_an_object_that_raises_when_it_is_asked_is_unknown() -> None:
    assert classify_failure(Odd()).kind == "unknown"


def test_what_is_structured_comes_before_the_text() -> None:
    error = RateLimitError("Rate limit reached, slow down", status_code=429, body={"code": "insufficient_quota"})
    assert classify_failure(error).cause == "key_budget"
    quoted = RateLimitError("a tool said: insufficient_quota", status_code=500, code="server_is_overloaded")
    assert classify_failure(quoted).kind == "overloaded"


def test_a_status_says_less_than_the_body() -> None:
    assert classify_failure({"status_code": 429, "message": "x"}).kind == "rate_limit"
    assert classify_failure({"status_code": 429, "message": "You have insufficient credits"}).cause == "key_budget"
    assert classify_failure({"status_code": 403, "message": "your input was flagged"}).kind == "content_filter"


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        (["Request timed out", "Incorrect API key provided", "Insufficient balance"], ("key_budget", "budget")),
        (["Request timed out", "Incorrect API key provided", "what?"], ("key_auth", "auth")),
        (["what?", "prompt is too long", "Request timed out"], ("transient", "timeout")),
        (["what?", "prompt is too long", "eh"], ("unknown", "context_length")),
        (["Internal server error", "connection reset by peer"], ("transient", "connection")),
        (["Internal server error", "CUDA out of memory"], ("unknown", "oom")),
        ([], ("unknown", "unknown")),
    ],
)
def test_over_the_chain_the_first_cause_that_holds(links: list[str], expected: tuple[str, str]) -> None:
    error = TrialError(
        type="WrapperError", message="it failed", chain=tuple(ErrorLink(message=each) for each in links)
    )
    found = classify_failure(error)
    assert (found.cause, found.kind) == expected


def test_a_raised_chain_is_read_to_its_end_also_where_it_is_hidden_or_bites_its_tail() -> None:
    inner = RateLimitError("Your credit balance is too low")
    try:
        try:
            raise inner
        except RateLimitError:
            raise ValueError("the wrapper hides it") from None
    except ValueError as error:
        outer = error
    inner.__context__ = outer
    assert classify_failure(outer).cause == "key_budget"
    assert classify_failure(ExceptionGroup("several", [KeyError("x"), inner])).cause == "key_budget"


def test_what_a_tool_said_is_no_evidence_even_beside_a_class_of_ours() -> None:
    assert (
        classify_failure({"message": "curl: (7) connection refused: rate limit, invalid api key"}).kind
        == "unknown"
    )


@pytest.mark.parametrize("name", ["ConnectionError", "ConnectionResetError", "TimeoutError", "BrokenPipeError"])
def test_the_standard_librarys_own_network_errors_are_transient(name: str) -> None:
    error = raised(name, "it went wrong", None)
    assert error is not None
    assert classify_failure(error).cause == "transient"


def test_a_harness_limit_says_nothing_of_what_it_cut_short() -> None:
    assert classify_failure(TimeoutError("Agent execution timed out after 900 seconds")).kind == "unknown"
    assert classify_failure(TimeoutError("The model request timed out")).kind == "timeout"


def test_a_long_document_is_read_only_so_far() -> None:
    assert classify_failure({"message": "x " * 30_000 + "invalid api key"}).kind == "unknown"


def test_bytes_and_nested_bodies_are_read() -> None:
    assert classify_failure({"body": b'{"error": {"type": "authentication_error"}}'}).cause == "key_auth"
    body = {"error": {"details": [{"reason": "API_KEY_INVALID"}]}}
    assert classify_failure({"status_code": 400, "body": body}).cause == "key_auth"
    deep: dict[str, Any] = {}
    deep["error"] = deep
    assert classify_failure({"body": deep}).kind == "unknown"
