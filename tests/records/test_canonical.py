"""Canonical JSON: one byte string for one value."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.records.canonical import canonical_json, digest, digest_of

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), plain))
def test_the_order_of_keys_does_not_matter(value: dict[str, Any]) -> None:
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)


def test_the_form_is_written_down() -> None:
    assert canonical_json({"b": [1, None, "ä"], "a": True}) == '{"a":true,"b":[1,null,"ä"]}'.encode()
    assert canonical_json([float("nan"), float("inf"), date(2026, 4, 12)]) == b'[null,null,"2026-04-12"]'


def test_equal_instants_are_equal_and_a_time_without_offset_is_refused() -> None:
    instant = datetime(2026, 4, 12, 9, 31, 7, tzinfo=UTC)
    other = instant.astimezone(timezone(timedelta(hours=2)))
    assert canonical_json(other) == canonical_json(instant) == b'"2026-04-12T09:31:07Z"'
    with pytest.raises(ValueError, match="has no offset"):
        canonical_json(datetime(2026, 4, 12))


def test_what_json_has_not_is_refused() -> None:
    with pytest.raises(ValueError, match="set has no canonical JSON"):
        canonical_json({"a": {1}})


def test_a_digest_names_its_kind() -> None:
    assert digest(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest_of("x") == digest(b'"x"')
