from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from pytest_regcase.supplier.faults.rate_limited import RateLimited, Settings
from tests.supplier.faults.conftest import FaultyService

NOON = 1_775_649_600.0
"""2026-04-08 12:00:00 UTC."""


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ("Retry-After", "2")),
        ({"wait_seconds": 0.2}, ("Retry-After", "1")),
        ({"wait_seconds": 86400.0}, ("Retry-After", "86400")),
        ({"retry_after": "date"}, ("Retry-After", "Wed, 08 Apr 2026 12:00:02 GMT")),
        ({"retry_after": "date", "wait_seconds": 0.1}, ("Retry-After", "Wed, 08 Apr 2026 12:00:01 GMT")),
        ({"retry_after": "date", "wait_seconds": 86400.0}, ("Retry-After", "Thu, 09 Apr 2026 12:00:00 GMT")),
        ({"retry_after": "milliseconds", "wait_seconds": 0.25}, ("retry-after-ms", "250")),
    ],
)
def test_the_header_asks_for_the_pause(settings: dict[str, Any], expected: tuple[str, str]) -> None:
    assert RateLimited(Settings(**settings)).headers(NOON) == (expected,)


def test_a_server_may_also_not_say_how_long() -> None:
    assert RateLimited(Settings(retry_after="none")).headers(NOON) == ()


def test_the_header_is_on_the_wire(faulty: FaultyService) -> None:
    seconds = faulty.meet("rate_limited", wait_seconds=7.0)
    assert (seconds.status, seconds.headers["retry-after"]) == (429, "7")
    date = faulty.meet("rate_limited", retry_after="date")
    assert parsedate_to_datetime(date.headers["retry-after"]).tzinfo is not None
    milliseconds = faulty.meet("rate_limited", retry_after="milliseconds", streaming=True)
    assert milliseconds.headers["retry-after-ms"] == "2000"
    assert "retry-after" not in milliseconds.headers
