"""When checks were attempted last, and how long attempts took: what a session with few minutes is planned from."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, String, bindparam, select

from pytest_regcase.ledger.schema import ATTEMPTS
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.words import AttemptVerdict

A = ATTEMPTS.c
_SAYS_SOMETHING = A.invalidated_at.is_(None) & (A.verdict != "inconclusive")
_AT_MOST = 200
"""So many of a case's newest rows are looked at: enough for the times, few enough for a session's start."""


class LastTime(NamedTuple):
    """The last session in which a check was attempted."""

    at: datetime
    """When the last attempt began that says something."""
    verdicts: tuple[AttemptVerdict, ...]
    """Of all tries of that session, in their order."""
    crashed: bool
    """One of them was a worker crash."""


def last_attempt(
    ledger: Ledger, *, case_id: str, scenario: str, case_digest: str, simulation_digest: str | None
) -> LastTime | None:
    """Return when that check was last attempted with that content, by whichever agent, and what it showed; None:
    never.

    An attempt that proved nothing is none.
    """
    given = {"case_id": case_id, "scenario": scenario, "of_case": case_digest, "of_simulation": simulation_digest}

    def work(connection: Connection) -> LastTime | None:
        last = connection.execute(_LAST, given).first()
        if last is None:
            return None
        tries = connection.execute(_TRIES, {**given, "session_id": last.session_id, "agent": last.agent}).all()
        crashed = any(each.reason == "worker-crashed" for each in tries)
        return LastTime(datetime.fromisoformat(last.started_at), tuple(each.verdict for each in tries), crashed)

    return ledger.database.read(work)


def mean_seconds(ledger: Ledger, case_id: str, agent: str) -> Mapping[str, float]:
    """Return by scenario how long the newest attempts of the case by that agent took in the mean, in real seconds.

    Only scenarios that were attempted are there; attempts that proved nothing do not count.
    """
    given: dict[str, Any] = {"case_id": case_id, "agent": agent}
    times: dict[str, list[float]] = {}
    for scenario, seconds in ledger.database.read(lambda connection: connection.execute(_TIMES, given).all()):
        times.setdefault(scenario, []).append(seconds)
    return {name: sum(each) / len(each) for name, each in times.items()}


_OF_CHECK = (
    A.case_digest == bindparam("of_case"),
    A.case_id == bindparam("case_id"),
    A.scenario == bindparam("scenario"),
    A.simulation_digest.is_not_distinct_from(bindparam("of_simulation", type_=String())),
)
_LAST = (
    select(A.session_id, A.agent, A.started_at)
    .where(*_OF_CHECK, _SAYS_SOMETHING)
    .order_by(A.started_at.desc(), A.seq.desc())
    .limit(1)
)
_TRIES = (
    select(A.verdict, A.reason)
    .where(
        *_OF_CHECK,
        A.session_id == bindparam("session_id"),
        A.agent == bindparam("agent"),
        A.invalidated_at.is_(None),
    )
    .order_by(A["try"])
)
_TIMES = (
    select(A.scenario, A.duration_seconds)
    .where(A.case_id == bindparam("case_id"), A.agent == bindparam("agent"), _SAYS_SOMETHING)
    .order_by(A.started_at.desc(), A.seq.desc())
    .limit(_AT_MOST)
)
