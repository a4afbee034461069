"""Every item is in exactly one shard, whatever their numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.session.planning.shards import Shard, missing, part, read_shard


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "1/0", "-1/3", "1/3/5", "a/b", "1 /3", "1/³", "1.0/3"])
def test_what_is_no_shard(text: str) -> None:
    with pytest.raises(ValueError, match="is no i/n with 1 <= i <= n"):
        read_shard(text)


def test_it_has_one_spelling() -> None:
    assert str(read_shard("02/03")) == "2/3"
    assert read_shard("3/3") == Shard(3, 3)


@given(items=st.lists(st.integers(), unique=True), of=st.integers(1, 12))
def test_the_parts_are_a_partition_of_nearly_equal_sizes(items: list[int], of: int) -> None:
    parts = [part(items, Shard(number, of)) for number in range(1, of + 1)]
    assert sorted(each for found in parts for each in found) == sorted(items)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for found in parts:
        assert list(found) == [each for each in items if each in found]
    assert part(items, None) == tuple(items)


@given(of=st.integers(1, 12), data=st.data())
def test_what_is_missing_completes_what_is_there(of: int, data: st.DataObject) -> None:
    seen = data.draw(st.sets(st.integers(1, of), min_size=1))
    gone = missing(Shard(each, of) for each in seen)
    assert [each.number for each in gone] == [each for each in range(1, of + 1) if each not in seen]
    assert {each.of for each in gone} <= {of}


def test_nothing_is_missing_of_nothing() -> None:
    assert missing([]) == ()
