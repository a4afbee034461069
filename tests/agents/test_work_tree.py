import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_regcase.agents import work_tree
from pytest_regcase.agents.git_commands import run_git
from pytest_regcase.agents.work_tree import CUT_MARK, DIFF_LIMIT_BYTES, lay, note
from pytest_regcase.errors import MachineryError, UsageRefused


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "pkg").mkdir(parents=True)
    (folder / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (folder / "pkg" / "run.sh").write_text("#!/bin/sh\necho run\n")
    (folder / "pkg" / "run.sh").chmod(0o755)
    (folder / "data.bin").write_bytes(bytes(range(256)))
    (folder / ".gitignore").write_text("ignored/\n")
    (folder / "ignored").mkdir()
    (folder / "ignored" / "kept.txt").write_text("part of the task all the same\n")
    (folder / "link").symlink_to("calc.py")
    return folder


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    return tmp_path / "attempt" / "work"


@pytest.fixture
def base(source: Path, work_dir: Path) -> str:
    found = lay(source, work_dir)
    assert found is not None
    return found


def git(work_dir: Path, *words: str) -> str:
    """Use git as the agent does: with an empty home and no settings but the repository's own."""
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(["git", *words], cwd=work_dir, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_lays_every_file_in_one_commit(source: Path, work_dir: Path, base: str) -> None:
    assert (work_dir / "calc.py").read_bytes() == (source / "calc.py").read_bytes()
    assert (work_dir / "data.bin").read_bytes() == bytes(range(256))
    assert os.access(work_dir / "pkg" / "run.sh", os.X_OK)
    assert (work_dir / "link").readlink() == Path("calc.py")
    assert git(work_dir, "rev-parse", "HEAD") == base
    assert git(work_dir, "rev-list", "--count", "HEAD") == "1"
    assert git(work_dir, "status", "--porcelain") == ""
    assert "ignored/kept.txt" in git(work_dir, "ls-files").splitlines()


def test_nothing_goes_on_behind_a_commit_of_ours(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    run_git(["init", "--quiet"], cwd=tmp_path)
    run_git(["commit", "--quiet", "--allow-empty", "-m", "x"], cwd=tmp_path, env={"GIT_TRACE": str(trace)})
    assert "commit" in trace.read_text()
    assert "maintenance" not in trace.read_text()


def test_a_commit_of_the_agents_is_seen_in_a_folder_with_a_colon(source: Path, tmp_path: Path) -> None:
    work_dir = tmp_path / "12:30" / "work"
    base = lay(source, work_dir)
    assert base is not None
    (work_dir / "calc.py").write_text("new\n")
    git(work_dir, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-qam", "mine")
    assert "+new" in note(work_dir, base).committed_diff


def test_equal_files_give_an_equal_commit_whoever_runs_it(
    source: Path, base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (hooks / "pre-commit").chmod(0o755)
    settings = tmp_path / "gitconfig"
    settings.write_text(
        f"[user]\nname = someone\nemail = a@b\n[core]\nhooksPath = {hooks}\nautocrlf = true\n"
        "[commit]\ngpgsign = true\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert lay(source, tmp_path / "again" / "work") == base


def test_no_work_tree_is_an_empty_folder(work_dir: Path) -> None:
    assert lay(None, work_dir) is None
    assert list(work_dir.iterdir()) == []


def test_nothing_changed_is_an_empty_diff(work_dir: Path, base: str) -> None:
    notes = note(work_dir, base)
    assert (notes.diff, notes.head, notes.committed_diff) == ("", base, "")


def test_the_diff_holds_changes_new_files_and_deletions(work_dir: Path, base: str) -> None:
    (work_dir / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (work_dir / "new.txt").write_text("new\n")
    (work_dir / "pkg" / "run.sh").unlink()
    (work_dir / "data.bin").write_bytes(b"\0\1")
    diff = note(work_dir, base).diff
    assert "-    return a - b\n+    return a + b\n" in diff
    assert "+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n" in diff
    assert "--- a/pkg/run.sh\n+++ /dev/null\n" in diff
    assert "Binary files a/data.bin and b/data.bin differ" in diff


def test_what_the_agents_own_tests_leave_behind_is_no_work(work_dir: Path, base: str) -> None:
    (work_dir / "__pycache__").mkdir()
    (work_dir / "__pycache__" / "calc.pyc").write_bytes(b"\0")
    assert note(work_dir, base).diff == ""
    assert git(work_dir, "status", "--porcelain") == ""


def test_a_note_does_not_disturb_the_agents_index(work_dir: Path, base: str) -> None:
    (work_dir / "new.txt").write_text("new\n")
    (work_dir / "staged.txt").write_text("staged\n")
    git(work_dir, "add", "staged.txt")
    before = (work_dir / ".git" / "index").read_bytes()
    assert "new.txt" in note(work_dir, base).diff
    assert (work_dir / ".git" / "index").read_bytes() == before
    assert git(work_dir, "status", "--porcelain").splitlines() == ["A  staged.txt", "?? new.txt"]


def test_commits_of_the_agent_are_noted_apart(work_dir: Path, base: str) -> None:
    (work_dir / "calc.py").write_text("committed\n")
    git(work_dir, "commit", "-qam", "half done")
    (work_dir / "new.txt").write_text("not committed\n")
    notes = note(work_dir, base)
    assert notes.head == git(work_dir, "rev-parse", "HEAD") != base
    assert "+committed" in notes.diff
    assert "+not committed" in notes.diff
    assert "+committed" in notes.committed_diff
    assert "new.txt" not in notes.committed_diff


def test_nothing_that_the_agent_set_up_is_run(work_dir: Path, base: str, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path / 'sprung'}\ncat\n")
    trap.chmod(0o755)
    for hook in ("pre-commit", "post-index-change", "post-checkout"):
        (work_dir / ".git" / "hooks").mkdir(exist_ok=True)
        (work_dir / ".git" / "hooks" / hook).symlink_to(trap)
    for key in ("filter.trap.clean", "diff.trap.textconv", "diff.external", "core.fsmonitor", "core.pager"):
        git(work_dir, "config", key, str(trap))
    (work_dir / ".gitattributes").write_text("* filter=trap diff=trap\n")
    (work_dir / "calc.py").write_text("changed\n")
    notes = note(work_dir, base)
    assert "+changed" in notes.diff
    assert notes.head == base
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("how", ["delete", "replace by a file", "garble"])
def test_a_broken_repository_still_shows_the_work(work_dir: Path, base: str, how: str) -> None:
    (work_dir / "calc.py").write_text("changed\n")
    if how == "garble":
        (work_dir / ".git" / "HEAD").write_text("garbage")
    else:
        shutil.rmtree(work_dir / ".git")
    if how == "replace by a file":
        (work_dir / ".git").write_text("gitdir: /nowhere\n")
    notes = note(work_dir, base)
    assert "+changed" in notes.diff
    assert (notes.head, notes.committed_diff) == ("", "")


def test_a_deleted_work_tree_shows_every_file_as_deleted(work_dir: Path, base: str) -> None:
    shutil.rmtree(work_dir)
    diff = note(work_dir, base).diff
    assert "deleted file mode" in diff
    assert "--- a/calc.py" in diff


def test_a_repository_inside_hides_nothing_else(work_dir: Path, base: str) -> None:
    git(work_dir, "init", "-q", "inside")
    (work_dir / "inside" / "file").write_text("x\n")
    (work_dir / "zzz.txt").write_text("seen\n")
    assert "+seen" in note(work_dir, base).diff


def test_a_huge_diff_is_cut_and_says_so(work_dir: Path, base: str) -> None:
    (work_dir / "big.txt").write_text("a line of text\n" * 200_000)
    diff = note(work_dir, base).diff
    assert diff.endswith(CUT_MARK)
    assert len(diff.encode()) == DIFF_LIMIT_BYTES + len(CUT_MARK)


def test_a_diff_that_does_not_end_is_ended(
    work_dir: Path, base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = tmp_path / "bin" / "git"
    stuck.parent.mkdir()
    stuck.write_text("#!/bin/sh\nexec sleep 600\n")
    stuck.chmod(0o755)
    monkeypatch.setenv("PATH", str(stuck.parent), prepend=os.pathsep)
    monkeypatch.setattr(work_tree, "GIT_SECONDS", 0.1)
    with pytest.raises(MachineryError, match="git diff ended with -9"):
        work_tree._diff(["--cached", base], work_dir, {})


def test_text_that_is_no_utf8_is_still_noted(work_dir: Path, base: str) -> None:
    (work_dir / "latin.txt").write_bytes("größe\n".encode("latin-1"))
    assert "+gr\ufffd" in note(work_dir, base).diff


@pytest.mark.parametrize("points_to", ["/etc/passwd", "../../outside", "pkg/../../outside"])
def test_a_link_that_points_out_is_refused(source: Path, work_dir: Path, points_to: str) -> None:
    (source / "out").symlink_to(points_to)
    with pytest.raises(UsageRefused) as caught:
        lay(source, work_dir)
    assert str(source / "out") in caught.value.text
    assert points_to in caught.value.text


def test_a_repository_in_the_source_is_refused(source: Path, work_dir: Path) -> None:
    (source / "pkg" / ".git").mkdir()
    with pytest.raises(UsageRefused, match="git repository"):
        lay(source, work_dir)


def test_what_is_no_file_is_refused(source: Path, work_dir: Path) -> None:
    os.mkfifo(source / "pipe")
    with pytest.raises(UsageRefused, match="pipe is neither"):
        lay(source, work_dir)


def test_a_source_that_is_not_there_is_refused(tmp_path: Path, work_dir: Path) -> None:
    with pytest.raises(UsageRefused, match="is no folder"):
        lay(tmp_path / "none", work_dir)


def test_without_git_the_machinery_is_broken(
    source: Path, work_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineryError) as caught:
        lay(source, work_dir)
    assert caught.value.slug == "git-missing"


def test_without_our_own_repository_nothing_is_claimed(work_dir: Path, base: str) -> None:
    shutil.rmtree(work_dir.parent / "work.git")
    with pytest.raises(MachineryError, match="is gone"):
        note(work_dir, base)
