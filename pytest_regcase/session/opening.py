"""Opens a session: loads the cases, freezes what the ledger holds, plans every attempt.

The controller opens; every process plans from the same files and the same snapshot, hence the same items.
Never prints, knows nothing of pytest.
"""

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_regcase import registry
from pytest_regcase.case_files import LoadedCase, LoadedSimulation, duplicate_ids, find_case_files, load_case
from pytest_regcase.config import Project
from pytest_regcase.errors import FileError, RegcaseError, UsageRefused
from pytest_regcase.records.attempt import AttemptPlan
from pytest_regcase.records.session import SessionRow, SessionSnapshot
from pytest_regcase.records.words import Profile
from pytest_regcase.session.plan import plan_case
from pytest_regcase.session.revision import revision_of

if TYPE_CHECKING:  # workers of xdist plan without SQLAlchemy
    from pytest_regcase.ledger.store import Ledger


@dataclass(frozen=True)
class CaseEntry:
    """One case file of a session: loaded and planned, or invalid with its problems."""

    path: Path
    loaded: LoadedCase | None = None
    plans: tuple[AttemptPlan, ...] = ()
    problems: tuple[str, ...] = ()
    """Why it is invalid, one line each; empty when it is not."""


@dataclass(frozen=True)
class Opened:
    """A session that can run: its frozen state and what a person should know of it."""

    snapshot: SessionSnapshot
    entries: tuple[CaseEntry, ...]
    notices: tuple[str, ...] = ()


def chosen_files(project: Project, given: Sequence[Path] | None) -> list[Path]:
    """Return the case files of a session, sorted: the configured ones, or those at or below `given` paths."""
    configured = find_case_files(project.case_folders)
    if given is None:
        return configured
    chosen: dict[Path, Path] = {}
    for path in given:
        resolved = path.resolve()
        if path.is_dir():
            found = [each for each in configured if each.resolve().is_relative_to(resolved)]
            found += find_case_files([path])
        else:
            found = [path] if path.name == "case.toml" and path.is_file() else []
        for each in found:
            chosen.setdefault(each.resolve(), each)
    return sorted(chosen.values())


def load_entries(paths: Iterable[Path]) -> tuple[CaseEntry, ...]:
    """Load every case file; one that does not load, or whose id another one has, becomes an invalid entry."""
    entries: list[CaseEntry] = []
    for path in paths:
        try:
            entries.append(CaseEntry(path, load_case(path)))
        except RegcaseError as error:
            entries.append(CaseEntry(path, problems=_lines(error)))
    return tuple(_without_shared_id(each, entries) for each in entries)


def plan_entries(
    project: Project,
    entries: Iterable[CaseEntry],
    simulations: Mapping[str, LoadedSimulation],
    snapshot: SessionSnapshot,
) -> tuple[CaseEntry, ...]:
    """Plan every loaded entry; one that cannot be planned (no such agent or simulation) becomes invalid."""
    planned: list[CaseEntry] = []
    for entry in entries:
        if entry.loaded is None:
            planned.append(entry)
            continue
        try:
            plans = plan_case(project, entry.loaded, simulations, snapshot)
        except RegcaseError as error:
            planned.append(replace(entry, problems=_lines(error)))
        else:
            planned.append(replace(entry, plans=plans))
    return tuple(planned)


def open_session(
    project: Project,
    paths: Iterable[Path],
    simulations: Mapping[str, LoadedSimulation],
    ledger: "Ledger",
    *,
    profile: Profile,
    live_new: int,
    agent: str | None,
) -> Opened:
    """Freeze the state of the ledger and of the agents, and plan; writes nothing.

    Raises:
        UsageRefused: live attempts are asked for, and the key of the real supplier is not set.
        UnknownName: live attempts are asked for, and nothing speaks the upstream's wire.
    """
    from pytest_regcase.session.gate import live_rows

    if live_new:
        _check_upstream(project)
    entries = load_entries(paths)
    cases = [each.loaded for each in entries if each.loaded is not None]
    digests, notices = agent_digests(project, {agent or each.case.agent for each in cases})
    session_id = new_session_id()
    snapshot = SessionSnapshot(
        session_id=session_id,
        folder=str(sessions_folder(project) / session_id),
        profile=profile,
        live_new=live_new,
        agent=agent,
        ledger_id=ledger.ledger_id,
        ledger_is_new=ledger.is_new,
        agent_digests=digests,
    )
    snapshot = snapshot.model_copy(update={"live": live_rows(project, cases, ledger, snapshot)})
    return Opened(snapshot, plan_entries(project, entries, simulations, snapshot), notices)


def _check_upstream(project: Project) -> None:
    """Refuse live attempts that would all fail: without the configured key, or on a wire that nobody speaks."""
    upstream = project.config.upstream
    if upstream is not None:
        registry.load("wires", upstream.wire)
    if upstream is not None and upstream.api_key_env and not os.environ.get(upstream.api_key_env):
        raise UsageRefused(
            f"Couldn't plan live attempts: {upstream.api_key_env}, which api_key_env in [tool.regcase.upstream]"
            " names, is not set.\nSet it where the gate runs, or take api_key_env out."
        )


def session_row(opened: Opened) -> SessionRow:
    """Return the ledger's row of a session that starts now, with every planned key."""
    return SessionRow(
        session_id=opened.snapshot.session_id,
        started_at=datetime.now(UTC),
        profile=opened.snapshot.profile,
        planned=tuple(plan.key for entry in opened.entries for plan in entry.plans),
    )


def sessions_folder(project: Project) -> Path:
    """Return the folder that holds one folder a session."""
    return project.root / ".regcase" / "sessions"


def make_session_folder(project: Project, folder: Path) -> None:
    """Make a session's folder; git is told to leave ours alone, as attempts hold repositories of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    ignore = project.root / ".regcase" / ".gitignore"
    if not ignore.exists():
        ignore.write_text("# Made by pytest-regcase: the ledger and what attempts left.\n*\n", encoding="utf-8")


def new_session_id() -> str:
    """Return an id that sorts by time and that no other session has."""
    return f"{datetime.now(UTC):%Y%m%dt%H%M%S}-{secrets.token_hex(4)}"


def agent_digests(project: Project, names: set[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the revision of each agent of `names` that is configured, and what a person should know of them.

    Raises:
        UsageRefused: one of an agent's `revision_paths` is not there.
    """
    digests: dict[str, str] = {}
    notices: list[str] = []
    for name in sorted(names & set(project.config.agents)):
        revision = revision_of(project, name)
        digests[name] = revision.digest
        if revision.notice is not None and revision.notice not in notices:
            notices.append(revision.notice)
    return digests, tuple(notices)


def _without_shared_id(entry: CaseEntry, entries: Sequence[CaseEntry]) -> CaseEntry:
    """Make every case of a shared id invalid: attempts are counted by id, and which is meant cannot be known."""
    if entry.loaded is None:
        return entry
    name = entry.loaded.id
    same = [each.loaded for each in entries if each.loaded is not None and each.loaded.id == name]
    others = [each for each in same if each is not entry.loaded]
    if not others:
        return entry
    return CaseEntry(entry.path, problems=(duplicate_ids([entry.loaded, *others])[0].problems[0],))


def _lines(error: RegcaseError) -> tuple[str, ...]:
    return tuple(error.problems) if isinstance(error, FileError) else tuple(error.text.splitlines())
