"""Removes what old sessions left in folders: logs, work trees, conversations. Rows of the ledger stay for good."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_regcase.config import Project
from pytest_regcase.session.ledgers.exchange import SPOOL_FILE
from pytest_regcase.session.planning.opening import sessions_folder

if TYPE_CHECKING:
    from pytest_regcase.ledger.store import Ledger


@dataclass(frozen=True)
class Pruned:
    """What was removed, or would be."""

    folders: tuple[Path, ...]
    """Of whole sessions."""
    bytes_freed: int
    kept_spools: tuple[Path, ...]
    """Files of old sessions that hold attempts which no ledger took: their folders stay."""
    failed: tuple[str, ...] = ()
    """Folders that could not be removed, each with the reason."""


def prune(project: Project, ledger: "Ledger", *, days: int, now: datetime, only_look: bool = False) -> Pruned:
    """Remove the folders of sessions that began more than `days` ago; `only_look` removes nothing.

    A session that the ledger does not know is as old as its folder. Links are never followed.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    from pytest_regcase.ledger.stats import session_starts

    starts = session_starts(ledger)
    oldest = now.astimezone(UTC) - timedelta(days=days)
    removed: list[Path] = []
    spools: list[Path] = []
    failed: list[str] = []
    freed = 0
    for folder in _session_folders(sessions_folder(project)):
        if _began(folder, starts) >= oldest:
            continue
        if (folder / SPOOL_FILE).exists():
            spools.append(folder / SPOOL_FILE)
            continue
        size = _size(folder)
        try:
            if not only_look:
                shutil.rmtree(folder)
        except OSError as error:
            failed.append(f"{folder}: {error.strerror or error}")
            continue
        removed.append(folder)
        freed += size
    return Pruned(tuple(removed), freed, tuple(spools), tuple(failed))


def _session_folders(parent: Path) -> Iterator[Path]:
    if parent.is_dir():
        yield from sorted(each for each in parent.iterdir() if each.is_dir() and not each.is_symlink())


def _began(folder: Path, starts: dict[str, str]) -> datetime:
    known = starts.get(folder.name)
    if known is not None:
        return datetime.fromisoformat(known)
    return datetime.fromtimestamp(folder.stat().st_mtime, UTC)


def _size(folder: Path) -> int:
    return sum(each.lstat().st_size for each in folder.rglob("*") if not each.is_dir())
