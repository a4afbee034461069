"""What a ledger holds of a revision: sessions, decisions, and when it was made active. Knows no rule.

Order is that of time, then of content: ledgers that were merged in another order say the same.
"""

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, false, func, or_, select

from pytest_regcase.ledger.columns import chunks, decided_of, json_of, text_of, time_of, version_of
from pytest_regcase.ledger.schema import ATTEMPTS, DECISIONS, SESSIONS, VERSIONS
from pytest_regcase.ledger.store import Ledger, insert_new
from pytest_regcase.records.version import Decided, Held, Version

A = ATTEMPTS.c
_DECIDED = DECISIONS.c


class Grounds(NamedTuple):
    """What a promotion is judged by, all of one state."""

    newest: Decided | None
    """The last decision on the candidate; None: there is none."""
    held: Held
    active: Version | None


def decided(ledger: Ledger, revision: str) -> list[Decided]:
    """Return the decisions on that revision, oldest first.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    query = select(DECISIONS).where(_DECIDED.revision == revision)
    rows = ledger.database.read(lambda connection: connection.execute(query).mappings().all())
    return sorted((decided_of(row) for row in rows), key=lambda each: (each.at, each.about, each.digest))


def revisions_decided(ledger: Ledger) -> list[str]:
    """Return the revisions that something was decided on, the one with the last decision last.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    query = select(_DECIDED.revision, func.max(_DECIDED.at)).group_by(_DECIDED.revision)
    found = ledger.database.read(lambda connection: connection.execute(query).all())
    return [revision for _, revision in sorted((at, revision) for revision, at in found if revision is not None)]


def versions(ledger: Ledger) -> list[Version]:
    """Return what was made active, oldest first; the last one is active.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    return ledger.database.read(versions_of)


def held_of(ledger: Ledger, agents: Mapping[str, str]) -> Held:
    """Return how much the ledger holds of a revision, whose agents are given as name -> digest.

    Counted are all sessions in which one of them took part, but for releases, and its trials in sweeps.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    return ledger.database.read(lambda connection: _held(connection, agents))


def make_active(
    ledger: Ledger, revision: str, agents: Mapping[str, str], judge: Callable[[Grounds], Version]
) -> Version:
    """Append the version that `judge` returns, unless that is active already; return what is active now.

    Grounds are read and the row is written in one transaction that no other decision or promotion comes between.
    `judge` raises where the revision may not become active: nothing is written then. It may be asked twice.

    Raises:
        LedgerError: the ledger cannot be written.
    """

    def work(connection: Connection) -> Version:
        known = versions_of(connection)
        active = known[-1] if known else None
        version = judge(Grounds(_last_on_candidate(connection, revision), _held(connection, agents), active))
        if version != active:
            values = {
                "active": version.active,
                "since": time_of(version.since),
                "decision": version.decision,
                "who": None if version.who is None else text_of(version.who),
                "why": None if version.why is None else text_of(version.why),
            }
            insert_new(connection, VERSIONS, values)
        return version

    return ledger.database.write("store what is active in", work, alone=True)


def _last_on_candidate(connection: Connection, revision: str) -> Decided | None:
    query = select(_DECIDED.at, _DECIDED.digest, _DECIDED.seq).where(
        _DECIDED.revision == revision, _DECIDED.about == "candidate"
    )
    # The order of `decided`; decisions are long, and one is read.
    last = max((tuple(row) for row in connection.execute(query)), default=None)
    if last is None:
        return None
    return decided_of(connection.execute(select(DECISIONS).where(_DECIDED.seq == last[2])).mappings().one())


def versions_of(connection: Connection) -> list[Version]:
    """Return what `versions` does, in the caller's transaction."""
    rows = [version_of(row) for row in connection.execute(select(VERSIONS)).mappings()]
    return sorted(rows, key=lambda each: (each.since, json_of(each.to_plain())))


def _held(connection: Connection, agents: Mapping[str, str]) -> Held:
    ids: list[str] = []
    sweeps: list[str] = []
    sessions = 0
    query = select(SESSIONS.c.session_id, SESSIONS.c.source, SESSIONS.c.profile, SESSIONS.c.revisions)
    for session_id, source, profile, revisions in connection.execute(query):
        kept = json.loads(revisions or "{}") or {}
        if any(kept.get(name) == digest for name, digest in agents.items()):
            ids.append(session_id)
            # One that ran nothing shows nothing new of the revision.
            sessions += profile != "release"
        elif source == "sweep":
            # Its trials may be of several revisions: each says its own.
            sweeps.append(session_id)
    by_agent = or_(
        *(and_(A.agent == name, A.agent_digest == digest) for name, digest in sorted(agents.items())), false()
    )
    parts: list[ColumnElement[bool]] = [A.session_id.in_(some) for some in chunks(ids)]
    parts += [and_(A.session_id.in_(some), by_agent) for some in chunks(sweeps)]
    attempts = invalidated = 0
    for part in parts:
        made, set_aside = connection.execute(select(func.count(), func.count(A.invalidated_at)).where(part)).one()
        attempts, invalidated = attempts + made, invalidated + set_aside
    return Held(sessions=sessions, attempts=attempts, invalidated=invalidated)
