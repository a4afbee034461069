"""The owner of a case: as given, by the last CODEOWNERS rule that covers it, else the git user; else refused."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.session.project.owners import matches, owner_of

NAME = "cases/trial-37/case.toml"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose git knows no user but its own."""
    empty = tmp_path / "empty"
    empty.write_text("")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(empty))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(empty))
    root = tmp_path / "repo"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


@pytest.mark.parametrize(
    ("pattern", "covers"),
    [
        ("*", True), ("cases/", True), ("/cases/", True), ("/cases", True), ("cases/*", False),
        ("/cases/**", True), ("cases/trial-37/", True), ("cases/trial-*/*.toml", True), ("*.toml", True),
        ("case.toml", True), ("**/case.toml", True), ("trial-37", True), ("docs/", False),
        ("/trial-37/", False), ("case", False), ("cases/*/case.tom?", True), ("/case.toml", False),
        ("cases/trial-3/", False), ("/", True),
    ],
)  # fmt: skip
def test_patterns_as_the_platforms_read_them(pattern: str, covers: bool) -> None:
    assert matches(pattern, NAME) is covers


def test_the_last_rule_that_covers_the_case_counts(repo: Path) -> None:
    (repo / "CODEOWNERS").write_text("# all\n* @everyone\n\n/cases/ @eval/oncall @ada # both\n/docs/ @writers\n")
    owner = owner_of(repo / NAME, repo)
    assert (owner.name, owner.found_in) == ("@eval/oncall @ada", "CODEOWNERS:4")


def test_the_first_place_counts(repo: Path) -> None:
    (repo / ".github").mkdir()
    (repo / ".github" / "CODEOWNERS").write_text("* @github\n")
    (repo / "CODEOWNERS").write_text("* @root\n")
    assert owner_of(repo / NAME, repo).name == "@github"


def test_sections_are_passed_over(repo: Path) -> None:
    (repo / "CODEOWNERS").write_text("[Evals]\n^[Optional] @x\ncases/ @evals\n")
    assert owner_of(repo / NAME, repo).name == "@evals"


def test_a_project_below_the_repository_is_matched_from_its_top(repo: Path) -> None:
    (repo / "CODEOWNERS").write_text("/evals/cases/ @evals\n/cases/ @wrong\n")
    assert owner_of(repo / "evals" / NAME, repo).name == "@evals"


def test_a_rule_without_owners_takes_the_owner_away(repo: Path) -> None:
    (repo / "CODEOWNERS").write_text("* @everyone\n/cases/\n")
    subprocess.run(["git", "-C", str(repo), "config", "user.name", "Ada"], check=True)
    owner = owner_of(repo / NAME, repo)
    assert (owner.name, owner.found_in) == ("Ada", "git config user.name")


def test_what_is_given_wins(repo: Path) -> None:
    (repo / "CODEOWNERS").write_text("* @everyone\n")
    assert owner_of(repo / NAME, repo, " me ").name == "me"


def test_nobody_is_an_error_that_says_what_to_do(repo: Path) -> None:
    with pytest.raises(UsageRefused, match="--owner WHO"):
        owner_of(repo / NAME, repo)


def test_a_case_outside_the_repository_has_no_rule(repo: Path, tmp_path: Path) -> None:
    (repo / "CODEOWNERS").write_text("* @everyone\n")
    with pytest.raises(UsageRefused):
        owner_of(tmp_path / "elsewhere" / "case.toml", repo)


def test_a_codeowners_that_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "CODEOWNERS").write_text("* @team\n")
    real = Path.open

    def forbidden(path: Path, *args: Any, **more: Any) -> Any:
        if path.name == "CODEOWNERS":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **more)

    monkeypatch.setattr(Path, "open", forbidden)
    with pytest.raises(UsageRefused, match=r"CODEOWNERS: permission denied\.\nSay it with --owner WHO\."):
        owner_of(tmp_path / "cases" / "one" / "case.toml", tmp_path)
    assert owner_of(tmp_path / "cases" / "one" / "case.toml", tmp_path, "me").name == "me"
