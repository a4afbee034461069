"""Where a task's agent works: a work tree of its own, made at the start and removed at the end.

Knows git and folders; knows no agent and no record. A container or a remote machine is one more class with `start`
and `stop`.
"""

import shutil
from pathlib import Path
from typing import Protocol

from pytest_regcase.agents.git_commands import EMAIL, IDENTITY, NOT_WORK, quoted, run_git
from pytest_regcase.errors import UsageRefused

WORK_DIR = "work"


class Environment(Protocol):
    """What `run_trial` starts before the agent and stops behind it."""

    name: str
    """For the record of the clean-up, such as "work tree"."""

    def start(self, folder: Path) -> Path:
        """Make the place for a trial whose folder is `folder`; return where its work tree is on this machine.

        Whatever it raises is the trial's error; `stop` is called even then.
        """
        ...

    def stop(self, *, keep_work: bool) -> str | None:
        """Put everything away; called once, also after a start that failed half-way.

        With `keep_work` nobody has read the agent's work: what holds it should stay, and "kept" be returned.
        """
        ...


class GitWorkTree:
    """A work tree of a local git repository, at one commit, in the trial's folder.

    It borrows the repository's objects and changes nothing in it: no branch, no entry for a work tree. Branches,
    tags and remotes of the repository are not in it, so that no agent comes upon later commits by accident.
    Submodules and what large-file filters would fetch are not checked out.
    """

    name = "work tree"

    def __init__(self, repository: Path, base_commit: str | None = None) -> None:
        self.repository = repository
        self.base_commit = base_commit
        """None: where the repository's HEAD is."""
        self._work_dir: Path | None = None

    def start(self, folder: Path) -> Path:
        """Lay the work tree.

        Raises:
            UsageRefused: there is no such repository, or it has no such commit.
            MachineryError: git is missing or fails.
        """
        work_dir = folder.absolute() / WORK_DIR
        objects, commit = self._found()
        _make(work_dir)
        self._work_dir = work_dir
        _init(work_dir)
        alternates = work_dir / ".git" / "objects" / "info" / "alternates"
        alternates.parent.mkdir(parents=True, exist_ok=True)
        alternates.write_text(f"{quoted(objects)}\n", encoding="utf-8")
        shallow = objects.parent / "shallow"
        if shallow.is_file():
            shutil.copyfile(shallow, work_dir / ".git" / "shallow")
        run_git(["reset", "--quiet", "--hard", commit], cwd=work_dir)
        return work_dir

    def stop(self, *, keep_work: bool) -> str | None:
        """Remove the work tree, unless its work is nowhere else."""
        return _remove(self._work_dir, keep_work=keep_work)

    def _found(self) -> tuple[Path, str]:
        if not self.repository.is_dir():
            raise UsageRefused(f"Couldn't lay the work tree: there is no folder {self.repository}.\nCheck `repo`.")
        asked = ["rev-parse", "--path-format=absolute", "--git-path", "objects"]
        objects = run_git(asked, cwd=self.repository).strip()
        wanted = self.base_commit if self.base_commit is not None else "HEAD"
        commit = commit_named(self.repository, wanted)
        if commit is None:
            raise UsageRefused(
                f"Couldn't lay the work tree: {self.repository} has no commit {wanted}.\n"
                "Fetch it, or check `base_commit`."
            )
        return Path(objects), commit


def commit_named(repository: Path, name: str) -> str | None:
    """Return the commit that `name` (a branch, a tag, the start of a hash) is in `repository`; None: none.

    Raises:
        MachineryError: git is missing.
    """
    words = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
    found = run_git(words, cwd=repository, may_fail=True) if repository.is_dir() else ""
    return found.strip() or None


class EmptyWorkTree:
    """An empty git repository in the trial's folder, for tasks that start from nothing."""

    name = "work tree"

    def __init__(self) -> None:
        self._work_dir: Path | None = None

    def start(self, folder: Path) -> Path:
        """Make it, with one commit that holds nothing. Raises MachineryError where git is missing or fails."""
        work_dir = folder.absolute() / WORK_DIR
        _make(work_dir)
        self._work_dir = work_dir
        _init(work_dir)
        run_git(["commit", "--quiet", "--allow-empty", "--no-verify", "-m", "Nothing yet"], cwd=work_dir)
        return work_dir

    def stop(self, *, keep_work: bool) -> str | None:
        """Remove it, unless its work is nowhere else."""
        return _remove(self._work_dir, keep_work=keep_work)


def _make(work_dir: Path) -> None:
    """Make the folder; one that is there belongs to another trial, and is not ours to fill or to remove."""
    try:
        work_dir.mkdir(parents=True)
    except FileExistsError as error:
        raise UsageRefused(
            f"Couldn't lay the work tree: {work_dir} is there already, perhaps of a trial that was killed.\n"
            "Move the trial's folder away."
        ) from error


def _init(work_dir: Path) -> None:
    run_git(["init", "--quiet", "--template=", "--initial-branch=main", str(work_dir)], cwd=work_dir)
    repository = work_dir / ".git"
    (repository / "info").mkdir(exist_ok=True)
    (repository / "info" / "exclude").write_text(NOT_WORK, encoding="utf-8")
    with (repository / "config").open("a", encoding="utf-8") as config:
        # Without an identity the commits of an agent whose HOME is a throw-away one would fail.
        config.write(f"[user]\n\tname = {IDENTITY}\n\temail = {EMAIL}\n[core]\n\tautocrlf = false\n")


def _remove(work_dir: Path | None, *, keep_work: bool) -> str | None:
    if work_dir is None or not work_dir.exists():
        return None
    if keep_work:
        return "kept"
    shutil.rmtree(work_dir)
    return None
