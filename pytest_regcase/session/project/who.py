"""Who works here, for what is recorded with a name. Asks git and the environment; never prints."""

import os
import subprocess
from pathlib import Path

from pytest_regcase.errors import UsageRefused

_GIT_SECONDS = 10


def who_acts(root: Path, what: str) -> str:
    """Return who works here, as git or the login knows them; `what` says in a refusal who was to be told.

    Raises:
        UsageRefused: neither has a name.
    """
    name, address = _git_setting(root, "user.name"), _git_setting(root, "user.email")
    if name:
        return f"{name} <{address}>" if address else name
    user = address or os.environ.get("USER") or os.environ.get("LOGNAME")
    if not user:
        raise UsageRefused(f"Couldn't tell {what}: neither git nor the login has a name.\nPass --by NAME.")
    return user


def _git_setting(root: Path, key: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "config", "--get", key],
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else ""
