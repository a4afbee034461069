"""The gate over what ledgers hold, after the sessions: nothing is run, nothing is stored, nothing is printed.

`regcase gate` asks here, and so does ``pytest --regcase`` in a release, which runs nothing either.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_regcase.case_files import LoadedSimulation, load_simulations
from pytest_regcase.config import Project
from pytest_regcase.errors import UsageRefused
from pytest_regcase.ledger.sessions import session_heads, whole
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.decision import GateDecision, Reason
from pytest_regcase.records.session import SessionRow, SessionSnapshot
from pytest_regcase.records.words import Profile
from pytest_regcase.session.gate import decide_sessions
from pytest_regcase.session.gating.gate_sessions import (
    Chosen,
    dated_ahead,
    newest_of_each,
    newest_run,
    that_ran,
    with_due,
)
from pytest_regcase.session.ledgers.exchange import merge_ledger
from pytest_regcase.session.plan import agent_name
from pytest_regcase.session.planning.opening import (
    CaseEntry,
    agent_digests,
    chosen_files,
    invalid_cases,
    live_new_in,
    load_entries,
    plan_entries,
    run_id,
)
from pytest_regcase.session.revisions.versions import KnownRevision


@dataclass(frozen=True)
class GateAnswer:
    """A decision over stored sessions, and what it was made from."""

    decision: GateDecision
    sessions: tuple[SessionRow, ...]
    attempts: tuple[AttemptRecord, ...]

    @property
    def interrupted(self) -> bool:
        """Say whether one of the sessions has no end."""
        return any(each.finished_at is None for each in self.sessions)


@contextmanager
def one_ledger(project: Project, places: Sequence[str]) -> Iterator[Ledger]:
    """Give the ledger at the one place, or what those at several hold together; without a place the project's own.

    A place is a file of SQLite or an SQLAlchemy URL. Several are merged into a temporary one and stay as they are.

    Raises:
        UsageRefused: one of them is not there (none is made), or two hold another record of one attempt.
        LedgerError: one cannot be opened, read or merged.
    """
    if len(places) <= 1:
        url = _url(places[0]) if places else project.ledger_url()
        found = Ledger.open_if_there(url)
        if found is None:
            place = places[0] if places else project.config.ledger
            raise UsageRefused(
                f"Couldn't read the ledger {place}: there is no such file.\n"
                "Run `pytest --regcase` first, or name the ledger by --ledger or REGCASE_LEDGER."
            )
        with found:
            yield found
        return
    with (
        TemporaryDirectory(prefix="regcase-gate-") as folder,
        Ledger.open(f"sqlite:///{Path(folder, 'merged.sqlite3')}") as merged,
    ):
        for each in places:
            merge_ledger(merged, each)
        yield merged


def gate_over(
    project: Project,
    ledger: Ledger,
    *,
    profile: Profile | None = None,
    candidate: KnownRevision | None = None,
    today: date | None = None,
) -> GateAnswer:
    """Decide over the newest session of this checkout, or in a release over the newest session of each case.

    Every case of the project has to be covered. Where that session was one shard, over all shards of its run. A
    run id in the environment (see `opening.run_id`) says which run is meant. Without `profile` it is that of the
    session, or pull-request where there is none. With `candidate` the sessions of that revision alone are looked
    at, in the place of those of this checkout or run; cases and simulations are those of this checkout.

    Raises:
        FileError, UsageRefused: simulations or agents of the project cannot be used.
        LedgerError: the ledger cannot be read.
    """
    simulations = load_simulations(project)
    entries = load_entries(chosen_files(project, None))
    if profile == "release":
        return release_over(project, entries, simulations, ledger, candidate=candidate, today=today)
    if candidate is not None:
        present = candidate.agents
        chosen = newest_run(
            candidate.newest_first, run_id=None, profile=profile, revisions=present, what=candidate.short
        )
    else:
        heads = session_heads(ledger)
        names = {each.loaded.case.agent for each in entries if each.loaded is not None}
        present, _ = agent_digests(project, names | {each.agent for each in heads if each.agent is not None})
        chosen = newest_run(heads, run_id=run_id(), profile=profile, revisions=present)
    rows = tuple(whole(ledger, chosen.rows))
    if candidate is not None:
        # What it was not run on was not run: an earlier revision's attempts say nothing of it.
        rows = tuple(each.model_copy(update={"left_out": ()}) for each in rows)
    newest = max(rows, key=lambda each: each.started_at, default=None)
    snapshot = SessionSnapshot(
        session_id="look",
        folder=str(project.root),
        profile=profile or (newest.profile if newest is not None else "pull-request"),
        # Of a case whose replies are passed through, too, a candidate needs that it ran.
        live_new=live_new_in(project, (newest.live_new if newest is not None else None) or 0)
        if candidate is None
        else 1,
        agent=None if newest is None else newest.agent,
        ledger_id=ledger.ledger_id,
        # Of what is not configured, a test function, the session alone knows the revision.
        agent_digests={name: digest for row in rows for name, digest in (row.revisions or {}).items()} | present,
        left_out=tuple(sorted({case_id for row in rows for case_id in row.left_out})),
    )
    planned = plan_entries(project, entries, simulations, snapshot)
    due = [plan.key for entry in planned for plan in entry.plans if plan.kind != "live"]
    return _answer(
        project, planned, simulations, ledger, snapshot, chosen._replace(rows=with_due(rows, due)), today
    )


def release_over(
    project: Project,
    entries: Sequence[CaseEntry],
    simulations: Mapping[str, LoadedSimulation],
    ledger: Ledger,
    *,
    agent: str | None = None,
    candidate: KnownRevision | None = None,
    today: date | None = None,
) -> GateAnswer:
    """Decide what a release would: for each case over the newest session that planned it with the present agent,
    or with the `candidate`'s.

    Raises:
        UsageRefused: a `revision_paths` of an agent is not there.
        LedgerError: the ledger cannot be read.
    """
    cases = [each.loaded for each in entries if each.loaded is not None]
    if candidate is None:
        heads = session_heads(ledger)
        present, _ = agent_digests(project, {*project.config.agents})
    else:
        heads, present = candidate.newest_first, candidate.agents
        agent = heads[0].agent if heads else None
    snapshot = SessionSnapshot(
        session_id="look",
        folder=str(project.root),
        profile="release",
        # Of a case whose replies are passed through, too, a release needs that it ran.
        live_new=1,
        agent=agent,
        ledger_id=ledger.ledger_id,
        agent_digests=present,
    )
    agents = {each.id: agent_name(each, snapshot) for each in cases}
    rows = newest_of_each(whole(ledger, that_ran(heads)), agents, present)
    # The newest session's word stands, for test functions: it comes last here.
    kept = {name: digest for row in reversed(rows) for name, digest in (row.revisions or {}).items()}
    snapshot = snapshot.model_copy(update={"agent_digests": kept | present})
    # Planned as a session would, for what is wrong with a case and for checks that are new since.
    planned = plan_entries(project, entries, simulations, snapshot.model_copy(update={"profile": "nightly"}))
    due = [plan.key for entry in planned for plan in entry.plans if plan.kind != "live"]
    return _answer(project, planned, simulations, ledger, snapshot, Chosen(with_due(rows, due)), today)


def _answer(
    project: Project,
    entries: Sequence[CaseEntry],
    simulations: Mapping[str, LoadedSimulation],
    ledger: Ledger,
    snapshot: SessionSnapshot,
    chosen: Chosen,
    today: date | None,
) -> GateAnswer:
    decision = decide_sessions(
        project,
        [each.loaded for each in entries if each.loaded is not None],
        ledger,
        chosen.rows,
        profile=snapshot.profile,
        snapshot=snapshot,
        invalid=invalid_cases(project, entries),
        simulations=simulations,
        found=(*chosen.found, *dated_ahead(chosen.rows, datetime.now(UTC)), *_hooked(chosen.rows)),
        interrupted=any(each.finished_at is None for each in chosen.rows),
        today=today,
    )
    return GateAnswer(decision, chosen.rows, tuple(_attempts(ledger, chosen.rows)))


def _hooked(rows: Sequence[SessionRow]) -> Iterator[Reason]:
    """Say why attempts may not count here that counted in pytest: the case or the agent was another there."""
    changed = sorted({each for row in rows for each in row.hooked})
    if changed:
        text = (
            f"hooks of the project changed {', '.join(changed)} in that session, and none is run here: its"
            " attempts belong to what the hooks made of it, so they do not count here; pytest's exit status does"
        )
        yield Reason(code="hooked", text=text, red=False)


def _attempts(ledger: Ledger, rows: Sequence[SessionRow]) -> Iterator[AttemptRecord]:
    for row in rows:
        own = set(row.planned)
        for each in ledger.rows(session_id=row.session_id):
            if each.record.key in own:
                yield each.record


def _url(place: str) -> str:
    return place if "://" in place else f"sqlite:///{Path(place).absolute()}"
