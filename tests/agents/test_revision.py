import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.agents.revision import RevisionDigest, agent_digest, agent_digest_at
from pytest_regcase.config import AgentConfig
from pytest_regcase.errors import MachineryError, UsageRefused

Digest = Callable[..., RevisionDigest]


def git(root: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=root, check=True, capture_output=True
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name in (
        "src/my_agent/loop.py",
        "src/my_agent/__pycache__/loop.pyc",
        "prompts/system.txt",
        "cases/a/case.toml",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name}\n")
    return folder


@pytest.fixture
def repository(root: Path) -> Path:
    git(root, "init", "-q")
    git(root, "add", "src/my_agent/loop.py", "prompts", "cases")
    git(root, "commit", "-qm", "start")
    return root


def digest(root: Path, exclude: tuple[str, ...] = ("cases", "fixtures"), **config: Any) -> RevisionDigest:
    return agent_digest(
        root, "default", AgentConfig(**{"command": ("python", "-m", "my_agent"), **config}), exclude
    )


PATHS = {"revision_paths": ("src/my_agent", "prompts/system.txt")}


def test_named_paths_need_no_git_and_give_no_notice(root: Path) -> None:
    found = digest(root, **PATHS)
    assert found.digest.startswith("sha256:")
    assert found.notice is None
    assert digest(root, **PATHS) == found


@pytest.mark.parametrize("name", ["src/my_agent/loop.py", "prompts/system.txt", "src/my_agent/new.py"])
def test_a_change_below_a_named_path_changes_it(root: Path, name: str) -> None:
    before = digest(root, **PATHS)
    (root / name).write_text("changed\n")
    assert digest(root, **PATHS) != before


@pytest.mark.parametrize(
    "name", ["README.md", "cases/a/case.toml", "src/my_agent/__pycache__/loop.pyc", "src/my_agent/x.pyc"]
)
def test_a_change_elsewhere_does_not(root: Path, name: str) -> None:
    before = digest(root, **PATHS)
    (root / name).write_text("changed\n")
    assert digest(root, **PATHS) == before


def test_a_renamed_file_changes_it(root: Path) -> None:
    before = digest(root, **PATHS)
    (root / "src/my_agent/loop.py").rename(root / "src/my_agent/other.py")
    assert digest(root, **PATHS) != before


def test_a_named_path_that_is_not_there_is_refused(root: Path) -> None:
    with pytest.raises(UsageRefused) as caught:
        digest(root, revision_paths=("src/my_agent", "prompt"))
    assert "revision_paths names prompt" in caught.value.text


def test_the_entry_is_part_of_the_agent_but_its_price_is_not(root: Path) -> None:
    before = digest(root, **PATHS)
    assert digest(root, **PATHS, model="other") != before
    assert digest(root, **PATHS, env={"A": "b"}) != before
    assert digest(root, **PATHS, cost_per_attempt=0.5) == before
    assert agent_digest(root, "other", AgentConfig(command=("python", "-m", "my_agent"), **PATHS)) != before  # type: ignore[arg-type]


def test_by_default_it_is_the_git_tree_and_says_so(repository: Path) -> None:
    found = digest(repository)
    assert found.notice is not None
    assert "whole git tree" in found.notice
    assert "untracked files are not in it" in found.notice
    assert "set revision_paths" in found.notice
    assert digest(repository) == found


def test_committing_a_change_does_not_change_it_again(repository: Path) -> None:
    start = digest(repository)
    (repository / "src/my_agent/loop.py").write_text("changed\n")
    (repository / "prompts/system.txt").unlink()
    changed = digest(repository)
    assert changed != start
    git(repository, "add", "-A", "src/my_agent/loop.py", "prompts")
    assert digest(repository) == changed
    git(repository, "commit", "-qm", "change")
    assert digest(repository) == changed
    git(repository, "revert", "--no-edit", "HEAD")
    assert digest(repository) == start


def test_a_new_mode_and_a_link_count_as_git_counts_them(repository: Path) -> None:
    start = digest(repository)
    (repository / "src/my_agent/loop.py").chmod(0o755)
    executable = digest(repository)
    assert executable != start
    (repository / "prompts/system.txt").unlink()
    (repository / "prompts/system.txt").symlink_to("nowhere")
    linked = digest(repository)
    assert linked != executable
    git(repository, "add", "-u")
    assert digest(repository) == linked


def test_line_ends_count_as_git_stores_them(repository: Path) -> None:
    git(repository, "config", "core.autocrlf", "true")
    (repository / "src/my_agent/loop.py").write_bytes(b"one\r\ntwo\r\n")
    changed = digest(repository)
    git(repository, "add", "src/my_agent/loop.py")
    assert digest(repository) == changed


@pytest.mark.parametrize(
    "name", ["cases/a/case.toml", "fixtures/x.toml", ".regcase/ledger.sqlite3", "untracked.py"]
)
def test_cases_simulations_and_untracked_files_are_not_in_it(repository: Path, name: str) -> None:
    start = digest(repository)
    (repository / name).parent.mkdir(exist_ok=True)
    (repository / name).write_text("changed\n")
    assert digest(repository) == start
    if name != "untracked.py":
        git(repository, "add", name)
        assert digest(repository) == start


def test_a_folder_inside_a_repository_has_its_own_files_only(repository: Path) -> None:
    inside = repository / "src"
    start = digest(inside)
    (repository / "prompts/system.txt").write_text("changed\n")
    assert digest(inside) == start
    (repository / "src/my_agent/loop.py").write_text("changed\n")
    assert digest(inside) != start


def test_the_index_of_a_running_commit_hook_is_not_taken(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = digest(repository)
    monkeypatch.setenv("GIT_INDEX_FILE", str(repository / "no-such-index"))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert digest(repository) == start


def test_reading_it_writes_nothing(repository: Path) -> None:
    (repository / "src/my_agent/loop.py").write_text("changed\n")
    objects = sorted((repository / ".git").rglob("*"))
    index = (repository / ".git" / "index").read_bytes()
    digest(repository)
    assert sorted((repository / ".git").rglob("*")) == objects
    assert (repository / ".git" / "index").read_bytes() == index


def test_without_a_repository_it_is_the_entry_alone_and_says_so(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(root.parent))
    found = digest(root)
    assert found.notice is not None
    assert "its configuration alone" in found.notice
    (root / "src/my_agent/loop.py").write_text("changed\n")
    assert digest(root) == found
    assert digest(root, model="other") != found


def test_without_git_it_is_the_entry_alone(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    notice = digest(repository).notice
    assert notice is not None
    assert "its configuration alone" in notice


def test_a_git_that_fails_is_said(repository: Path) -> None:
    (repository / ".git" / "index").write_bytes(b"garbage" * 10)
    with pytest.raises(MachineryError, match="ls-files"):
        digest(repository)


def test_an_unresolved_merge_has_a_digest(repository: Path) -> None:
    git(repository, "checkout", "-qb", "other")
    (repository / "prompts/system.txt").write_text("theirs\n")
    git(repository, "commit", "-qam", "theirs")
    git(repository, "checkout", "-q", "-")
    (repository / "prompts/system.txt").write_text("ours\n")
    git(repository, "commit", "-qam", "ours")
    start = digest(repository)
    subprocess.run(["git", "merge", "-q", "other"], cwd=repository, capture_output=True, check=False)
    assert digest(repository) != start


@pytest.mark.parametrize("config", [PATHS, {"revision_paths": (".",)}, {}])
def test_a_commit_has_the_digest_that_its_clean_checkout_has(repository: Path, config: dict[str, Any]) -> None:
    (repository / "src/my_agent/__pycache__/loop.pyc").unlink()
    before = digest(repository, **config).digest
    (repository / "src/my_agent/loop.py").write_text("changed\n")
    git(repository, "commit", "-qam", "changed")
    now = digest(repository, **config).digest
    given = AgentConfig(**{"command": ("python", "-m", "my_agent"), **config})
    folders = ("cases", "fixtures")
    assert agent_digest_at(repository, "default", given, "HEAD~1", folders) == before
    assert agent_digest_at(repository, "default", given, "HEAD", folders) == now
    assert before != now


def test_ignored_names_are_in_no_commits_digest_either(repository: Path) -> None:
    (repository / "src/my_agent/extra.pyc").write_bytes(b"\xff\x00")
    (repository / "src/my_agent/logo.png").write_bytes(b"\x89PNG\xff\xfe\n")
    git(repository, "add", "-f", ".")
    git(repository, "commit", "-qm", "more")
    given = AgentConfig(command=("python", "-m", "my_agent"), revision_paths=PATHS["revision_paths"])
    assert agent_digest_at(repository, "default", given, "HEAD") == digest(repository, **PATHS).digest


@pytest.mark.parametrize("paths", [("nowhere.py",), ("../elsewhere",), ("/etc",)])
def test_what_a_commit_does_not_hold_has_no_digest(repository: Path, paths: tuple[str, ...]) -> None:
    given = AgentConfig(command=("python", "-m", "my_agent"), revision_paths=paths)
    assert agent_digest_at(repository, "default", given, "HEAD") is None


def test_without_a_repository_there_is_no_commit(root: Path) -> None:
    given = AgentConfig(command=("python", "-m", "my_agent"))
    assert agent_digest_at(root, "default", given, "HEAD") is None
