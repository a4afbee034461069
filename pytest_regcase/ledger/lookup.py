"""What a gate asks of a ledger, so that it answers over a million rows: by digest, by time, never all of a case.

Order here is time (then session, run, try), not `seq`: ledgers that were merged in another order give the same.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache, partial
from typing import Any, Literal, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    String,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
)

from pytest_regcase.ledger.columns import time_of
from pytest_regcase.ledger.late import COUNTER, late_changes
from pytest_regcase.ledger.prepared import Prepared
from pytest_regcase.ledger.schema import ATTEMPTS, DRAWS, FOLDS, META, SOURCES
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptRecord, Digests
from pytest_regcase.records.words import AttemptVerdict, InconclusiveReason

A = ATTEMPTS.c
_VALID = A.invalidated_at.is_(None)
_AT_ONCE = 500
_FEW = 3


class Since(NamedTuple):
    """Behind which row of which ledger, or from when on, a row counts."""

    ledger_id: str
    rows: int
    at: datetime
    """For rows that were made on another ledger than that one."""
    at_hand: bool
    """This is that ledger, or a merge that holds all its `rows`. Else only `at` counts."""


class LiveAttempt(NamedTuple):
    """A live row, and whether it came after the fix."""

    seq: int
    record: AttemptRecord
    after: bool


class SetAside(NamedTuple):
    """How many live rows since the fix have other digests, and how many of these show the symptom."""

    rows: int
    recurred: int


class CheckAttempt(NamedTuple):
    """What a flake rate needs of one attempt of a control or simulation."""

    case_id: str
    agent: str
    scenario: str
    session_id: str
    try_number: int
    digests: Digests
    started_at: datetime
    verdict: AttemptVerdict
    reason: InconclusiveReason | None


class Fold(NamedTuple):
    """What all checks of a case that began before a time say together, in the words of who folded them."""

    before: datetime
    history: str


class Checks(NamedTuple):
    """The checks of a case by one agent: those that were folded, and the rows since."""

    fold: Fold | None
    rows: list[CheckAttempt]
    changes: int
    """For `save_fold`: what had changed in rows of a time long ago when these were read."""


def held_rows(ledger: Ledger) -> dict[str, int]:
    """Return how many rows this ledger has, and had each one that was merged into it, by the ledger's id."""
    rows = ledger.database.read(lambda connection: connection.execute(select(SOURCES)).all())
    return {row.ledger_id: row.rows for row in rows} | {ledger.ledger_id: ledger.row_count()}


def since_fix(held: Mapping[str, int], *, ledger_id: str, rows: int, at: datetime) -> Since:
    """Return which rows are those since a fix that was claimed on `ledger_id` when that had `rows`."""
    return Since(ledger_id, rows, at, ledger_id in held and rows <= held[ledger_id])


def live_attempts(ledger: Ledger, case_id: str, agent: str, digests: Digests, since: Since) -> list[LiveAttempt]:
    """Return the live rows of the case by that agent on these digests, oldest first, and all of any agent and
    digests that share a draw with one of them.
    """
    given = _given(case_id, agent, "live", digests) | _since(since)
    place = _place(_kind(ledger, since))

    def read(connection: Connection) -> dict[int, tuple[Any, ...]]:
        found = {row.seq: tuple(row) for row in connection.execute(place.where(_ARE_THESE), given)}
        same_draw = {
            seq
            for numbers in _parts(list(found))
            for seq in connection.execute(_SHARED.where(_MINE.c.seq.in_(numbers))).scalars()
        }
        for numbers in _parts(sorted(same_draw - found.keys())):
            others = connection.execute(place.where(A.seq.in_(numbers)), _since(since))
            found.update((row.seq, tuple(row)) for row in others)
        return found

    rows = sorted(ledger.database.read(read).values(), key=lambda row: row[3:])
    return [
        LiveAttempt(seq, AttemptRecord.model_validate_json(record), bool(after)) for seq, record, after, *_ in rows
    ]


def set_aside(ledger: Ledger, case_id: str, agent: str, digests: Digests, since: Since) -> SetAside:
    """Count the live rows of the case by that agent since the fix that have other digests."""
    given = _given(case_id, agent, "live", digests) | _since(since)
    query = _count_of_others(_kind(ledger, since))
    rows, recurred = ledger.database.read(lambda connection: tuple(connection.execute(query, given).one()))
    return SetAside(int(rows), int(recurred))


def newest(
    ledger: Ledger, case_id: str, agent: str, scenarios: Mapping[str, Digests]
) -> dict[str, Iterator[AttemptRecord]]:
    """Return for each scenario its attempts on these digests, the newest first; reads more if asked on."""
    given = {name: _given(case_id, agent, name, digests) for name, digests in scenarios.items()}
    first = ledger.database.read(
        lambda connection: {name: _records(connection, each, 0, _FEW) for name, each in given.items()}
    )
    return {name: _all_records(ledger, given[name], found) for name, found in first.items()}


def _all_records(ledger: Ledger, given: Mapping[str, Any], first: list[str]) -> Iterator[AttemptRecord]:
    found, start, size = first, 0, _FEW
    while True:
        yield from map(AttemptRecord.model_validate_json, found)
        if len(found) < size:
            return
        start, size = start + size, _AT_ONCE
        found = ledger.database.read(partial(_records, given=given, start=start, size=size))


def _records(connection: Connection, given: Mapping[str, Any], start: int, size: int) -> list[str]:
    return [row[0] for row in _NEWEST.rows(connection, {**given, "start": start, "size": size})]


def checks(ledger: Ledger, case_id: str, agent: str) -> Checks:
    """Return what is folded of the case's checks by that agent, and the rows since, oldest first."""
    given = {"case_id": case_id, "agent": agent}

    def read(connection: Connection) -> Checks:
        changes, before, history = connection.execute(_FOLDED, given).one()
        found = connection.execute(_CHECKS, given | {"since": before or ""})
        digests: dict[tuple[str, ...], Digests] = {}
        made = []
        for scenario, session_id, number, *parts, started_at, verdict, reason in found:
            known = digests.get(tuple(parts))
            if known is None:
                names = ("case", "simulation", "agent", "model")
                known = digests[tuple(parts)] = Digests(**dict(zip(names, parts, strict=True)))
            at = datetime.fromisoformat(started_at)
            made.append(CheckAttempt(case_id, agent, scenario, session_id, number, known, at, verdict, reason))
        fold = None if before is None else Fold(datetime.fromisoformat(before), history)
        return Checks(fold, made, int(changes))

    return ledger.database.read(read)


def save_fold(ledger: Ledger, case_id: str, agent: str, fold: Fold, *, changes: int) -> bool:
    """Keep a fold, in place of the one before.

    Return False, and keep nothing, where rows of a time long ago came or were invalidated since it was read.
    """

    def save(connection: Connection) -> bool:
        if late_changes(connection, lock=ledger.database.is_server) != changes:
            return False
        connection.execute(delete(FOLDS).where(FOLDS.c.case_id == case_id, FOLDS.c.agent == agent))
        values = {"case_id": case_id, "agent": agent, "before": time_of(fold.before), "history": fold.history}
        connection.execute(insert(FOLDS), values)
        return True

    return ledger.database.write("fold old checks in", save, alone=True)


# The statements are made once: to make one costs more than to run it.

_Kind = Literal["by-time", "here", "merged"]


def _given(case_id: str, agent: str, scenario: str, digests: Digests) -> dict[str, Any]:
    return {
        "case_id": case_id,
        "agent": agent,
        "scenario": scenario,
        "of_case": digests.case,
        "of_simulation": digests.simulation,
        "of_agent": digests.agent,
        "of_model": digests.model,
    }


def _since(since: Since) -> dict[str, Any]:
    return {"fix_at": time_of(since.at), "fix_rows": since.rows, "fix_ledger": since.ledger_id}


def _kind(ledger: Ledger, since: Since) -> "_Kind":
    if not since.at_hand:
        return "by-time"
    return "here" if since.ledger_id == ledger.ledger_id else "merged"


def _after(kind: "_Kind") -> ColumnElement[bool]:
    by_time: ColumnElement[bool] = A.started_at >= bindparam("fix_at")
    if kind == "by-time":
        return by_time
    if kind == "here":
        made_here = and_(A.home_ledger.is_(None), A.seq > bindparam("fix_rows"))
        return or_(made_here, and_(A.home_ledger.is_not(None), by_time))
    from_there = and_(A.home_ledger.is_not(None), A.home_ledger == bindparam("fix_ledger"))
    return or_(and_(from_there, A.home_row > bindparam("fix_rows")), and_(~from_there, by_time))


@cache
def _place(kind: "_Kind") -> Select[Any]:
    after = _after(kind).label("after")
    return select(A.seq, A.record, after, A.started_at, A.session_id, A.run, A["try"]).where(_VALID)


@cache
def _count_of_others(kind: "_Kind") -> Select[Any]:
    recurred = func.coalesce(func.sum(case((A.verdict == "recurred", 1), else_=0)), 0)
    return select(func.count(), recurred).where(_VALID, _OF_SCENARIO, ~_DIGESTS, _after(kind))


_OF_SCENARIO = and_(
    A.case_id == bindparam("case_id"), A.scenario == bindparam("scenario"), A.agent == bindparam("agent")
)
_DIGESTS = and_(
    A.case_digest == bindparam("of_case"),
    A.agent_digest == bindparam("of_agent"),
    # No digest is a digest too: NULL must be no third truth where this is negated.
    A.simulation_digest.is_not_distinct_from(bindparam("of_simulation", type_=String())),
    A.model_digest.is_not_distinct_from(bindparam("of_model", type_=String())),
)
_ARE_THESE = and_(_OF_SCENARIO, _DIGESTS)
_NEWEST = Prepared(
    select(A.record)
    .where(_VALID, _ARE_THESE)
    .order_by(A.started_at.desc(), A.session_id.desc(), A["try"].desc(), A.run.desc())
    .limit(bindparam("size", type_=Integer()))
    .offset(bindparam("start", type_=Integer()))
)
"""A case asks this for each of its simulations."""
_MINE, _OTHER = DRAWS.alias("mine"), DRAWS.alias("other")
_SHARED = (
    select(_OTHER.c.seq)
    .join_from(
        _MINE,
        _OTHER,
        and_(_MINE.c.case_id == _OTHER.c.case_id, _MINE.c.token == _OTHER.c.token, _MINE.c.seq != _OTHER.c.seq),
    )
    .distinct()
)
_FOLDED = (
    select(META.c.value, FOLDS.c.before, FOLDS.c.history)
    .select_from(
        META.outerjoin(FOLDS, and_(FOLDS.c.case_id == bindparam("case_id"), FOLDS.c.agent == bindparam("agent")))
    )
    .where(META.c.name == COUNTER)
)
_CHECKS = (
    select(
        A.scenario,
        A.session_id,
        A["try"],
        A.case_digest,
        A.simulation_digest,
        A.agent_digest,
        A.model_digest,
        A.started_at,
        A.verdict,
        A.reason,
    )
    .where(
        A.case_id == bindparam("case_id"),
        A.agent == bindparam("agent"),
        A.started_at >= bindparam("since"),
        A.scenario != "live",
        _VALID,
    )
    .order_by(A.started_at, A.session_id, A["try"])
)


def _parts(numbers: list[int]) -> list[list[int]]:
    return [numbers[start : start + _AT_ONCE] for start in range(0, len(numbers), _AT_ONCE)]
