"""Which sessions one decision is made over. Pure: sessions come in newest first, and what is missing is said.

A session that only decided, or whose attempts are a sweep's, runs no checks and is never chosen.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from pytest_regcase.records.attempt import AttemptKey
from pytest_regcase.records.decision import Reason
from pytest_regcase.records.session import SessionRow
from pytest_regcase.records.words import Profile
from pytest_regcase.rules.lifecycle import in_utc
from pytest_regcase.session.planning.shards import Shard, missing, read_shard
from pytest_regcase.session.revisions.revision import configured

NO_SESSION = "no-session"
"""Code of the reason that something left no session. It is red."""


_CLOCKS_DIFFER = timedelta(minutes=5)
"""By so much the clocks of two machines may differ unsaid."""


class Chosen(NamedTuple):
    """The sessions of one decision, and what should have left one and did not."""

    rows: tuple[SessionRow, ...]
    found: tuple[Reason, ...] = ()


def that_ran(sessions: Iterable[SessionRow], profile: Profile | None = None) -> list[SessionRow]:
    """Return the sessions that ran checks, of that profile where one is given."""
    return [
        each
        for each in sessions
        if each.source == "pytest" and each.profile != "release" and profile in (None, each.profile)
    ]


def is_of(session: SessionRow, revisions: Mapping[str, str]) -> bool:
    """Say whether the session ran the agents as they are now; one made before that was kept cannot be told."""
    kept = session.revisions
    return kept is not None and all(revisions.get(name, digest) == digest for name, digest in kept.items())


def newest_run(
    sessions: Iterable[SessionRow],
    *,
    run_id: str | None,
    profile: Profile | None,
    revisions: Mapping[str, str],
    what: str = "the agent as it is now",
) -> Chosen:
    """Return the newest session of this checkout, or where that is a shard, the newest of each shard of its run.

    With `run_id`, only the sessions of that CI run are looked at. Else a session is of this checkout when it ran
    the agents of `revisions`; shards that know no run belong together when their number, profile, commit and
    revisions are equal. `what` names them where no session ran them.
    """
    ran = that_ran(sessions, profile)
    named = "" if profile is None else f" in profile {profile}"
    if run_id is not None:
        own = [each for each in ran if each.run_id == run_id]
        nothing = f"the CI run {run_id} left no session{named} in this ledger"
    else:
        own = [each for each in ran if is_of(each, revisions)]
        nothing = f"no session{named} in this ledger ran {what}"
    if not own:
        return Chosen((), (Reason(code=NO_SESSION, text=nothing),))
    newest = own[0]
    if newest.shard is None:
        return Chosen((newest,))
    return _shards(newest, own)


def _shards(newest: SessionRow, sessions: Sequence[SessionRow]) -> Chosen:
    by_shard: dict[Shard, SessionRow] = {}
    for each in sessions:
        if each.shard is not None and _belong_together(each, newest):
            by_shard.setdefault(read_shard(each.shard), each)
    gone = missing(by_shard)
    return Chosen(
        tuple(by_shard[shard] for shard in sorted(by_shard)),
        tuple(
            Reason(code=NO_SESSION, text=f"shard {each} left no session, so nothing of it is shown")
            for each in gone
        ),
    )


def dated_ahead(rows: Iterable[SessionRow], now: datetime) -> tuple[Reason, ...]:
    """Return a red reason for each session that began later than now: it hides all that come after it."""
    return tuple(
        Reason(
            code="dated-ahead",
            text=f"session {each.session_id} is dated {in_utc(each.started_at):%Y-%m-%d %H:%M} UTC, later than"
            " now, so nobody knows whether it is the newest",
        )
        for each in rows
        if in_utc(each.started_at) > now + _CLOCKS_DIFFER
    )


def _belong_together(one: SessionRow, newest: SessionRow) -> bool:
    assert one.shard is not None
    assert newest.shard is not None
    if read_shard(one.shard).of != read_shard(newest.shard).of or one.profile != newest.profile:
        return False
    if newest.run_id is not None or one.run_id is not None:
        return one.run_id == newest.run_id
    # Each shard runs the functions of its own cases.
    same = configured(one.revisions or {}) == configured(newest.revisions or {})
    return same and one.commit == newest.commit


def newest_of_each(
    sessions: Iterable[SessionRow], agents: Mapping[str, str], revisions: Mapping[str, str]
) -> tuple[SessionRow, ...]:
    """Return for each case the newest session that planned its checks with the present agent: that one decides.

    `agents` are the cases' agents by case id, `revisions` all configured agents as they are now; an agent that is
    not configured is a test function, and the newest session that ran it counts. Each session comes back with the
    checks that it decides; live runs are counted over all sessions and belong to none. `sessions` are read no
    further than needed.
    """
    waiting = set(agents.items())
    seen: set[tuple[str, str]] = set()
    taken: list[SessionRow] = []
    for each in sessions:
        ran_now = {
            (key.case_id, key.agent)
            for key in each.planned
            if key.case_id in agents and _counts(each, key, agents, revisions)
        } - seen
        keys = tuple(key for key in each.planned if (key.case_id, key.agent) in ran_now and key.scenario != "live")
        if keys:
            decided = {(key.case_id, key.agent) for key in keys}
            seen |= decided
            waiting -= decided
            taken.append(each.model_copy(update={"planned": keys, "left_out": ()}))
        if not waiting:
            break
    return tuple(taken)


def _counts(session: SessionRow, key: AttemptKey, agents: Mapping[str, str], revisions: Mapping[str, str]) -> bool:
    if key.agent not in revisions:
        return True
    kept = (session.revisions or {}).get(key.agent)
    return key.agent == agents[key.case_id] and kept == revisions[key.agent]


def with_due(rows: Sequence[SessionRow], due: Iterable[AttemptKey]) -> tuple[SessionRow, ...]:
    """Return the sessions with the checks in `due` that a case has now and its session did not plan: not run.

    A case that no session planned stays as it is.
    """
    missing_keys = set(due) - {key for row in rows for key in row.planned}
    filled: list[SessionRow] = []
    for row in rows:
        of = {(key.case_id, key.agent) for key in row.planned}
        more = sorted((key for key in missing_keys if (key.case_id, key.agent) in of), key=str)
        missing_keys -= set(more)
        filled.append(row.model_copy(update={"planned": (*row.planned, *more)}))
    return tuple(filled)
