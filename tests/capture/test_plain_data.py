"""Whatever an agent hands over becomes JSON, and nothing it does when it is asked is fatal."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.capture.plain_data import CUT_MARK, TEXT_LIMIT, as_text, plain
from pytest_regcase.importers.reading import LINE_LIMIT_BYTES
from pytest_regcase.records.trial import ToolCall


class Colour(Enum):
    RED = 1


class Level(IntEnum):
    HIGH = 3


class Word(StrEnum):
    STOP = "stop"


@dataclass
class Point:
    x: float
    where: object


class Sulky:
    def __str__(self) -> str:
        raise RuntimeError("not today")


class Lying:
    def __str__(self) -> str:
        return 42  # type: ignore[return-value]


class Mine:
    def keys(self) -> Any:
        raise AssertionError

    @property
    def model_dump(self) -> Any:
        raise KeyError("no")


class Quarrelsome(dict[str, int]):
    def items(self) -> Any:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (ConnectionError, "ConnectionError"),
        (json.JSONDecodeError, "json.decoder.JSONDecodeError"),
        (ConnectionError("lost"), "ConnectionError: lost"),
        (b"gr\xfc\xdfe", "gr\\xfc\\xdfe"),
        (b"plain", "plain"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (0.5, 0.5),
        (PurePosixPath("/a/b"), "/a/b"),
        (Decimal("0.10"), "0.10"),
        (Colour.RED, "Colour.RED"),
        (Level.HIGH, 3),
        (Word.STOP, "stop"),
        (True, True),
        (None, None),
        (2**80, hex(2**80)),
        ("half \ud800", "half \\ud800"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        ((1, [2, {3}]), [1, [2, [3]]]),
        ({b"key": 1, 2: "x"}, {"key": 1, "2": "x"}),
        (Point(float("nan"), PurePosixPath("p")), {"x": "NaN", "where": "p"}),
        (ToolCall(name="bash"), {"id": None, "name": "bash", "arguments": "{}"}),
    ],
)
def test_what_has_no_json_form_is_text(value: object, stored: object) -> None:
    found = plain(value)
    assert found == stored
    assert type(found) is type(stored)
    assert json.loads(json.dumps(found, allow_nan=False)) == stored


@pytest.mark.parametrize("value", [Sulky(), [Sulky()], {"a": Lying()}, Mine(), Quarrelsome(a=1), object()])
def test_an_object_that_objects_is_text_all_the_same(value: object) -> None:
    json.dumps(plain(value), allow_nan=False).encode("utf-8")


def test_a_number_that_python_refuses_to_print_is_text() -> None:
    assert plain(10**6000) == hex(10**6000)


def test_a_str_that_raises_says_so() -> None:
    assert as_text(Sulky()).endswith("Sulky: its str() raised RuntimeError>")
    assert "TypeError" in as_text(Lying())


def test_what_holds_itself_ends() -> None:
    loop: list[object] = [1]
    loop.append(loop)
    assert json.dumps(plain(loop)).startswith("[1, ")


def test_what_doubles_at_each_level_ends() -> None:
    wide: object = "x"
    for _ in range(39):
        wide = [wide, wide]
    json.dumps(plain(wide))


def test_a_huge_text_is_cut_and_says_so() -> None:
    found = plain("x" * (TEXT_LIMIT + 1))
    assert found == "x" * TEXT_LIMIT + CUT_MARK


@pytest.mark.parametrize(
    "record",
    [
        {"patch": "\x01" * TEXT_LIMIT, "text": "\x02" * TEXT_LIMIT, "by": "agent"},
        {"patch": "x", "calls": ["\U0001f600" * 2_000_000] * 6, "by": "agent"},
        {"patch": "x", "by": "agent", "numbers": list(range(400_000))},
        {"patch": "x", "by": "agent", "table": dict.fromkeys(range(400_000), 1)},
    ],
    ids=["control-characters", "wide-characters", "long-list", "wide-table"],
)
def test_a_whole_record_fits_a_line_and_what_comes_first_is_whole(record: dict[str, Any]) -> None:
    found = plain(record)
    assert found["patch"] == record["patch"]
    assert found["by"] == "agent"
    line = json.dumps(found, ensure_ascii=False)
    assert len(line.encode()) < LINE_LIMIT_BYTES
    assert CUT_MARK in line or "too large to be recorded" in line


class _NoName(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__module__", "__name__", "__qualname__"):
            raise RuntimeError(name)
        return super().__getattribute__(name)


class _Nameless(metaclass=_NoName):
    def __str__(self) -> str:
        raise RuntimeError


def test_a_class_that_does_not_say_its_name() -> None:
    assert plain([_Nameless, _Nameless()]) == ["_Nameless", "<_Nameless: its str() raised RuntimeError>"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner),
        max_leaves=10,
    )
)
def test_anything_is_strict_json_in_utf8(value: object) -> None:
    written = json.dumps(plain(value), ensure_ascii=False, allow_nan=False).encode("utf-8")
    assert plain(json.loads(written)) == json.loads(written)
