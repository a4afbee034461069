"""A document is parsed once while its file is the same, and again when it is not."""

import os
from pathlib import Path

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers import last_document
from pytest_regcase.importers.last_document import LastDocument
from pytest_regcase.importers.reading import Parsed, read_parsed


def test_it_is_parsed_again_only_when_it_changed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("[1]")
    document = LastDocument()
    first = document.read(path)
    assert document.read(path) is first
    path.write_text("[12]")
    assert document.read(path).value == [12]
    kept = document.read(path)
    os.utime(path, ns=(0, 0))
    assert document.read(path) is not kept
    other = tmp_path / "y"
    other.write_text("[12]")
    assert document.read(other) is not document.read(path)


def test_the_last_one_is_let_go_before_the_next_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = LastDocument()
    for name in ("a", "b"):
        (tmp_path / name).write_text("[1]")
    document.read(tmp_path / "a")
    held: list[object] = []

    def parse(path: Path) -> Parsed:
        held.append(document._parsed.value)
        return read_parsed(path)

    monkeypatch.setattr(last_document, "read_parsed", parse)
    document.read(tmp_path / "b")
    assert held == [None]


@pytest.mark.parametrize(("content", "slug"), [("[1", "corrupt"), (None, "unreadable")])
def test_what_cannot_be_read_is_refused(tmp_path: Path, content: str | None, slug: str) -> None:
    path = tmp_path / "x"
    if content is not None:
        path.write_text(content)
    for _ in range(2):
        with pytest.raises(ImportRefused) as caught:
            LastDocument().read(path)
        assert caught.value.slug == slug
