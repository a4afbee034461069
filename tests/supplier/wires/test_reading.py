from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.supplier.wires.reading import Reader

objects = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "text": st.sampled_from("abc")})


class Reading:
    """Notes what is read."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, one: dict[str, Any]) -> str:
        self.seen.append(one["text"])
        return f"{one['role']}: {one['text']}"


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "user", "text": each} for each in texts]


def test_what_was_read_before_is_not_read_again() -> None:
    reading = Reading()
    reader = Reader(reading)
    assert reader.read(said("a", "b")) == ("user: a", "user: b")
    assert reader.read(said("a", "b", "c")) == ("user: a", "user: b", "user: c")
    assert reading.seen == ["a", "b", "c"]


def test_from_the_first_change_on_all_is_read() -> None:
    reading = Reading()
    reader = Reader(reading)
    reader.read(said("a", "b", "c"))
    reading.seen.clear()
    assert reader.read(said("a", "x", "c", "d")) == ("user: a", "user: x", "user: c", "user: d")
    assert reading.seen == ["x", "c", "d"]


@given(st.lists(st.lists(objects, max_size=5), max_size=5))
def test_what_came_before_makes_no_difference(requests: list[list[dict[str, Any]]]) -> None:
    reader = Reader(Reading())
    for each in requests:
        assert reader.read(each) == tuple(f"{one['role']}: {one['text']}" for one in each)
