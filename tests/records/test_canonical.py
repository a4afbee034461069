import math
from datetime import UTC, date, datetime, time, timedelta, timezone

import pytest

from pytest_regcase.records.canonical import canonical_json, digest, digest_of


def test_the_bytes_are_pinned() -> None:
    value = {"b": [1, 2.5, True, None], "a": {"ä": "é\n", "t": datetime(2026, 4, 12, 9, 31, 7, tzinfo=UTC)}}
    assert canonical_json(value) == '{"a":{"t":"2026-04-12T09:31:07Z","ä":"é\\n"},"b":[1,2.5,true,null]}'.encode()
    assert digest(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_equal_instants_are_equal() -> None:
    here = datetime(2026, 4, 12, 11, 31, 7, tzinfo=timezone(timedelta(hours=2)))
    assert canonical_json(here) == canonical_json(here.astimezone(UTC))


def test_a_day_is_no_instant() -> None:
    assert canonical_json(date(2026, 4, 12)) == b'"2026-04-12"'


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_lacks_is_null(value: float) -> None:
    assert canonical_json([value]) == b"[null]"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (datetime(2026, 1, 1), "has no offset"),
        (time(1), "time has no canonical JSON"),
        ({1}, "set has no canonical JSON"),
        (b"", "bytes has no canonical JSON"),
    ],
)
def test_what_has_no_one_form_is_an_error(value: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        digest_of({"a": value})
