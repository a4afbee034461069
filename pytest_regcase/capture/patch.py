"""The agent's patch: what its work tree holds beyond the task's base commit, new files included.

Knows git's command line through `agents.git_commands`. Reads the work tree through a repository of our own, made
for the moment: the agent's index, settings, filters and hooks play no part, and nothing of it changes.
"""

import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pytest_regcase.agents.git_commands import GIT_SECONDS, NOT_WORK, git_command, git_environment, quoted, run_git
from pytest_regcase.capture.plain_data import TEXT_LIMIT
from pytest_regcase.errors import RegcaseError

PATCH_LIMIT_BYTES: Final = TEXT_LIMIT
"""A patch is whole or it is none: half of one would be handed in as a solution."""
_ANY_OWNER: Final = {
    # A container often writes as another user; what runs below reads objects, and no setting of the repository.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}


class PatchNotCaptured(RegcaseError):
    """The agent's work cannot be read from its work tree."""

    slug = "patch-not-captured"


@dataclass(frozen=True)
class WorkTree:
    """A git work tree, as it stood when the environment had started."""

    folder: Path
    objects: Path
    """Where its commits lie; the agent may break its own repository, seldom this."""
    start_commit: str
    wrong_base: str | None = None
    """Why no patch against the task's base commit can be made of it; None: one can."""


def note_work_tree(folder: Path, base_commit: str | None = None) -> WorkTree:
    """Return where a git work tree stands before the agent starts, and whether that is the task's base commit.

    Raises:
        PatchNotCaptured: it is no git work tree of its own, or has no commit.
    """
    folder = folder.resolve()
    if not folder.is_dir():
        raise PatchNotCaptured(f"Couldn't note the work tree {folder}: there is no such folder.\nCheck work_dir.")
    # A plain folder inside somebody's repository must not be taken for that repository.
    env = {**_ANY_OWNER, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    try:
        found = run_git(["rev-parse", "--path-format=absolute", "--git-path", "objects"], cwd=folder, env=env)
        start = run_git(["rev-parse", "--verify", "HEAD^{commit}"], cwd=folder, env=env).strip()
    except RegcaseError as error:
        raise PatchNotCaptured(
            f"Couldn't note the work tree {folder}: it is no git work tree with a commit.\n{error.text}"
        ) from error
    tree = WorkTree(folder, Path(found.strip()), start)
    if base_commit is None:
        return tree
    words = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{base_commit}^{{commit}}"]
    base = run_git(words, cwd=folder, env=env, may_fail=True).strip()
    if base == start:
        return tree
    why = f"the task's base commit is {base_commit}, and the work tree started at {start}"
    return replace(tree, wrong_base=why if base else f"{why}; its repository has no commit {base_commit}")


def read_patch(tree: WorkTree) -> str:
    """Return what differs from the base commit now, as a patch that ``git apply`` takes; "" where nothing does.

    Files that the tree's own ``.gitignore`` names, and what running Python leaves behind, are left out.

    Raises:
        PatchNotCaptured: the work tree did not start at the task's base commit, is gone, or git cannot read it;
            the patch is larger than `PATCH_LIMIT_BYTES`.
    """
    if tree.wrong_base is not None:
        raise PatchNotCaptured(
            f"Couldn't capture the patch of {tree.folder}: {tree.wrong_base}.\n"
            "Start the environment at the base commit."
        )
    return difference(tree)


def difference(tree: WorkTree) -> str:
    """Return what differs from the commit at the start, whichever that was; raises as `read_patch`."""
    if not tree.folder.is_dir():
        raise PatchNotCaptured(
            f"Couldn't capture the patch of {tree.folder}: the folder is gone.\nLook at what the agent ran."
        )
    with tempfile.TemporaryDirectory(prefix="regcase-patch-") as made:
        repository = Path(made) / "git"
        env = {
            "GIT_DIR": str(repository),
            "GIT_WORK_TREE": str(tree.folder),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(tree.objects),
        }
        try:
            run_git(["init", "--quiet", "--bare", "--template=", str(repository)], cwd=tree.folder)
            (repository / "info").mkdir()
            (repository / "info" / "exclude").write_text(NOT_WORK, encoding="utf-8")
            run_git(["read-tree", tree.start_commit], cwd=tree.folder, env=env)
            run_git(["add", "--all", "."], cwd=tree.folder, env=env)
        except RegcaseError as error:
            raise PatchNotCaptured(
                f"Couldn't capture the patch of {tree.folder}: git cannot read it.\n{error.text}"
            ) from error
        patch = _diff(tree, env, Path(made) / "patch")
        try:
            return patch.decode("utf-8")
        except UnicodeDecodeError:
            # Text in another encoding: as binary it stays what it is, byte by byte.
            (repository / "info" / "attributes").write_text("* -diff\n", encoding="utf-8")
            return _diff(tree, env, Path(made) / "patch").decode("ascii", errors="strict")


def _diff(tree: WorkTree, env: dict[str, str], target: Path) -> bytes:
    words = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--binary", "--cached"]
    words.append(tree.start_commit)
    with target.open("wb") as file:
        try:
            done = subprocess.run(
                git_command(words),
                cwd=tree.folder,
                env=git_environment(env),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.PIPE,
                timeout=GIT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise PatchNotCaptured(
                f"Couldn't capture the patch of {tree.folder}: git diff took longer than {GIT_SECONDS:g} s.\n"
                "Keep large files out of the work tree."
            ) from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", errors="replace").strip()
        raise PatchNotCaptured(
            f"Couldn't capture the patch of {tree.folder}: git diff said {said!r}.\nCheck the files below it."
        )
    size = target.stat().st_size
    if size > PATCH_LIMIT_BYTES:
        raise PatchNotCaptured(
            f"Couldn't capture the patch of {tree.folder}: it has {size} bytes, and we take"
            f" {PATCH_LIMIT_BYTES // 1024**2} MiB.\nKeep what is no work out of the work tree, or ignore it."
        )
    return target.read_bytes()
