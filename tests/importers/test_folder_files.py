"""Files of a folder that is read as a whole: no links, nothing outside, only refusals."""

from pathlib import Path

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.folder_files import beside, folders_in, is_plain_file, name_below


def test_links_are_neither_files_nor_folders(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "linked-file").symlink_to(tmp_path / "file")
    (tmp_path / "linked-folder").symlink_to(tmp_path / "folder")
    assert is_plain_file(tmp_path / "file")
    assert not is_plain_file(tmp_path / "linked-file")
    assert folders_in(tmp_path) == [tmp_path / "folder"]


@pytest.mark.parametrize("name", ["../file", "/etc/hosts", "..", ".", "", "x" * 300, "a\0b", "folder/file"])
def test_a_name_out_of_a_file_never_leads_elsewhere(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("x")
    assert beside(tmp_path / "folder", name) is None
    assert beside(tmp_path / "folder", "file") == tmp_path / "folder" / "file"


def test_a_folder_that_is_gone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused) as caught:
        folders_in(tmp_path / "gone")
    assert caught.value.slug == "unreadable"


def test_a_file_is_noted_by_its_place_below_the_folder(tmp_path: Path) -> None:
    assert name_below(tmp_path / "a" / "b.json", tmp_path) == "a/b.json"
