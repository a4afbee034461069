"""When checks were attempted last, and how long attempts took: what a session with few minutes is planned from."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import String, bindparam, func, select

from pytest_regcase.ledger.schema import ATTEMPTS
from pytest_regcase.ledger.store import Ledger

A = ATTEMPTS.c
_SAYS_SOMETHING = A.invalidated_at.is_(None) & (A.verdict != "inconclusive")
_AT_MOST = 200
"""So many of a case's newest rows are looked at: enough for the times, few enough for a session's start."""


def last_attempt(
    ledger: Ledger, *, case_id: str, scenario: str, case_digest: str, simulation_digest: str | None
) -> datetime | None:
    """Return when that check was last attempted with that content, by whichever agent; None: never.

    An attempt that proved nothing is none.
    """
    given = {"case_id": case_id, "scenario": scenario, "of_case": case_digest, "of_simulation": simulation_digest}
    found = ledger.database.read(lambda connection: connection.execute(_LAST, given).scalar())
    return None if found is None else datetime.fromisoformat(found)


def mean_seconds(ledger: Ledger, case_id: str, agent: str) -> Mapping[str, float]:
    """Return by scenario how long the newest attempts of the case by that agent took in the mean, in real seconds.

    Only scenarios that were attempted are there; attempts that proved nothing do not count.
    """
    given: dict[str, Any] = {"case_id": case_id, "agent": agent}
    times: dict[str, list[float]] = {}
    for scenario, seconds in ledger.database.read(lambda connection: connection.execute(_TIMES, given).all()):
        times.setdefault(scenario, []).append(seconds)
    return {name: sum(each) / len(each) for name, each in times.items()}


_LAST = select(func.max(A.started_at)).where(
    A.case_digest == bindparam("of_case"),
    A.case_id == bindparam("case_id"),
    A.scenario == bindparam("scenario"),
    A.simulation_digest.is_not_distinct_from(bindparam("of_simulation", type_=String())),
    _SAYS_SOMETHING,
)
_TIMES = (
    select(A.scenario, A.duration_seconds)
    .where(A.case_id == bindparam("case_id"), A.agent == bindparam("agent"), _SAYS_SOMETHING)
    .order_by(A.started_at.desc(), A.seq.desc())
    .limit(_AT_MOST)
)
