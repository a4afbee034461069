"""Files as git has them at an older revision: listed and read, never checked out.

Knows git's command line and folders; knows no case. Runs nothing that the repository sets up, writes nothing.
"""

import hashlib
import os
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from pytest_regcase.errors import UsageRefused
from pytest_regcase.toml_lines import shown

_GIT_SECONDS: Final = 60
_LISTING_LIMIT_BYTES: Final = 64 * 1024 * 1024
_SHA1_HEX: Final = 40
_LONGEST_HEX: Final = 64
DIRTY: Final = "-dirty"
_PLAIN_FILES: Final = ("100644", "100755")


class StoredFile(NamedTuple):
    """A file of a revision: the object that holds it, and its size."""

    object_id: str
    size_bytes: int

    def holds(self, content: bytes) -> bool:
        """Say whether this is the object that git would store `content` as (gitformat-pack, "object name")."""
        if self.size_bytes != len(content):
            return False
        name = "sha1" if len(self.object_id) == _SHA1_HEX else "sha256"
        made = hashlib.new(name, b"blob %d\0" % len(content), usedforsecurity=False)
        made.update(content)
        return made.hexdigest() == self.object_id


@dataclass(frozen=True)
class Revision:
    """A commit of the repository in `top`, whose files can be asked for."""

    top: Path
    name: str
    """As it was asked for."""
    commit: str
    """The commit that is read: where the present one left `name`, or `name` itself."""
    is_merge_base: bool
    """Whether it is another commit than the one that `name` is."""

    @property
    def described(self) -> str:
        """What is read, for a person."""
        where = f", where HEAD left {self.name}" if self.is_merge_base else ""
        return f"{self.name} ({self.commit[:10]}{where})"

    def inside(self, path: Path) -> str | None:
        """Return the repository's name of `path`; None where it lies outside."""
        try:
            return path.resolve().relative_to(self.top.resolve()).as_posix()
        except ValueError:
            return None

    def files(self, names: Collection[str]) -> dict[str, StoredFile]:
        """Return the plain files of that name or below a folder of that name; links and submodules are none.

        Raises:
            UsageRefused: git cannot list them.
        """
        if not names:
            return {}
        # A name that is no pathspec: git takes it as it is.
        wanted = [] if "." in names else ["--", *sorted(names)]
        listed = _ask(self.top, "ls-tree", "-r", "-l", "-z", "--full-tree", self.commit, *wanted)
        if len(listed) > _LISTING_LIMIT_BYTES:
            raise UsageRefused(
                f"Couldn't list the files at {self.name}: there are too many.\n"
                "Name smaller folders in [tool.regcase] cases and fixtures."
            )
        found: dict[str, StoredFile] = {}
        for entry in listed.split(b"\0"):
            head, tab, name = entry.partition(b"\t")
            if tab:
                mode, _, object_id, size = head.decode().split()
                if mode in _PLAIN_FILES:
                    found[os.fsdecode(name)] = StoredFile(object_id, int(size))
        return found

    def read(self, files: Mapping[str, StoredFile], *, limit_bytes: int) -> dict[str, bytes]:
        """Return the contents of `files`, read by one process; those above `limit_bytes` are left out.

        Raises:
            UsageRefused: git cannot read them.
        """
        wanted = [name for name, file in files.items() if file.size_bytes <= limit_bytes]
        if not wanted:
            return {}
        asked = "".join(f"{files[name].object_id}\n" for name in wanted)
        answer = _ask(self.top, "cat-file", "--batch", given=asked.encode())
        contents: dict[str, bytes] = {}
        at = 0
        for name in wanted:
            end = answer.index(b"\n", at)
            if answer[at:end].endswith(b" missing"):  # a clone that holds only some of the objects
                at = end + 1
                continue
            size = files[name].size_bytes
            contents[name] = answer[end + 1 : end + 1 + size]
            at = end + 1 + size + 1
        return contents


def open_revision(root: Path, name: str) -> Revision:
    """Return the revision `name` of the repository around `root`, at the commit where the present one left it.

    Comparing with that commit, as ``git diff name...`` does, keeps what others added to a branch meanwhile from
    reading as removed here. Where the two have no common commit (a shallow clone), `name` itself is read.

    Raises:
        UsageRefused: git is missing, `root` is in no repository, or it knows no such revision; where the clone is
            shallow, that is said.
    """
    top, commit = _place_and_commit(root, name)
    if commit is None:
        if _try(top, "rev-parse", "--is-shallow-repository") == b"true\n":
            raise UsageRefused(
                f"Couldn't compare with {name}: this clone is shallow and does not hold it.\n"
                "Fetch the whole history first (in GitHub Actions: actions/checkout with fetch-depth: 0).",
                slug="shallow-clone",
            )
        raise UsageRefused(
            f"Couldn't compare with {name!r}: git knows no such revision here.\n"
            "Name a branch, a tag or a commit, such as origin/main; `git fetch` brings what is new.",
            slug="unknown-revision",
        )
    base = (_try(top, "merge-base", commit, "HEAD") or b"").decode().strip()
    return Revision(top, name, base or commit, is_merge_base=base not in ("", commit))


def commit_named(root: Path, name: str) -> Revision | None:
    """Return the very commit that `name` means; None without git, a repository, or such a commit in it."""
    try:
        top, commit = _place_and_commit(root, name)
    except UsageRefused:
        return None
    return None if commit is None else Revision(top, name, commit, is_merge_base=False)


def last_commit(root: Path) -> Revision | None:
    """Return the commit that the work tree was taken from; None without git, a repository or a commit."""
    return commit_named(root, "HEAD")


def work_tree_commit(root: Path) -> str | None:
    """Return the commit that the work tree was taken from; None without git, a repository or a commit.

    Where tracked files differ from it, it has `DIRTY` behind it, as ``git describe --dirty`` writes it.
    """
    found = _try(root, "describe", "--always", "--exclude=*", f"--dirty={DIRTY}", f"--abbrev={_LONGEST_HEX}")
    return None if found is None else found.decode().strip()


def _place_and_commit(root: Path, name: str) -> tuple[Path, str | None]:
    """Return the top of the repository, and the one commit that `name` means; None where it means none."""
    if name.strip() and not name.startswith("-"):
        found = _try(root, "rev-parse", "--show-toplevel", f"{name}^{{commit}}")
        if found is not None and found.count(b"\n") == 2:
            top, commit = found.splitlines()
            return Path(os.fsdecode(top)), commit.decode()
    return Path(os.fsdecode(_ask(root, "rev-parse", "--show-toplevel").rstrip(b"\n"))), None


def _try(folder: Path, *words: str) -> bytes | None:
    try:
        done = _run(folder, words)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _ask(folder: Path, *words: str, given: bytes = b"") -> bytes:
    try:
        done = _run(folder, words, given)
    except FileNotFoundError as error:
        raise UsageRefused(
            f"Couldn't ask git about {shown(folder)}: there is no `git` on the path.\nInstall git.", slug="no-git"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise UsageRefused(
            f"Couldn't ask git about {shown(folder)}: git {words[0]} took longer than {_GIT_SECONDS} s.\n"
            "Try again."
        ) from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UsageRefused(
            f"Couldn't ask git about {shown(folder)}: it said {(said[0] if said else 'nothing')!r}.\n"
            "--against needs a git repository with the revision in it.",
            slug="no-git",
        )
    return done.stdout


def _run(folder: Path, words: tuple[str, ...], given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["git", "-C", str(folder), *words],
        input=given,
        capture_output=True,
        timeout=_GIT_SECONDS,
        check=False,
        env=_environment(),
    )


def _environment() -> dict[str, str]:
    """Return git's environment: as it is, but for what a hook is given, which would make any folder the top."""
    found = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    if "GIT_WORK_TREE" not in found:
        found.pop("GIT_DIR", None)
    return found
