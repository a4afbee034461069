import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.case_files import find_case, find_case_files, inside, replace_file
from pytest_regcase.errors import FileError, UnknownName, WriteError
from tests.case_files.conftest import MINIMUM, WriteCase
from tests.no_access import forbid_listing


def test_case_files_are_found_sorted_and_each_once(write_case: WriteCase, tmp_path: Path) -> None:
    two, one = write_case(folder="b", sealed=False), write_case(folder="a", sealed=False)
    write_case(folder=".draft.tmp", sealed=False)
    (tmp_path / "cases" / "c").mkdir()
    found = find_case_files([tmp_path / "cases", one.parent, tmp_path / "nowhere"])
    assert found == [one, two]


def test_a_case_is_meant_by_path_folder_or_id(write_case: WriteCase, tmp_path: Path) -> None:
    path = write_case()
    folders = [tmp_path / "cases"]
    for name in (str(path), str(path.parent), "sweep-0412-trial-37"):
        assert find_case(folders, name) == path


def test_an_unknown_case_lists_the_known_ids_and_survives_broken_ones(
    write_case: WriteCase, tmp_path: Path
) -> None:
    write_case()
    write_case("not toml", sealed=False, folder="broken")
    with pytest.raises(UnknownName, match=r"Known: broken, sweep-0412-trial-37\."):
        find_case([tmp_path / "cases"], "trial-38")


@pytest.mark.parametrize("name", ["a", "a/b.txt", "./a", "a/./b", "ä ö"])
def test_names_below_the_folder_are_followed(tmp_path: Path, name: str) -> None:
    assert inside(tmp_path, name).is_relative_to(tmp_path)


@pytest.mark.parametrize("name", ["/a", "..", "a/../../b", "", "a\nb", "a\x00b", "C:\\a", "."])
def test_other_names_are_not(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"leaves the case's folder|is no relative path"):
        inside(tmp_path, name)


def test_a_loop_of_links_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    # Python versions differ in whether the loop itself is an error; either way it leads to no file.
    with suppress(ValueError):
        assert not inside(tmp_path, "a").is_file()


def test_a_failed_replacement_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.toml"
    path.write_text(MINIMUM)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match=f"Couldn't write {path}: no space left on device\\.") as caught:
        replace_file(path, b"new")
    assert caught.value.exit_code == 4
    assert path.read_text() == MINIMUM
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_the_mode_that_the_user_wants(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        replace_file(tmp_path / "a", b"x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_an_id_that_two_cases_have_means_neither(write_case: WriteCase, tmp_path: Path) -> None:
    one, two = write_case(folder="one"), write_case(folder="two")
    with pytest.raises(UnknownName, match="2 cases have that id") as caught:
        find_case([tmp_path / "cases"], "sweep-0412-trial-37")
    assert str(one) in caught.value.text
    assert str(two) in caught.value.text
    assert find_case([tmp_path / "cases"], str(two.parent)) == two


@pytest.mark.parametrize("name", ["a" * 300, "a/" * 3000])
def test_a_name_that_the_system_refuses_is_no_case(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnknownName, match="Couldn't find the case") as caught:
        find_case([tmp_path], name)
    assert len(caught.value.text) < 300


@pytest.mark.parametrize("name", ["nowhere/x", "file/x"])
def test_a_folder_that_is_not_there_is_no_failure_of_ours(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match=r"Couldn't write .*/x: (no such file|not a) ") as caught:
        replace_file(tmp_path / name, b"new")
    assert caught.value.exit_code == 2


def test_cases_that_may_not_be_listed_are_not_taken_for_none(
    write_case: WriteCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_case()
    forbid_listing(monkeypatch, tmp_path / "cases")
    with pytest.raises(FileError, match=r"cases: cannot be listed: Permission denied"):
        find_case_files([tmp_path / "cases"])


def test_a_case_that_may_not_be_entered_is_found(
    write_case: WriteCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_case()
    stat = os.stat

    def forbidden(name: Any, *args: Any, **more: Any) -> os.stat_result:
        if not isinstance(name, int) and Path(name) == path:
            raise PermissionError(13, "Permission denied", str(name))
        return stat(name, *args, **more)

    monkeypatch.setattr(os, "stat", forbidden)
    assert find_case_files([tmp_path / "cases"]) == [path]
