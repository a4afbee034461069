"""The agent's work tree: laid out before an attempt, noted at the fault and at the end.

Knows git's command line. The agent owns the repository that it works in and may change, break or delete it; what
we note comes from a second repository of ours beside the work tree, with settings, hooks and index of our own. So
taking a note neither disturbs the agent nor runs anything that the agent set up.
"""

import os
import shutil
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_regcase.agents.git_commands import (
    EMAIL,
    GIT_SECONDS,
    IDENTITY,
    NOT_WORK,
    git_command,
    git_environment,
    quoted,
    run_git,
)
from pytest_regcase.errors import MachineryError, UsageRefused
from pytest_regcase.records.observed import WorkTreeNotes

DIFF_LIMIT_BYTES = 1024 * 1024
CUT_MARK = "\n[pytest-regcase cut this diff here, at 1 MiB]\n"
MAX_FILES = 20_000
MAX_BYTES = 200 * 1024 * 1024


def lay(source: Path | None, work_dir: Path) -> str | None:
    """Copy `source` to `work_dir` and make it a git repository with one commit; return that commit.

    None, and an empty `work_dir`, where there is no work tree. Links are copied as links and must stay inside.
    Raises UsageRefused for files that cannot be laid, MachineryError where git is missing or fails.
    """
    if source is None:
        work_dir.mkdir(parents=True, exist_ok=True)
        return None
    _copy(source, work_dir)
    run_git(["init", "--quiet", "--template=", "--initial-branch=main", str(work_dir)], cwd=work_dir)
    repository = work_dir / ".git"
    (repository / "info").mkdir(exist_ok=True)
    (repository / "info" / "exclude").write_text(NOT_WORK, encoding="utf-8")
    with (repository / "config").open("a", encoding="utf-8") as config:
        # The agent's HOME is a throw-away one: without an identity its own commits would fail.
        config.write(f"[user]\n\tname = {IDENTITY}\n\temail = {EMAIL}\n[core]\n\tautocrlf = false\n")
    run_git(["add", "--all", "--force", "."], cwd=work_dir)
    run_git(
        ["commit", "--quiet", "--allow-empty", "--no-verify", "-m", "The work tree at the start"], cwd=work_dir
    )
    ours = _ours(work_dir)
    shutil.copytree(repository, ours)
    return (repository / "refs" / "heads" / "main").read_text(encoding="ascii").strip()


def note(work_dir: Path, base: str) -> WorkTreeNotes:
    """Return what differs from the commit `base` now: files (new ones too), HEAD, and what commits hold.

    `head` is "" where the agent's repository can no longer be read. A diff beyond 1 MiB is cut and says so. Raises
    MachineryError only where our own repository is gone.
    """
    ours = _ours(work_dir)
    if not ours.is_dir():
        raise MachineryError(f"Couldn't note the work tree {work_dir}: {ours} is gone.\nRun the attempt again.")
    if not work_dir.is_dir():
        work_dir.mkdir(parents=True)  # the agent deleted it: the diff shows every file as deleted
    with tempfile.TemporaryDirectory(dir=work_dir.parent, prefix="note-") as folder:
        index = Path(folder) / "index"
        shutil.copyfile(ours / "index", index)
        env = {
            "GIT_DIR": str(ours),
            "GIT_WORK_TREE": str(work_dir),
            "GIT_INDEX_FILE": str(index),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(work_dir / ".git" / "objects"),
        }
        # A file that vanishes or cannot be read while we look must not hide the others.
        run_git(["add", "--all", "--ignore-errors", "."], cwd=work_dir, env=env, may_fail=True)
        diff = _diff(["--cached", base], work_dir, env)
        head = _head(work_dir)
        # The objects of its commits are the agent's; where they are broken, `head` alone tells of them.
        committed = _diff([base, head], work_dir, env, may_fail=True) if head not in ("", base) else ""
    return WorkTreeNotes(diff=diff, head=head, committed_diff=committed)


def _ours(work_dir: Path) -> Path:
    return work_dir.parent / f"{work_dir.name}.git"


def _copy(source: Path, work_dir: Path) -> None:
    root = source.resolve()
    if not root.is_dir():
        raise UsageRefused(f"Couldn't lay the work tree: {source} is no folder.\nName a folder of files.")
    work_dir.mkdir(parents=True, exist_ok=True)
    files = total_bytes = 0
    for entry in _entries(root):
        target = work_dir / entry.relative_to(root)
        mode = entry.lstat().st_mode
        if entry.name == ".git":
            raise UsageRefused(
                f"Couldn't lay the work tree: {entry} is a git repository.\nRemove it; we make one of our own."
            )
        if stat.S_ISDIR(mode):
            target.mkdir(exist_ok=True)
            continue
        files += 1
        if stat.S_ISLNK(mode):
            _copy_link(entry, target, root)
        elif stat.S_ISREG(mode):
            total_bytes += entry.lstat().st_size
            shutil.copyfile(entry, target)
            target.chmod(0o755 if mode & stat.S_IXUSR else 0o644)
        else:
            raise UsageRefused(
                f"Couldn't lay the work tree: {entry} is neither a file, a folder nor a link.\nRemove it."
            )
        if files > MAX_FILES or total_bytes > MAX_BYTES:
            raise UsageRefused(
                f"Couldn't lay the work tree {source}: it holds more than {MAX_FILES} files or "
                f"{MAX_BYTES // (1024 * 1024)} MiB.\nKeep what the task needs."
            )


def _entries(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        yield entry
        if entry.is_dir() and not entry.is_symlink():
            yield from _entries(entry)


def _copy_link(entry: Path, target: Path, root: Path) -> None:
    points_to = os.readlink(entry)
    inside = not os.path.isabs(points_to) and (entry.parent / points_to).resolve().is_relative_to(root)
    if not inside:
        raise UsageRefused(
            f"Couldn't lay the work tree: the link {entry} points out of it, to {points_to}.\nPut a copy there."
        )
    target.symlink_to(points_to)


def _head(work_dir: Path) -> str:
    """Return the commit that HEAD of the agent's repository names, "" where that cannot be told."""
    found = run_git(
        ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"],
        cwd=work_dir,
        env={"GIT_DIR": str(work_dir / ".git")},
        may_fail=True,
    )
    return found.strip()


def _diff(what: list[str], work_dir: Path, env: Mapping[str, str], *, may_fail: bool = False) -> str:
    """Return the diff as text, cut at the limit; "" where it fails and may."""
    command = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", *what]
    with subprocess.Popen(
        git_command(command),
        cwd=work_dir,
        env=git_environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        too_long = threading.Timer(GIT_SECONDS, process.kill)
        too_long.start()
        try:
            found = process.stdout.read(DIFF_LIMIT_BYTES + 1)
        finally:
            too_long.cancel()
        is_cut = len(found) > DIFF_LIMIT_BYTES
        if is_cut:
            process.kill()
    if process.returncode != 0 and not is_cut:
        if may_fail:
            return ""
        raise MachineryError(
            f"Couldn't note the work tree {work_dir}: git diff ended with {process.returncode}.\n"
            "Run the attempt again."
        )
    text = found[:DIFF_LIMIT_BYTES].decode("utf-8", errors="replace")
    return text + CUT_MARK if is_cut else text
