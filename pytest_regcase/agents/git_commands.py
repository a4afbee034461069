"""git's command line, with no setting, hook or identity of the user's or of an agent's.

Knows nothing of work trees. The agent owns the repository that it works in: what is run here runs nothing that the
agent set up, and asks nobody for anything.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from pytest_regcase.errors import MachineryError

GIT_SECONDS = 120.0
IDENTITY = "pytest-regcase"
EMAIL = "regcase@localhost"
NOT_WORK = "__pycache__/\n*.pyc\n.pytest_cache/\n"
"""What running a work tree's own tests leaves behind; a repository of a person's would ignore it too."""
_DATE = "2000-01-01T00:00:00+00:00"
"""Fixed, so that equal files give an equal base commit."""
_SETTINGS = MappingProxyType(
    {
        "core.hooksPath": os.devnull,
        "core.autocrlf": "false",
        "core.fsmonitor": "false",
        "core.compression": "0",
        "core.fsync": "none",  # nothing here outlives its attempt's folder
        "core.bigFileThreshold": "8m",
        "gc.auto": "0",
        "maintenance.auto": "false",  # newer gits go on in the background, with a lock that comes and goes
        "user.name": IDENTITY,
        "user.email": EMAIL,
    }
)


def run_git(words: list[str], *, cwd: Path, env: Mapping[str, str] | None = None, may_fail: bool = False) -> str:
    """Return what ``git`` with these words says, "" where it fails and may.

    Raises:
        MachineryError: git is missing (slug ``git-missing``), takes longer than `GIT_SECONDS`, or fails.
    """
    try:
        done = subprocess.run(
            git_command(words),
            cwd=cwd,
            env=git_environment(env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise MachineryError(
            "Couldn't lay the work tree: there is no `git` on the path.\nInstall git, or run cases without [task] "
            "work_tree.",
            slug="git-missing",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise MachineryError(
            f"Couldn't look at the work tree {cwd}: git {words[0]} took longer than {GIT_SECONDS:g} s.\n"
            "Keep large files out of the work tree."
        ) from error
    if done.returncode != 0 and not may_fail:
        raise MachineryError(
            f"Couldn't look at the work tree {cwd}: git {words[0]} said "
            f"{done.stderr.decode('utf-8', errors='replace').strip()!r}.\nCheck the files below it."
        )
    return done.stdout.decode("utf-8", errors="replace") if done.returncode == 0 else ""


def quoted(path: Path) -> str:
    """Return a path as git reads one in a list of object folders, where a colon would end it."""
    inner = os.fspath(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inner}"'


def git_command(words: list[str]) -> list[str]:
    """Return the whole command line, with our settings before `words`."""
    settings = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
    return ["git", *settings, *words]


def git_environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return git's whole environment: no settings, hooks or identity of the user's or the system's."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_AUTHOR_DATE": _DATE,
        "GIT_COMMITTER_DATE": _DATE,
        **more,
    }
