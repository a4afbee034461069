"""Zips within bounds, in three methods, and each kind of damage in its own words."""

import builtins
import contextlib
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers import zip_members
from pytest_regcase.importers.zip_members import ZipMembers
from tests.importers.zips import DEFLATED, STORED, ZSTANDARD, write_zip

MEMBERS = [("a.json", b"[1]" * 1000), ("samples/x/y_epoch_1.json", b"{}"), ("empty", b"")]


@pytest.mark.parametrize("method", [STORED, DEFLATED, ZSTANDARD])
def test_members_are_read_in_each_method(tmp_path: Path, method: int) -> None:
    path = write_zip(tmp_path / "x.zip", MEMBERS, method=method)
    with ZipMembers(path) as members:
        assert members.names == tuple(name for name, _ in MEMBERS)
        for name, content in MEMBERS:
            assert members.read(name) == content


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_two_members_with_one_name_the_last_counts(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.zip", [("a", b"first"), ("b", b"between"), ("a", b"second")])
    with ZipMembers(path) as members:
        assert members.names == ("a", "b")
        assert members.read("a") == b"second"


@pytest.mark.parametrize("method", [STORED, DEFLATED, ZSTANDARD])
def test_a_damaged_member_is_refused_and_the_others_are_read(tmp_path: Path, method: int) -> None:
    path = write_zip(tmp_path / "x.zip", MEMBERS, method=method, damage="a.json")
    with ZipMembers(path) as members:
        assert members.read("samples/x/y_epoch_1.json") == b"{}"
        with pytest.raises(ImportRefused, match=r"'a\.json' is damaged") as caught:
            members.read("a.json")
    assert caught.value.slug == "corrupt"


@pytest.mark.parametrize("keep", [3, 10, 30, 40])
def test_a_zip_cut_off_in_its_first_member_is_corrupt(tmp_path: Path, keep: int) -> None:
    path = write_zip(tmp_path / "x.zip", MEMBERS)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ImportRefused, match="cut-off") as caught:
        ZipMembers(path)
    assert caught.value.slug == "corrupt"


@pytest.mark.parametrize("method", [STORED, DEFLATED, ZSTANDARD])
def test_whole_members_of_a_cut_off_zip_are_read_and_the_loss_is_said(tmp_path: Path, method: int) -> None:
    whole = write_zip(tmp_path / "x.zip", MEMBERS, method=method).read_bytes()
    path = tmp_path / "cut.zip"
    path.write_bytes(whole[: whole.index(b"samples/x") + 25])
    with ZipMembers(path) as members:
        assert members.names == ("a.json",)
        assert members.read("a.json") == MEMBERS[0][1]
        assert members.lost is not None
        assert members.lost.startswith("the file is cut off behind 1 whole member,")
    path.write_bytes(whole[: whole.index(b"PK\x01\x02") + 9])
    with ZipMembers(path) as members:
        assert members.names == tuple(name for name, _ in MEMBERS)
        assert members.lost is not None
        assert members.lost.startswith("the file is cut off behind 3 whole members; ")


def test_a_member_whose_size_stands_behind_it_is_not_rescued(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.zip", MEMBERS)
    content = path.read_bytes()
    path.write_bytes(content[:6] + b"\x08\x08" + content[8 : content.index(b"PK\x01\x02")])
    with pytest.raises(ImportRefused, match="no member in it is whole"):
        ZipMembers(path)


@given(data=st.data())
def test_changed_and_missing_bytes_are_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = write_zip(tmp_path_factory.mktemp("zip") / "x.zip", MEMBERS, method=DEFLATED)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
    with contextlib.suppress(ImportRefused), ZipMembers(path) as members:
        for name in members.names:
            with contextlib.suppress(ImportRefused):
                members.read(name)


@pytest.mark.parametrize("method", [DEFLATED, ZSTANDARD])
def test_a_bomb_is_refused_before_it_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: int
) -> None:
    monkeypatch.setattr(zip_members, "DOCUMENT_LIMIT_BYTES", 1024 * 1024)
    path = write_zip(tmp_path / "x.zip", [("bomb", bytes(64 * 1024 * 1024))], method=method)
    assert path.stat().st_size < 100_000
    with ZipMembers(path) as members, pytest.raises(ImportRefused, match="inflates to more") as caught:
        members.read("bomb")
    assert caught.value.slug == "too-large"


def test_all_members_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_members, "TOTAL_LIMIT_BYTES", 2500)
    path = write_zip(tmp_path / "x.zip", [("a", bytes(1000)), ("b", bytes(1000)), ("c", bytes(1000))])
    with ZipMembers(path) as members:
        members.read("a")
        members.read("b")
        with pytest.raises(ImportRefused) as caught:
            members.read("c")
    assert caught.value.slug == "too-large"


def test_an_unknown_method_is_named(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.zip", [("a", b"content")], method=STORED)
    path.write_bytes(path.read_bytes().replace(b"\x00\x08\x00\x00", b"\x00\x08\x61\x00"))
    with ZipMembers(path) as members, pytest.raises(ImportRefused, match="method 97") as caught:
        members.read("a")
    assert caught.value.slug == "unknown-compression"


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.zip", [("a", b"content")], method=STORED)
    path.write_bytes(path.read_bytes().replace(b"\x00\x08\x00\x00", b"\x01\x08\x00\x00"))
    with ZipMembers(path) as members, pytest.raises(ImportRefused) as caught:
        members.read("a")
    assert caught.value.slug == "encrypted"


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python 3.14 reads zstandard by itself")
def test_without_zstandard_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_zip(tmp_path / "x.zip", MEMBERS)
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] in ("zstandard", "compression"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with ZipMembers(path) as members, pytest.raises(ImportRefused, match=r"pytest-regcase\[inspect\]") as caught:
        members.read("a.json")
    assert caught.value.slug == "zstandard-missing"


def test_a_wrong_checksum_is_found(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "x.zip", [("a", b"content")])
    wrong = zlib.crc32(b"content").to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(wrong, b"\x01\x02\x03\x04"))
    with ZipMembers(path) as members, pytest.raises(ImportRefused, match="damaged"):
        members.read("a")
