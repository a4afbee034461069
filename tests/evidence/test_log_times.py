"""Times as servers write them at the beginning of a line."""

from datetime import UTC, datetime, timedelta

import pytest

from pytest_regcase.evidence.log_times import boot_of, since_boot, time_of

NEAR = datetime(2026, 4, 12, 10, tzinfo=UTC)
AT = datetime(2026, 4, 12, 9, 31, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    "line",
    [
        "2026-04-12T09:31:07Z started",
        "2026-04-12 09:31:07,000 INFO x",
        "2026-04-12 11:31:07.000 +0200 x",
        "2026-04-12T11:31:07+02:00 x",
        "2026/04/12 09:31:07 [error] 7#7: upstream",
        "[2026-04-12 09:31:07 +0000] [7] [INFO] Booting",
        '1.2.3.4 - - [12/Apr/2026:11:31:07 +0200] "POST /v1" 200',
        "Apr 12 09:31:07 host kernel: Out of memory",
        "<13>Apr 12 09:31:07 host x",
        "I0412 09:31:07.000000 12 server.cc:1] x",
        "[Sun Apr 12 09:31:07 2026] Out of memory",
        "Sun Apr 12 09:31:07 UTC 2026",
        "[Sun Apr 12 09:31:07.000000 2026] [core:error] [pid 7] x",
        '[GIN] 2026/04/12 - 09:31:07 | 200 | 1s | 127.0.0.1 | POST "/api/chat"',
        "1775986267.000000 host kernel: x",
        "type=ANOM_ABEND msg=audit(1775986267.000:456): x",
        '{"__REALTIME_TIMESTAMP": "1775986267000000", "MESSAGE": "x"}',
        "INFO 04-12 09:31:07 [loggers.py:1] Engine 000",
        '{"timestamp": "2026-04-12T09:31:07Z", "msg": "x"}',
        '{"level": "info", "ts": 1775986267.0}',
        '{"time": 1775986267000}',
        '{"t": "1775986267"}',
        '{"asctime": "2026-04-12 09:31:07,000"}',
        '{"time": null, "at": "2026-04-12T09:31:07Z"}',
    ],
)
def test_a_time_is_read(line: str) -> None:
    assert time_of(line, NEAR) == AT


def test_parts_of_a_second_are_kept() -> None:
    assert time_of("2026-04-12 09:31:07,250 x", NEAR) == AT + timedelta(milliseconds=250)


@pytest.mark.parametrize(
    "line",
    [
        "",
        '  File "x.py", line 3',
        "Traceback (most recent call last):",
        "took 09:31:07 hours",
        "Sun Apr 12 09:31:07 CEST 2026",  # no one can tell which offset that is
        "[12345.678901] seconds since boot are no point in time",
        "2026-13-40 09:31:07 no such day",
        "Foo 12 09:31:07 no month",
        "pri 12 09:31:07 no month",
        "x" * 300 + " 2026-04-12T09:31:07Z",  # too far behind to be the line's own
        '{"timestamp": true}',
        '{"timestamp": 17}',
        '{"ts": NaN, "msg": "x"}',
        "[1, 2]",
        "{broken",
    ],
)
def test_no_time_is_invented(line: str) -> None:
    assert time_of(line, NEAR) is None


def test_a_date_without_a_year_is_the_closest() -> None:
    new_year = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
    assert time_of("Dec 31 23:59:00 host x", new_year) == datetime(2025, 12, 31, 23, 59, tzinfo=UTC)
    assert time_of("Feb 29 10:00:00 host x", datetime(2025, 3, 1, tzinfo=UTC)) == datetime(
        2024, 2, 29, 10, tzinfo=UTC
    )


def test_seconds_since_boot_are_read() -> None:
    assert since_boot("<4>[ 12345.500000] x") == timedelta(seconds=12345.5)
    assert since_boot("[12/Apr/2026:09:31:07 +0000] x") is None
    assert since_boot("12345.5 x") is None


def test_the_time_of_boot_is_in_the_line_that_sets_the_clock() -> None:
    line = "[    7.000000] rtc_cmos 00:00: setting system clock to 2026-04-12T09:31:07 UTC (1775986267)"
    assert boot_of(line) == AT - timedelta(seconds=7)
    assert boot_of("[    7.000000] x") is None
    assert boot_of("setting system clock to 2026-04-12T09:31:07 UTC (1775986267)") is None
