"""All files of a case, or none; and what was cut short is finished, or refused."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_regcase.case_files import finish_replacing, is_half_replaced, load_case, replace_files
from pytest_regcase.case_files.editing import append_record
from pytest_regcase.errors import FileError, SealError, UsageRefused
from pytest_regcase.records.canonical import digest
from pytest_regcase.records.case import Reopened
from tests.case_files.conftest import MINIMUM, WriteCase

TASK = '\n[task]\ntext_file = "recorded/task.txt"\n'


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def case(write_case: WriteCase) -> Path:
    path = write_case(MINIMUM + TASK, files={"recorded/task.txt": "old", "recorded/more/b.txt": "old"})
    (path.parent / "recorded" / "task.txt").chmod(0o640)
    return path


def edit(path: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return what replaces every file of the case, and the digests of what is there."""
    names = ["case.toml", "recorded/task.txt", "recorded/more/b.txt"]
    old = {name: (path.parent / name).read_bytes() for name in names}
    new = {name: content.replace(b"old", b"new") for name, content in old.items()}
    new["case.toml"] = old["case.toml"].replace(b"no answer from", b"silent from")
    return new, {name: digest(content) for name, content in old.items()}


def everything(path: Path) -> dict[str, bytes]:
    return {
        each.relative_to(path.parents[1]).as_posix(): each.read_bytes()
        for each in path.parents[1].rglob("*")
        if each.is_file()
    }


def test_all_files_are_replaced_and_nothing_else_stays(case: Path) -> None:
    new, before = edit(case)
    loaded = replace_files(case.parent, new, before)
    assert loaded.case.title == load_case(case).case.title == "silent from step 6 on"
    assert loaded.task_text() == "new"
    assert everything(case) == {f"trial-37/{name}": content for name, content in new.items()}
    assert (case.parent / "recorded" / "task.txt").stat().st_mode & 0o777 == 0o640
    assert not is_half_replaced(case.parent)


def test_a_case_that_would_not_be_right_stays_as_it_was(case: Path) -> None:
    new, before = edit(case)
    new["case.toml"] = new["case.toml"].replace(b"step 5", b"step 4")
    old = everything(case)
    with pytest.raises(SealError) as error:
        replace_files(case.parent, new, before)
    assert "view" not in error.value.text
    assert ".tmp" not in error.value.text
    assert everything(case) == old


def test_a_file_that_was_changed_meanwhile_is_not_overwritten(case: Path) -> None:
    new, before = edit(case)
    (case.parent / "recorded" / "task.txt").write_text("edited")
    old = everything(case)
    with pytest.raises(UsageRefused, match="changed meanwhile"):
        replace_files(case.parent, new, before)
    assert everything(case) == old


def test_a_link_is_not_replaced(case: Path) -> None:
    new, before = edit(case)
    path = case.parent / "recorded" / "more" / "b.txt"
    path.rename(case.parent / "elsewhere.txt")
    path.symlink_to("../../elsewhere.txt")
    with pytest.raises(FileError, match="symbolic link"):
        replace_files(case.parent, new, before)


def cut_short(case: Path, monkeypatch: pytest.MonkeyPatch, *, after: int) -> dict[str, bytes]:
    """Replace all files, but end after `after` of them were moved in; return what they were to become."""
    new, before = edit(case)
    replace = os.replace
    moved: list[object] = []

    def killed(source: Path, target: Path) -> None:
        if ".replacing/" in str(source):
            if len(moved) == after:
                raise Killed
            moved.append(target)
        replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed)
        with pytest.raises(Killed):
            replace_files(case.parent, new, before)
    return new


@pytest.mark.parametrize("after", [0, 1, 2])
def test_what_was_cut_short_is_finished(case: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    new = cut_short(case, monkeypatch, after=after)
    assert is_half_replaced(case.parent)
    assert set(finish_replacing(case.parent)) == set(new)
    assert not is_half_replaced(case.parent)
    assert everything(case) == {f"trial-37/{name}": content for name, content in new.items()}
    assert load_case(case).task_text() == "new"


def test_the_case_file_is_moved_in_last(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_short(case, monkeypatch, after=2)
    assert b"no answer from" in case.read_bytes()
    assert (case.parent / "recorded" / "task.txt").read_text() == "new"


def test_a_case_that_was_edited_since_is_not_overwritten(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_short(case, monkeypatch, after=0)
    append_record(case, "reopened", Reopened(at=datetime(2026, 5, 1, tzinfo=UTC), by="me", why="seen again"))
    old = everything(case)
    with pytest.raises(UsageRefused, match=r"case\.toml was changed since") as refusal:
        finish_replacing(case.parent)
    assert ".trial-37.replacing" in refusal.value.text
    assert everything(case) == old


def test_a_damaged_list_is_refused(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_short(case, monkeypatch, after=0)
    (case.parents[1] / ".trial-37.replacing" / "replaced.json").write_text("[")
    with pytest.raises(UsageRefused, match="is damaged"):
        finish_replacing(case.parent)


def test_two_at_a_time_do_not_mix(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_short(case, monkeypatch, after=0)
    new, before = edit(case)
    with pytest.raises(UsageRefused, match="another edit of it is going on"):
        replace_files(case.parent, new, before)
    assert [each.name for each in case.parents[1].iterdir() if each.name.endswith(".tmp")] == []
