"""Who owns a new case: the CODEOWNERS rule that covers it, else whoever git says is at work here.

Reads the repository; never guesses. Must not print.
"""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_regcase.errors import UsageRefused

PLACES: Final = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
"""In the order in which GitHub, then GitLab, looks; the first that is there counts."""
_FILE_LIMIT_BYTES: Final = 3 * 1024 * 1024


@dataclass(frozen=True)
class Owner:
    """An owner, and where we have it from (to be said to the user)."""

    name: str
    found_in: str


def owner_of(path: Path, root: Path, given: str | None = None) -> Owner:
    """Return the owner of a case that will lie at `path`: as given, by CODEOWNERS, else the git user here.

    Raises:
        UsageRefused: none of the three says one, or the CODEOWNERS that counts cannot be read.
    """
    if given is not None and given.strip():
        return Owner(given.strip(), "--owner")
    top = _repository_of(root)
    by_rule = _by_codeowners(path, top)
    if by_rule is not None:
        return by_rule
    for key in ("user.name", "user.email"):
        found = _git(top, "config", "--get", key)
        if found:
            return Owner(found, f"git config {key}")
    raise UsageRefused(
        f"Couldn't tell who owns {path.name}: no CODEOWNERS rule covers it, and git knows no user here.\n"
        "Say it with --owner WHO."
    )


def matches(pattern: str, name: str) -> bool:
    """Say whether a CODEOWNERS pattern covers the file `name` (with forward slashes, relative to the repository).

    As in .gitignore: a slash inside or at the front anchors the pattern at the top, one at the end means a folder;
    ``*`` stays within a folder, ``**`` does not. A pattern that names a folder covers what is below it; one that
    ends in ``/*`` covers the files right there only (GitHub's documentation, "CODEOWNERS syntax").
    """
    body = pattern.rstrip("/")
    anchored = "/" in body
    body = body.lstrip("/")
    if not body:
        return True
    translated = _translated(body)
    start = "" if anchored else "(?:.*/)?"
    end = "/.*" if pattern.endswith("/") else ("" if body.endswith("/*") else "(?:/.*)?")
    return re.fullmatch(start + translated + end, name) is not None


def _translated(body: str) -> str:
    out: list[str] = []
    index = 0
    while index < len(body):
        if body.startswith("**/", index):
            out.append("(?:.*/)?")
            index += 3
        elif body.startswith("**", index):
            out.append(".*")
            index += 2
        elif body[index] == "*":
            out.append("[^/]*")
            index += 1
        elif body[index] == "?":
            out.append("[^/]")
            index += 1
        else:
            out.append(re.escape(body[index]))
            index += 1
    return "".join(out)


def _by_codeowners(path: Path, top: Path) -> Owner | None:
    file = next((top / place for place in PLACES if (top / place).is_file()), None)
    if file is None:
        return None
    try:
        name = path.resolve().relative_to(top.resolve()).as_posix()
    except ValueError:
        return None
    found: Owner | None = None
    for number, pattern, owners in _rules(file):
        if matches(pattern, name):
            where = f"{file.relative_to(top).as_posix()}:{number}"
            found = Owner(" ".join(owners), where) if owners else None
    return found


def _rules(file: Path) -> Iterator[tuple[int, str, list[str]]]:
    """Yield (line number, pattern, owners); the last rule that matches counts, one without owners means none."""
    try:
        with file.open("rb") as opened:
            content = opened.read(_FILE_LIMIT_BYTES)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageRefused(f"Couldn't tell the owner from {file}: {reason}.\nSay it with --owner WHO.") from error
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        line = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip()
        if not line or line.startswith(("[", "^[")):
            continue
        pattern, *owners = re.split(r"(?<!\\)\s+", line)
        yield number, pattern.replace("\\ ", " "), owners


def _repository_of(root: Path) -> Path:
    found = _git(root, "rev-parse", "--show-toplevel")
    return Path(found) if found else root


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
