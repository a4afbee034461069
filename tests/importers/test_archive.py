"""A zip of logs is unpacked within bounds: names are labels, sizes are looked at first; a bad one costs itself."""

import stat
import zipfile
from pathlib import Path

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers import archive
from pytest_regcase.importers.archive import unpack

GOLD = Path(__file__).parent.parent / "gold"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def packed(path: Path, members: dict[str, bytes], *, link: str | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if name == link:
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            file.writestr(info, content)
    return path


def test_members_are_written_below_the_folder(tmp_path: Path, target: Path) -> None:
    path = packed(tmp_path / "x.zip", {"a/b/one": b"1", "two": b"2", "empty/": b""})
    assert unpack(path, target) == []
    assert {each.relative_to(target).as_posix() for each in target.rglob("*") if each.is_file()} == {
        "a/b/one",
        "two",
    }
    assert (target / "a" / "b" / "one").read_bytes() == b"1"


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "a\\..\\x", "C:/x"])
def test_a_name_that_leads_out_refuses_the_archive(tmp_path: Path, target: Path, name: str) -> None:
    path = packed(tmp_path / "x.zip", {"good": b"1", name: b"2"})
    with pytest.raises(ImportRefused, match="leads out of the archive") as caught:
        unpack(path, target)
    assert caught.value.slug == "unsafe-member"
    assert list(target.iterdir()) == []
    assert not (tmp_path / "x").exists()


def test_a_link_refuses_the_archive(tmp_path: Path, target: Path) -> None:
    with pytest.raises(ImportRefused, match="link"):
        unpack(packed(tmp_path / "x.zip", {"x": b"/etc/passwd"}, link="x"), target)


@pytest.mark.parametrize("name", ["a\x01b", "a" * 300, "/".join("a" * 40)])
def test_a_name_that_is_none_refuses_the_archive(tmp_path: Path, target: Path, name: str) -> None:
    with pytest.raises(ImportRefused, match="no usable name") as caught:
        unpack(packed(tmp_path / "x.zip", {name: b"2"}), target)
    assert "\x01" not in caught.value.text


def test_a_bomb_is_refused_before_anything_is_written(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = packed(tmp_path / "x.zip", {"first": b"1", "x": bytes(400_000)})
    monkeypatch.setattr(archive, "_RATIO_FROM_BYTES", 100_000)
    with pytest.raises(ImportRefused, match="200 times") as caught:
        unpack(path, target)
    assert caught.value.slug == "too-large"
    assert list(target.iterdir()) == []


def test_a_size_that_is_a_lie_is_found_while_it_inflates(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_regcase.importers import zip_members

    path = packed(tmp_path / "x.zip", {"x": bytes(400_000)})
    monkeypatch.setattr(archive, "_refuse_a_bomb", lambda *_: None)
    monkeypatch.setattr(zip_members, "TOTAL_LIMIT_BYTES", 100_000)
    with pytest.raises(ImportRefused) as caught:
        unpack(path, target)
    assert caught.value.slug == "too-large"


def test_too_many_files_are_refused(tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "FILES_LIMIT", 2)
    with pytest.raises(ImportRefused, match="more than 2 files"):
        unpack(packed(tmp_path / "x.zip", dict.fromkeys("abc", b"")), target)


def test_a_damaged_member_costs_itself(tmp_path: Path, target: Path) -> None:
    path = packed(tmp_path / "x.zip", {"bad": b"hello " * 100, "good": b"1"})
    content = bytearray(path.read_bytes())
    content[40] ^= 0xFF  # inside the first member's data
    path.write_bytes(content)
    (lost,) = unpack(path, target)
    assert lost.slug == "corrupt"
    assert "'bad'" in lost.text
    assert [each.name for each in target.iterdir()] == ["good"]


def test_a_file_that_is_also_a_folder_costs_itself(tmp_path: Path, target: Path) -> None:
    path = packed(tmp_path / "x.zip", {"a": b"1", "a/b": b"2", "./a": b"3"})
    assert [each.slug for each in unpack(path, target)] == ["corrupt", "corrupt"]
    assert (target / "a").read_bytes() == b"1"


def test_of_a_zip_that_is_cut_off_the_whole_members_are_taken(tmp_path: Path, target: Path) -> None:
    path = packed(tmp_path / "x.zip", {"a": b"1" * 100, "b": bytes(range(256)) * 4})
    with zipfile.ZipFile(path) as file:
        within_b = file.getinfo("b").header_offset + 60
    path.write_bytes(path.read_bytes()[:within_b])
    lost = unpack(path, target)
    assert {each.slug for each in lost} == {"corrupt"}
    assert "'b'" in lost[-1].text
    assert [each.name for each in target.iterdir()] == ["a"]
