"""The patch is the agent's work and nothing else, and applies; nothing of the agent's repository plays a part."""

import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_regcase.capture import patch as patch_module
from pytest_regcase.capture.patch import PatchNotCaptured, note_work_tree, read_patch
from tests.capture.conftest import git


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        each.relative_to(folder).as_posix(): each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file() and ".git" not in each.relative_to(folder).parts
    }


def test_it_holds_changed_new_deleted_and_binary_files_and_applies(tree: Path, tmp_path: Path) -> None:
    (tree / "old.txt").write_text("old\n")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "-m", "more to start from")
    before = note_work_tree(tree)
    fresh = tmp_path / "fresh"
    shutil.copytree(tree, fresh)
    (tree / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (tree / "old.txt").unlink()
    (tree / "new").mkdir()
    (tree / "new" / "größe.txt").write_text("neu\n")
    (tree / "blob").write_bytes(bytes(range(256)))
    (tree / "run.sh").write_text("#!/bin/sh\n")
    (tree / "run.sh").chmod(0o755)
    (tree / "__pycache__").mkdir()
    (tree / "__pycache__" / "calc.pyc").write_bytes(b"x")
    patch = read_patch(before)
    subprocess.run(["git", "apply"], cwd=fresh, input=patch.encode(), check=True)
    wanted = snapshot(tree)
    del wanted["__pycache__/calc.pyc"]
    assert snapshot(fresh) == wanted
    assert (fresh / "run.sh").stat().st_mode & 0o100


@pytest.mark.parametrize("name", ["12:30:00", 'q"u\\o', "two\nlines", "ünï 日本"])
def test_a_folder_of_any_name(tree: Path, tmp_path: Path, name: str) -> None:
    named = tmp_path / name / "tree"
    named.parent.mkdir()
    tree.rename(named)
    noted = note_work_tree(named)
    (named / "calc.py").write_text("new\n")
    assert "+new" in read_patch(noted)


def test_nothing_changed_is_an_empty_patch(tree: Path) -> None:
    assert read_patch(note_work_tree(tree)) == ""


def test_commits_of_the_agent_are_work_too(tree: Path) -> None:
    before = note_work_tree(tree)
    (tree / "calc.py").write_text("pass\n")
    git(tree, "commit", "--quiet", "-am", "done")
    git(tree, "checkout", "--quiet", "-b", "mine")
    assert "+pass" in read_patch(before)


def test_text_that_is_no_utf8_survives(tree: Path, tmp_path: Path) -> None:
    before = note_work_tree(tree)
    fresh = tmp_path / "fresh"
    shutil.copytree(tree, fresh)
    (tree / "calc.py").write_bytes("# größe\n".encode("latin-1"))
    subprocess.run(["git", "apply"], cwd=fresh, input=read_patch(before).encode(), check=True)
    assert (fresh / "calc.py").read_bytes() == "# größe\n".encode("latin-1")


def test_nothing_that_the_agent_set_up_runs_and_its_repository_stays_as_it_is(tree: Path, tmp_path: Path) -> None:
    before = note_work_tree(tree)
    trap = tmp_path / "sprung"
    for key in ("diff.external", "core.fsmonitor", "filter.x.clean"):
        git(tree, "config", key, f"touch {trap};cat")
    (tree / ".gitattributes").write_text("*.py filter=x diff=x\n")
    git(tree, "config", "diff.x.textconv", f"touch {trap};cat")
    (tree / "calc.py").write_text("changed\n")
    index = (tree / ".git" / "index").read_bytes()
    assert "+changed" in read_patch(before)
    assert not trap.exists()
    assert (tree / ".git" / "index").read_bytes() == index


def test_it_is_read_though_the_agent_broke_its_index_and_head(tree: Path) -> None:
    before = note_work_tree(tree)
    (tree / ".git" / "index").write_bytes(b"broken")
    (tree / ".git" / "HEAD").unlink()
    (tree / "calc.py").write_text("changed\n")
    assert "+changed" in read_patch(before)


def test_a_linked_work_tree(repository: Path, tmp_path: Path, base_commit: str) -> None:
    own = tmp_path / "own"
    git(tmp_path, "clone", "--quiet", str(repository), str(own))
    git(own, "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"), base_commit)
    before = note_work_tree(tmp_path / "linked", base_commit)
    (tmp_path / "linked" / "calc.py").write_text("changed\n")
    assert "+changed" in read_patch(before)


@pytest.mark.parametrize("spelt", ["in full", "short", "as HEAD"])
def test_the_tasks_base_commit_in_any_spelling(tree: Path, base_commit: str, spelt: str) -> None:
    name = {"in full": base_commit, "short": base_commit[:10], "as HEAD": "HEAD"}[spelt]
    assert read_patch(note_work_tree(tree, name)) == ""


@pytest.mark.parametrize("base", ["main", "0" * 40])
def test_a_work_tree_at_another_commit_is_reported(tree: Path, base_commit: str, base: str) -> None:
    before = note_work_tree(tree, base)
    with pytest.raises(PatchNotCaptured, match=f"base commit is {base}, .* started at {base_commit}") as caught:
        read_patch(before)
    assert ("has no commit" in caught.value.text) == (base != "main")


@pytest.mark.parametrize("kind", ["gone", "plain", "inside a repository", "without a commit"])
def test_what_is_no_work_tree(tree: Path, kind: str) -> None:
    folder = tree / "inner"
    if kind != "gone":
        folder.mkdir()
    if kind == "plain":
        shutil.rmtree(tree / ".git")
    if kind == "without a commit":
        git(folder, "init", "--quiet")
    with pytest.raises(PatchNotCaptured, match="no such folder" if kind == "gone" else "no git work tree"):
        note_work_tree(folder)


def test_a_work_tree_that_is_gone(tree: Path) -> None:
    before = note_work_tree(tree)
    shutil.rmtree(tree)
    with pytest.raises(PatchNotCaptured, match="the folder is gone"):
        read_patch(before)


def test_objects_that_are_gone(tree: Path) -> None:
    before = note_work_tree(tree)
    shutil.rmtree(tree / ".git")
    with pytest.raises(PatchNotCaptured, match="git cannot read it"):
        read_patch(before)


def test_half_a_patch_is_none(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = note_work_tree(tree)
    monkeypatch.setattr(patch_module, "PATCH_LIMIT_BYTES", 1000)
    (tree / "big.txt").write_text("line\n" * 1000)
    with pytest.raises(PatchNotCaptured, match="bytes, and we take"):
        read_patch(before)
