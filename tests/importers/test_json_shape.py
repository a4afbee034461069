"""The shape of a document is read off its punctuation, in pieces that end anywhere."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.importers import json_shape
from pytest_regcase.importers.json_shape import Shape, shape_of, shape_of_file
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import HEAD_BYTES, read_head

keys = st.text(max_size=33)
"""Of at most 396 bytes, however they are written."""
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(['"', "\\", '\\"', "[{", '"a":']),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
objects = json_values.filter(lambda value: isinstance(value, dict))


def keys_of(shape: Shape) -> set[str]:
    return {json.loads(f'"{key}"') for key in shape.keys}


@given(objects, st.integers(0, 60))
def test_a_head_never_shows_a_key_that_is_not_there(value: dict[str, object], cut: int) -> None:
    content = json.dumps(value).encode()
    shape = shape_of(content[: len(content) - cut])
    assert keys_of(shape) <= set(value)
    if cut == 0:
        assert shape.kind == "object"
        assert keys_of(shape) == set(value)
        inner = {key for item in value.values() if isinstance(item, dict) for key in item}
        assert {json.loads(f'"{key}"') for key in shape.inner_keys} >= inner


@given(objects, st.integers(1, 7), st.booleans())
def test_pieces_that_end_anywhere_show_the_same(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, object], size: int, ascii_only: bool
) -> None:
    path = tmp_path_factory.mktemp("shape") / "x"
    path.write_text(json.dumps(value, ensure_ascii=ascii_only), encoding="utf-8", errors="surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_shape, "MEBIBYTE", size)
        assert shape_of_file(path) == shape_of(path.read_bytes())


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_key_that_is_too_long_is_left_out_whatever_the_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    path = tmp_path / "x"
    path.write_text(json.dumps({"a" * 400: {"b" * 401: 1}, "c" * 401: 1, "d": 1}))
    monkeypatch.setattr(json_shape, "MEBIBYTE", size)
    assert shape_of_file(path) == Shape("object", frozenset({"a" * 400, "d"}))


def test_a_list_shows_the_keys_of_its_objects() -> None:
    shape = shape_of(b'\xef\xbb\xbf [{"role": "user", "content": {"deeper": "]}"}}, {"extra": 1}, ')
    assert shape == Shape("list", frozenset({"role", "content", "extra"}), frozenset({"deeper"}))


@pytest.mark.parametrize("content", [b"", b" \n", b"x", b'"a": 1', b"\xff\xfe{"])
def test_what_is_neither_is_other(content: bytes) -> None:
    assert shape_of(content) == Shape("other")


def test_what_stands_behind_the_document_is_not_looked_at() -> None:
    assert shape_of(b'{"a": {}}\n{"b": 1}') == Shape("object", frozenset({"a"}))


def test_a_key_behind_the_head_is_seen_in_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"messages": ['"info": ' * HEAD_BYTES], "info": {}}))
    peek = Peek(path, "file", read_head(path))
    assert peek.shape.keys == {"messages"}
    assert peek.whole_shape.keys == {"messages", "info"}
    path.unlink()
    assert Peek(path, "file", peek.head).whole_shape == peek.shape
