"""The point in time that a line of a log begins with, in the forms that servers write.

Pure. Knows text and JSON lines; reads no files. A line without a time of its own belongs to the line before it.
A kernel's own lines hold seconds since boot: they name a point in time only where the log tells when that was.
"""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pytest_regcase.records.moments import moment

_SEARCHED_CHARACTERS: Final = 200
_KEYS: Final = (
    "timestamp",
    "time",
    "ts",
    "@timestamp",
    "__REALTIME_TIMESTAMP",
    "asctime",
    "date",
    "datetime",
    "t",
    "created",
    "at",
)
_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"
_CLOCK: Final = r"(?P<clock>\d{2}:\d{2}:\d{2})(?:[.,](?P<part>\d{1,9}))?"
_FORMS: Final = tuple(
    re.compile(each)
    for each in (
        # 2026-04-12T09:31:07.123Z, 2026-04-12 09:31:07,123 +0200, 2026/04/12 09:31:07, 2026/04/12 - 09:31:07 (GIN)
        rf"(?<!\d)(?P<year>\d{{4}})[-/](?P<month>\d{{2}})[-/](?P<day>\d{{2}})(?:[T ]| - ){_CLOCK}"
        r" ?(?P<offset>Z|[+-]\d{2}:?\d{2})?",
        # [12/Apr/2026:09:31:07 +0200], as web servers write it
        rf"(?<!\d)(?P<day>\d{{2}})/(?P<name>[A-Z][a-z]{{2}})/(?P<year>\d{{4}}):{_CLOCK} ?(?P<offset>[+-]\d{{4}})?",
        # [Sun Apr 12 09:31:07 2026], as dmesg -T, date and Apache write it
        rf"^\[?(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?P<name>[A-Z][a-z]{{2}}) +(?P<day>\d{{1,2}}) {_CLOCK}"
        r"(?: (?:UTC|GMT))? (?P<year>\d{4})(?!\d)",
        # Apr 12 09:31:07, as syslog writes it: no year
        rf"^(?:<\d+>)?(?P<name>[A-Z][a-z]{{2}}) +(?P<day>\d{{1,2}}) {_CLOCK}",
        # I0412 09:31:07.123456 (glog); INFO 04-12 09:31:07 (vLLM): no year
        rf"^[IWEF](?P<month>\d{{2}})(?P<day>\d{{2}}) +{_CLOCK}",
        rf"^(?:[A-Z]+ )?(?P<month>\d{{2}})-(?P<day>\d{{2}}) {_CLOCK}",
    )
)
_EPOCH: Final = re.compile(r"(?:^\[?|msg=audit\()(?P<seconds>\d{10}\.\d{1,9})(?!\d)")
_SINCE_BOOT: Final = re.compile(r"^(?:<\d+>)?\[ *(?P<seconds>\d{1,9}\.\d{3,6})\]")
_CLOCK_SET: Final = re.compile(r"setting system clock to \S+(?: UTC)? \((?P<seconds>\d{9,11})\)")


def time_of(line: str, near: datetime) -> datetime | None:
    """Return the time that stands at the beginning of `line`; None where there is none.

    A time without an offset is read as UTC; a date without a year gets the one that brings it closest to `near`.
    """
    if line.lstrip().startswith("{"):
        return _of_json(line, near)
    return _of_text(line[:_SEARCHED_CHARACTERS], near)


def _of_json(line: str, near: datetime) -> datetime | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return _of_text(line[:_SEARCHED_CHARACTERS], near)
    if not isinstance(found, dict):
        return None
    for key in _KEYS:
        at = _of_value(found.get(key), near)
        if at is not None:
            return at
    return None


def _of_value(value: Any, near: datetime) -> datetime | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Seconds, milliseconds, microseconds or nanoseconds since 1970.
        for scale in (1, 1e3, 1e6, 1e9):
            at = moment(value / scale)
            if at is not None and 2000 <= at.year < 2100:
                return at
        return None
    if not isinstance(value, str):
        return None
    if re.fullmatch(r"\d{9,19}(?:\.\d+)?", value):
        return _of_value(float(value), near)
    return moment(value) or _of_text(value[:_SEARCHED_CHARACTERS], near)


def _of_text(text: str, near: datetime) -> datetime | None:
    epoch = _EPOCH.search(text)
    if epoch is not None:
        return moment(float(epoch["seconds"]))
    for form in _FORMS:
        matched = form.search(text)
        if matched is not None:
            at = _built(matched.groupdict(), near)
            if at is not None:
                return at
    return None


def _built(parts: dict[str, str | None], near: datetime) -> datetime | None:
    name = parts.get("name")
    if name is not None:
        place = _MONTHS.find(name)
        if place < 0 or place % 3:
            return None
        month = f"{place // 3 + 1:02}"
    else:
        month = parts["month"] or ""
    offset = parts.get("offset") or "Z"
    part = f".{(parts.get('part') or '0')[:6]:0<6}"
    rest = f"-{month}-{int(parts['day'] or 0):02}T{parts['clock']}{part}{offset}"
    if parts.get("year"):
        return moment(f"{parts['year']}{rest}")
    year = near.astimezone(UTC).year
    found = [at for at in (moment(f"{each}{rest}") for each in (year - 1, year, year + 1)) if at is not None]
    return min(found, key=lambda each: abs((each - near).total_seconds()), default=None)


def since_boot(line: str) -> timedelta | None:
    """Return how long after boot a kernel wrote the line (``[12345.678901] ...``); None for other lines."""
    found = _SINCE_BOOT.match(line)
    return timedelta(seconds=float(found["seconds"])) if found is not None else None


def boot_of(line: str) -> datetime | None:
    """Return when the machine was booted, from the kernel's line that sets the clock; None for every other line.

    The line holds both times (``[1.2] rtc_cmos 00:00: setting system clock to ... (1775980801)``). What a machine
    slept afterwards is in neither.
    """
    found, after = _CLOCK_SET.search(line), since_boot(line)
    at = moment(float(found["seconds"])) if found is not None else None
    return at - after if at is not None and after is not None else None
