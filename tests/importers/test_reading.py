"""Bounded reading: what others wrote is read, refused or mended, and never breaks us."""

import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers import reading
from pytest_regcase.importers.reading import (
    NotJson,
    exception_chain,
    moment,
    parse_json,
    present,
    read_document,
    read_lines,
)

CHAINED = """Traceback (most recent call last):
  File "a.py", line 1, in f
    g()
httpx.ReadTimeout: timed out

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "b.py", line 2, in g
    raise
openai.APITimeoutError: Request timed out.

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "c.py", line 3, in h
    raise
tenacity.RetryError: RetryError[<Future at 0x1>]
"""

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_valid_json_is_read_as_it_is(value: object) -> None:
    try:
        content = json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        content = json.dumps(value).encode()
    parsed = parse_json(content)
    if not parsed.notes:
        assert parsed.value == value


@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_refused(content: bytes) -> None:
    with contextlib.suppress(NotJson):
        assert isinstance(parse_json(content).notes, tuple)


@pytest.mark.parametrize("content", [b'{"a": NaN}', b'{"a": [Infinity, -Infinity]}', b'{"a": 1e999}'])
def test_numbers_that_json_lacks_become_null_with_a_note(content: bytes) -> None:
    parsed = parse_json(content)
    assert set(parsed.value["a"] if isinstance(parsed.value["a"], list) else [parsed.value["a"]]) == {None}
    assert len(parsed.notes) == 1


def test_lone_surrogates_become_a_mark_with_a_note_and_pairs_stay() -> None:
    parsed = parse_json(b'{"\\ud800": ["a\\udfff", "\\ud83d\\ude00"]}')
    assert parsed.value == {"\ufffd": ["a\ufffd", "\U0001f600"]}
    assert len(parsed.notes) == 1
    json.dumps(parsed.value, ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize("depth", [reading.DEPTH_LIMIT + 1, 10_000, 1_000_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    with pytest.raises(NotJson, match="nested deeper than 200"):
        parse_json(b"[" * depth + b"]" * depth)


def test_nesting_up_to_the_limit_is_read() -> None:
    depth = reading.DEPTH_LIMIT
    assert parse_json(b"[" * depth + b"]" * depth).value


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\xff\xfe", "UTF-8 at byte 0"),
        (b'{"a":\n x}', "line 2, column 2"),
        (b"1" * 5000, "number"),
        (b"", "line 1"),
    ],
)
def test_what_is_no_json_says_where(content: bytes, says: str) -> None:
    with pytest.raises(NotJson, match=says):
        parse_json(content)


def test_of_a_key_that_is_there_twice_the_last_counts() -> None:
    assert parse_json(b'{"a": 1, "a": 2}').value == {"a": 2}


def test_a_document_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    path.write_bytes(b"x" * 101)
    assert len(read_document(path, limit_bytes=101)) == 101
    with pytest.raises(ImportRefused) as caught:
        read_document(path, limit_bytes=100)
    assert caught.value.slug == "too-large"


def test_a_line_over_the_limit_is_lost_and_the_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LINE_LIMIT_BYTES", 10)
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"one\n" + b"x" * 35 + b"\nthree\r\nhalf")
    assert list(read_lines(path)) == [(1, b"one", True), (2, None, True), (3, b"three", True), (4, b"half", False)]


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="no such file"):
        list(read_lines(tmp_path / "no"))


def test_an_exception_chain_is_read_outermost_first() -> None:
    assert exception_chain(CHAINED) == [
        ("tenacity.RetryError", "RetryError[<Future at 0x1>]"),
        ("openai.APITimeoutError", "Request timed out."),
        ("httpx.ReadTimeout", "timed out"),
    ]
    assert exception_chain("Traceback (most recent call last):\n  x\nKeyboardInterrupt\n") == [
        ("KeyboardInterrupt", None)
    ]
    assert exception_chain("no traceback: at all") == []
    assert exception_chain(None) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-04-12T09:31:07Z", datetime(2026, 4, 12, 9, 31, 7, tzinfo=UTC)),
        ("2026-04-12T11:31:07+02:00", datetime(2026, 4, 12, 9, 31, 7, tzinfo=UTC)),
        (1775986267.0, datetime(2026, 4, 12, 9, 31, 7, tzinfo=UTC)),
        ("2026-04-12T09:31:07", None),
        ("soon", None),
        (True, None),
        (-1, None),
        (1e300, None),
        (None, None),
    ],
)
def test_a_moment_needs_an_offset(value: object, expected: datetime | None) -> None:
    assert moment(value) == expected


def test_present_keeps_zero_false_and_the_empty_text() -> None:
    assert present({"a": None, "b": {"c": None}, "d": [], "e": 0, "f": False, "g": "", "h": [None, 1]}) == {
        "e": 0,
        "f": False,
        "g": "",
        "h": [1],
    }


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00"])
def test_a_time_that_has_no_utc_is_absent(text: str) -> None:
    assert moment(text) is None


@pytest.mark.parametrize(
    ("value", "found"), [(2**63 - 1, 2**63 - 1), (2**63, None), (-(2**64), None), (True, None)]
)
def test_a_whole_number_that_no_file_holds_is_absent(value: object, found: int | None) -> None:
    assert reading.whole(value) == found
