"""Decisions on candidates as files: one a decision, numbered, written whole or not at all, never rewritten.

The ledger is the record; a file is what a person or CI carries away from it. Never prints.
"""

import json
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_regcase.config import Project
from pytest_regcase.errors import WriteError
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.moments import utc_text
from pytest_regcase.records.version import Decided
from pytest_regcase.session.planning.opening import make_session_folder
from pytest_regcase.toml_lines import shown

_SHORT: Final = 12
_NUMBERED: Final = re.compile(r"[0-9]{4,}\.json")


@dataclass(frozen=True)
class DecisionFile:
    """A file beside the ledger, and the decision that it holds."""

    path: Path
    at: str
    digest: str | None
    """Of the decision in it; None: it is no decision file as we write them."""

    def holds(self, decided: Decided) -> bool:
        """Say whether it is the file of that decision, as it was decided."""
        return self.digest == decided.digest and self.at == utc_text(decided.at)


def decisions_folder(project: Project, revision: str) -> Path:
    """Return the folder of the decisions on a revision; it has the first digits of the revision's digest."""
    return project.root / ".regcase" / "decisions" / revision.removeprefix("sha256:")[:_SHORT]


def write_decision_file(project: Project, decided: Decided, *, ledger_id: str, commit: str | None = None) -> Path:
    """Write the decision into the next free file of its revision's folder, which is read-only from then on.

    Raises:
        WriteError: it cannot be written; no file of it is there then, and the ledger holds the decision.
    """
    assert decided.revision is not None
    folder = decisions_folder(project, decided.revision)
    document: dict[str, Any] = {"schema": 1, "revision": decided.revision}
    document |= {"commit": commit} if commit is not None else {}
    document |= {"at": utc_text(decided.at), "ledger_id": ledger_id, "digest": decided.digest}
    document |= {"rests_on": decided.rests_on.to_plain()} if decided.rests_on is not None else {}
    document["decision"] = decided.decision.to_plain()
    draft = folder / f".{secrets.token_hex(8)}"
    try:
        make_session_folder(project, folder)
        try:
            _write(draft, (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace"))
            return _numbered(draft, folder)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise WriteError(
            f"Couldn't write the decision into {shown(folder)}: {error.strerror or error}.\n"
            "The ledger holds it; `regcase history --version` shows it."
        ) from error


def decision_files(project: Project, revision: str) -> list[DecisionFile]:
    """Return the files of a revision by number; what is none of ours is there without a digest."""
    folder = decisions_folder(project, revision)
    if not folder.is_dir():
        return []
    named = [each for each in folder.iterdir() if _NUMBERED.fullmatch(each.name)]
    return [_read(each) for each in sorted(named, key=lambda each: int(each.stem))]


def _write(draft: Path, content: bytes) -> None:
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _numbered(draft: Path, folder: Path) -> Path:
    """Give the draft the next number. A link is made whole, and never onto a file that is there."""
    taken = [int(each.stem) for each in folder.iterdir() if _NUMBERED.fullmatch(each.name)]
    number = max(taken, default=0) + 1
    while True:
        path = folder / f"{number:04d}.json"
        try:
            os.link(draft, path)
        except FileExistsError:  # another gate was faster
            number += 1
        else:
            return path


def _read(path: Path) -> DecisionFile:
    try:
        found = json.loads(path.read_bytes())
        return DecisionFile(path, str(found["at"]), digest_of(found["decision"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return DecisionFile(path, "", None)
