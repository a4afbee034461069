"""Opens a session: loads the cases, freezes what the ledger holds, plans every attempt.

The controller opens; every process plans from the same files and the same snapshot, hence the same items.
Never prints, knows nothing of pytest.
"""

import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_regcase import registry
from pytest_regcase.case_files import LoadedCase, LoadedSimulation, duplicate_ids, find_case_files, load_case
from pytest_regcase.config import Project
from pytest_regcase.errors import FileError, RegcaseError, UsageRefused
from pytest_regcase.records.attempt import AttemptPlan
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.session import SessionRow, SessionSnapshot
from pytest_regcase.records.words import Profile
from pytest_regcase.session.plan import agent_name, plan_case
from pytest_regcase.session.planning.shards import part, read_shard
from pytest_regcase.session.revisions.git_revision import work_tree_commit
from pytest_regcase.session.revisions.revision import revision_of

if TYPE_CHECKING:  # workers of xdist plan without SQLAlchemy
    from pytest_regcase.ledger.store import Ledger


RUN_IDS = ("REGCASE_RUN_ID", "GITHUB_RUN_ID", "CI_PIPELINE_ID")
"""Variables that name the run of a CI, the first that is set: all shards of one run have the same."""
_LONGEST_RUN_ID = 200
NO_UPSTREAM = (
    "no live run can be made, so none is planned: [tool.regcase.upstream] is not configured; name the supplier's"
    " base_url there"
)


@dataclass(frozen=True)
class CaseEntry:
    """One case file of a session: loaded and planned, or invalid with its problems."""

    path: Path
    loaded: LoadedCase | None = None
    plans: tuple[AttemptPlan, ...] = ()
    problems: tuple[str, ...] = ()
    """Why it is invalid, one line each; empty when it is not."""
    agent_is_missing: bool = False
    """That is all that is wrong with it, so that a test function may still run it."""


@dataclass(frozen=True)
class Opened:
    """A session that can run: its frozen state and what a person should know of it."""

    snapshot: SessionSnapshot
    entries: tuple[CaseEntry, ...]
    """Of its shard."""
    notices: tuple[str, ...] = ()
    live_asked: int = 0
    """New live attempts a case that were asked for, whether they can be made or not."""


Load = Callable[[Iterable[Path]], tuple[CaseEntry, ...]]
"""How case files are loaded: `load_entries`, or with what hooks of the project add."""


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
    return _without_shared_ids(entries)


def in_shard(project: Project, entries: Sequence[CaseEntry], shard: str | None) -> tuple[CaseEntry, ...]:
    """Return the entries of that shard, all without one; split by their order as paths below the project.

    Split after loading: that two cases share an id can only be seen where both are loaded.
    """
    places = sorted(entries, key=lambda each: Path(os.path.relpath(each.path, project.root)).as_posix())
    return part(places, None if shard is None else read_shard(shard))


def plan_entries(
    project: Project,
    entries: Iterable[CaseEntry],
    simulations: Mapping[str, LoadedSimulation],
    snapshot: SessionSnapshot,
) -> tuple[CaseEntry, ...]:
    """Plan every loaded entry; one that cannot be planned (no such agent or simulation) becomes invalid.

    Nothing is planned of the cases that the snapshot leaves out, and nothing at all in a release.
    """
    planned: list[CaseEntry] = []
    for entry in entries:
        if entry.loaded is None:
            planned.append(entry)
            continue
        try:
            plans = plan_case(project, entry.loaded, simulations, snapshot)
        except RegcaseError as error:
            missing = agent_name(entry.loaded, snapshot) not in project.config.agents
            planned.append(replace(entry, problems=_lines(error), agent_is_missing=missing))
        else:
            rests = snapshot.profile == "release" or entry.loaded.id in snapshot.left_out
            planned.append(replace(entry, plans=() if rests else plans))
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
    shard: str | None = None,
    max_minutes: float | None = None,
    load: Load | None = None,
) -> Opened:
    """Freeze the state of the ledger and of the agents, and plan; writes nothing.

    Live attempts that nothing is there to run against are not planned, and that is a notice. Cases that do not fit
    into `max_minutes` (all attempts one after another) are left out.

    Raises:
        UsageRefused: live attempts are asked for, and the key of the real supplier is not set.
        UnknownName: live attempts are asked for, and nothing speaks the upstream's wire.
    """
    from pytest_regcase.session.planning.expected_time import cases_without_room
    from pytest_regcase.session.planning.since_fix import fix_not_at_hand, live_rows, live_rows_of_functions

    if live_new:
        _check_upstream(project)
    load = load or load_entries
    every = load(paths)
    entries = in_shard(project, every, shard)
    cases = [each.loaded for each in entries if each.loaded is not None]
    # Of all shards: they are told to be of one checkout by it.
    names = {agent or each.loaded.case.agent for each in every if each.loaded is not None}
    digests, notices = agent_digests(project, names)
    if live_new and project.config.upstream is None:
        notices = (*notices, NO_UPSTREAM)
    session_id = new_session_id()
    snapshot = SessionSnapshot(
        session_id=session_id,
        folder=str(sessions_folder(project) / session_id),
        profile=profile,
        live_new=live_new_in(project, live_new),
        agent=agent,
        ledger_id=ledger.ledger_id,
        ledger_is_new=ledger.is_new,
        agent_digests=digests,
        shard=shard,
    )
    all_cases = cases
    if live_new:
        known = {each.path.resolve() for each in every}
        more = load(each for each in chosen_files(project, None) if each.resolve() not in known)
        all_cases = [each.loaded for each in (*every, *more) if each.loaded is not None]
    snapshot = snapshot.model_copy(
        update={
            "live": live_rows(project, cases, ledger, snapshot),
            # Of all cases: functions run also those that were not asked for.
            "live_of_functions": live_rows_of_functions(project, all_cases, ledger, snapshot) if live_new else {},
            "fix_not_at_hand": fix_not_at_hand(all_cases, ledger),
        }
    )
    planned = plan_entries(project, entries, simulations, snapshot)
    if max_minutes is not None:
        left_out = cases_without_room(project, planned, simulations, snapshot, ledger, max_minutes)
        snapshot = snapshot.model_copy(update={"left_out": left_out})
        planned = plan_entries(project, entries, simulations, snapshot)
    return Opened(snapshot, planned, notices, live_asked=live_new)


def live_new_in(project: Project, asked: int) -> int:
    """Return how many of the new live attempts that are asked for can be planned: none without a supplier."""
    return 0 if project.config.upstream is None else asked


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


def session_row(project: Project, opened: Opened) -> SessionRow:
    """Return the ledger's row of a session that starts now, with every planned key."""
    return SessionRow(
        session_id=opened.snapshot.session_id,
        started_at=datetime.now(UTC),
        profile=opened.snapshot.profile,
        planned=tuple(plan.key for entry in opened.entries for plan in entry.plans),
        run_id=run_id(),
        shard=opened.snapshot.shard,
        agent=opened.snapshot.agent,
        commit=work_tree_commit(project.root),
        live_new=opened.live_asked,
        revisions=opened.snapshot.agent_digests,
        left_out=opened.snapshot.left_out,
    )


def run_id() -> str | None:
    """Return the id of the CI run that this is part of, as its environment says; None outside of one.

    It is the same as the ledger will have it: what is no UTF-8 text is replaced, a longer one becomes its digest.
    """
    said = next((os.environ[each] for each in RUN_IDS if os.environ.get(each)), None)
    if said is None:
        return None
    text = said.encode("utf-8", "replace").decode()
    return text if len(text) <= _LONGEST_RUN_ID else digest_of(text)


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


def invalid_cases(project: Project, entries: Iterable[CaseEntry]) -> dict[str, str]:
    """Return what is wrong with each invalid entry, by its id, or by its path where no id could be read.

    Paths are the same on every machine: a decision holds no folder of the one that it was made on.
    """
    return {
        entry.loaded.id
        if entry.loaded is not None
        else Path(os.path.relpath(entry.path, project.root)).as_posix(): "\n".join(entry.problems)
        for entry in entries
        if entry.problems
    }


def _without_shared_ids(entries: Sequence[CaseEntry]) -> tuple[CaseEntry, ...]:
    """Make every case of a shared id invalid: attempts are counted by id, and which is meant cannot be known."""
    same: dict[str, list[LoadedCase]] = {}
    for each in entries:
        if each.loaded is not None:
            same.setdefault(each.loaded.id, []).append(each.loaded)
    return tuple(
        CaseEntry(each.path, problems=_shared_id(each.loaded, same[each.loaded.id]))
        if each.loaded is not None and len(same[each.loaded.id]) > 1
        else each
        for each in entries
    )


def _shared_id(case: LoadedCase, same: Sequence[LoadedCase]) -> tuple[str]:
    others = [each for each in same if each is not case]
    return (duplicate_ids([case, *others])[0].problems[0],)


def _lines(error: RegcaseError) -> tuple[str, ...]:
    return tuple(error.problems) if isinstance(error, FileError) else tuple(error.text.splitlines())
