"""A small git repository, and what tests of trials ask for again and again."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

GIT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@localhost",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@localhost",
}


def git(folder: Path, *words: str) -> str:
    """Run git as a person would, without settings of this machine."""
    done = subprocess.run(["git", *words], cwd=folder, env=GIT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """Return the records of a trial's folder, each of which must be whole."""
    return [json.loads(line) for line in (folder / "trial.jsonl").read_text(encoding="utf-8").splitlines()]


def kinds(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Return the records of one kind, without it."""
    return [{k: v for k, v in each.items() if k != "kind"} for each in lines_of(folder) if each["kind"] == kind]


def predictions_of(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of ``predictions.jsonl``."""
    return [json.loads(line) for line in (folder / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of two commits; read only."""
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one")
    (folder / "later.txt").write_text("of the second commit\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "two")
    return folder


@pytest.fixture(scope="session")
def base_commit(repository: Path) -> str:
    """The first of the two."""
    return git(repository, "rev-parse", "HEAD~1")


@pytest.fixture
def tree(tmp_path: Path, repository: Path, base_commit: str) -> Path:
    """A work tree of one's own at the first commit."""
    folder = tmp_path / "tree"
    git(repository, "clone", "--quiet", str(repository), str(folder))
    git(folder, "checkout", "--quiet", base_commit)
    return folder
