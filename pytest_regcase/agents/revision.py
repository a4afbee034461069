"""The agent's revision: one digest that changes when the agent does.

Knows files and git of the user's project. Runs no hook and writes nothing; the user's own git settings hold, since
it is the user's own repository.
"""

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pytest_regcase.config import AgentConfig
from pytest_regcase.errors import MachineryError, UsageRefused
from pytest_regcase.records.canonical import digest_of

WHOLE_TREE = (
    "the agent's revision is the whole git tree, so any commit starts the count of live runs anew; untracked "
    "files are not in it; set revision_paths for [tool.regcase.agents.{name}]"
)
ENTRY_ONLY = (
    "the agent's revision is its configuration alone, for there is no git repository here: a change of its code "
    "is not noticed; set revision_paths for [tool.regcase.agents.{name}]"
)
_IGNORED_NAMES = frozenset({"__pycache__", ".git", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
_PRICES = frozenset({"cost_per_attempt"})
"""Keys of an agent's entry that say nothing about what it does."""
_GIT_SECONDS = 120.0
_SUBMODULE = "160000"


class RevisionDigest(NamedTuple):
    """What attempts are counted for, and what a user should know about it."""

    digest: str
    notice: str | None


def agent_digest(
    project_root: Path, name: str, config: AgentConfig, exclude: Iterable[str] = ()
) -> RevisionDigest:
    """Return the digest of one agent: its entry in the configuration, and its files.

    With `revision_paths`: every file below them, by name and content. Else the files that git tracks, as they are
    in the work tree, without those below the folders `exclude` (cases and simulations are no part of the agent).
    Raises UsageRefused for a revision path that is not there, MachineryError where git fails.
    """
    parts = _parts(name, config)
    if config.revision_paths:
        parts["files"] = dict(_named_files(project_root, name, config.revision_paths))
        return RevisionDigest(digest_of(parts), None)
    tracked = _tracked_files(project_root, tuple(exclude))
    if tracked is None:
        return RevisionDigest(digest_of(parts), ENTRY_ONLY.format(name=name))
    parts["tree"] = tracked
    return RevisionDigest(digest_of(parts), WHOLE_TREE.format(name=name))


def agent_digest_at(
    project_root: Path, name: str, config: AgentConfig, commit: str, exclude: Iterable[str] = ()
) -> str | None:
    """Return the digest that `agent_digest` gives in a clean checkout of `commit`; `config` is the entry of then.

    None where that cannot be known: a revision path is not in it, lies outside the project or holds a submodule.
    What a checkout makes of a file (line ends, filters) is not done: such an agent gets another digest than in the
    work tree, and so never one that it has not. Raises MachineryError where git fails.
    """
    parts = _parts(name, config)
    if config.revision_paths:
        files = _named_files_at(project_root, commit, config.revision_paths)
        if files is None:
            return None
        parts["files"] = files
        return digest_of(parts)
    listed = _listed_at(project_root, commit)
    if listed is None:
        return None
    not_the_agent = (*exclude, ".regcase")
    parts["tree"] = {
        path: f"{mode} {blob} 0" for path, (mode, blob) in listed.items() if not _is_below(path, not_the_agent)
    }
    return digest_of(parts)


def _parts(name: str, config: AgentConfig) -> dict[str, object]:
    entry = {key: value for key, value in config.to_sparse().items() if key not in _PRICES}
    return {"name": name, "entry": entry}


def _named_files_at(root: Path, commit: str, paths: Iterable[str]) -> dict[str, str] | None:
    """Return the digest of each file's content by path, as `_named_files` does of the work tree."""
    named: dict[str, str] = {}
    for each in paths:
        path = PurePosixPath(os.path.normpath(each))
        if path.is_absolute() or ".." in path.parts:
            return None
        listed = _listed_at(root, commit, path)
        if not listed:
            return None
        for name, (mode, blob) in listed.items():
            if mode == _SUBMODULE:
                return None
            below = PurePosixPath(name).relative_to(path)
            if not _IGNORED_NAMES.isdisjoint(below.parts[:-1]) or (below.parts and name.endswith(".pyc")):
                continue
            named[name] = blob
    return _digests_of_blobs(root, named)


def _digests_of_blobs(root: Path, blobs: Mapping[str, str]) -> dict[str, str] | None:
    answer = _git(root, "cat-file", "--batch", given="".join(f"{each}\n" for each in blobs.values()).encode())
    if answer is None:
        return None
    content = answer.encode("utf-8", "surrogateescape")
    digests: dict[str, str] = {}
    at = 0
    for name in blobs:
        end = content.index(b"\n", at)
        size = content[at:end].split()[-1]
        if not size.isdigit():  # "missing": a clone that holds only some of the objects
            return None
        digests[name] = hashlib.sha256(content[end + 1 : end + 1 + int(size)]).hexdigest()
        at = end + 1 + int(size) + 1
    return digests


def _listed_at(root: Path, commit: str, path: PurePosixPath | None = None) -> dict[str, tuple[str, str]] | None:
    """Return mode and object of each file of the commit at or below `path`, both relative to `root`."""
    where = [] if path is None or path == PurePosixPath() else ["--", path.as_posix()]
    listed = _git(root, "ls-tree", "-r", "-z", commit, *where)
    if listed is None:
        return None
    files: dict[str, tuple[str, str]] = {}
    for line in filter(None, listed.split("\0")):
        about, _, name = line.partition("\t")
        mode, _, blob = about.split()
        files[name] = mode, blob
    return files


def _named_files(root: Path, name: str, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    for each in paths:
        path = root / each
        if path.is_dir():
            files = sorted(_below(path))
        elif path.is_file():
            files = [path]
        else:
            raise UsageRefused(
                f"Couldn't tell the revision of agent {name!r}: revision_paths names {each}, which is not there.\n"
                f"Correct it in [tool.regcase.agents.{name}]; paths are relative to {root}."
            )
        for file in files:
            content = os.readlink(file).encode() if file.is_symlink() else file.read_bytes()
            yield os.path.relpath(file, root).replace(os.sep, "/"), hashlib.sha256(content).hexdigest()


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if each not in _IGNORED_NAMES]
        for each in files:
            path = Path(parent, each)
            if not each.endswith(".pyc") and (path.is_symlink() or path.is_file()):
                yield path


def _tracked_files(root: Path, exclude: tuple[str, ...]) -> dict[str, str] | None:
    """Return mode and blob id of each tracked file by path; None where there is no git or no repository."""
    listed = _git(root, "ls-files", "--stage", "-z")
    if listed is None:
        return None
    files: dict[str, str] = {}
    for line in filter(None, listed.split("\0")):
        # mode, blob, stage; several stages of one path while a merge is unresolved
        about, _, path = line.partition("\t")
        if not _is_below(path, (*exclude, ".regcase")):
            files[path] = f"{files[path]} {about}" if path in files else about
    changed = _git(root, "ls-files", "--modified", "-z") or ""
    _take_changes(root, files, sorted(set(filter(None, changed.split("\0"))) & set(files)))
    return files


def _take_changes(root: Path, files: dict[str, str], changed: list[str]) -> None:
    """Replace what the index says of changed files by what lies in the work tree."""
    plain: list[str] = []
    for path in changed:
        try:
            mode = (root / path).lstat().st_mode
        except OSError:
            del files[path]
            continue
        if stat.S_ISREG(mode):
            plain.append(path)
        elif stat.S_ISLNK(mode):
            target = os.readlink(root / path).encode()
            files[path] = f"120000 {_stored(root, 'hash-object', '--stdin', given=target)} 0"
        # What is left is a submodule: its id in the index stands for it.
    # With the user's filters, so that committing the same content does not change the digest.
    for path in plain:
        mode_text = "100755" if (root / path).stat().st_mode & stat.S_IXUSR else "100644"
        blob = _stored(root, "hash-object", f"--path={path}", "--stdin", given=(root / path).read_bytes())
        files[path] = f"{mode_text} {blob} 0"


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    pure = PurePosixPath(path)
    return any(pure.is_relative_to(PurePosixPath(folder)) for folder in folders if folder not in ("", "."))


def _stored(root: Path, *words: str, given: bytes) -> str:
    found = _git(root, *words, given=given)
    if found is None:
        raise MachineryError(
            "Couldn't tell the agent's revision: git did not hash a changed file.\nRun `git status`."
        )
    return found.strip()


def _git(root: Path, *words: str, given: bytes = b"") -> str | None:
    """Run git in the user's repository; None where there is no git or no repository."""
    # A commit hook that runs pytest sets GIT_INDEX_FILE and the like for its own git.
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or "CONFIG" in key}
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=root,
            env={**env, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            input=given,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        return None
    except subprocess.TimeoutExpired as error:
        raise MachineryError(
            f"Couldn't tell the agent's revision: git {words[0]} took longer than {_GIT_SECONDS:g} s.\n"
            "Set revision_paths for the agent."
        ) from error
    if done.returncode == 0:
        return done.stdout.decode("utf-8", errors="surrogateescape")
    problem = done.stderr.decode("utf-8", errors="replace").strip()
    if "not a git repository" in problem:
        return None
    raise MachineryError(
        f"Couldn't tell the agent's revision: git {words[0]} said {problem!r}.\nSet revision_paths for the agent."
    )
