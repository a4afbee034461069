"""What a gate asks of a ledger, so that it answers over a million rows: by digest, by time, never all of a case.

Order here is time (then session, run, try), not `seq`: ledgers that were merged in another order give the same.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, case, delete, func, insert, or_, select

from pytest_regcase.ledger.columns import time_of
from pytest_regcase.ledger.late import late_changes
from pytest_regcase.ledger.schema import ATTEMPTS, DRAWS, FOLDS, SOURCES
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptRecord, Digests
from pytest_regcase.records.words import AttemptVerdict, InconclusiveReason

A = ATTEMPTS.c
_VALID = A.invalidated_at.is_(None)
_AT_ONCE = 500
_FEW = 4


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


def since_fix(ledger: Ledger, *, ledger_id: str, rows: int, at: datetime) -> Since:
    """Return which rows are those since a fix that was claimed on `ledger_id` when that had `rows`."""
    if ledger_id == ledger.ledger_id:
        return Since(ledger_id, rows, at, rows <= ledger.row_count())
    held = select(SOURCES.c.rows).where(SOURCES.c.ledger_id == ledger_id)
    found = ledger.database.read(lambda connection: connection.execute(held).scalar())
    return Since(ledger_id, rows, at, found is not None and rows <= found)


def live_attempts(ledger: Ledger, case_id: str, agent: str, digests: Digests, since: Since) -> list[LiveAttempt]:
    """Return the live rows of the case by that agent on these digests, oldest first, and all of any agent and
    digests that share a draw with one of them.
    """
    place = (A.seq, A.record, _after(ledger, since).label("after"), A.started_at, A.session_id, A.run, A["try"])
    present = select(*place).where(
        A.case_id == case_id, A.scenario == "live", A.agent == agent, _VALID, _are(digests)
    )
    mine, other = DRAWS.alias("mine"), DRAWS.alias("other")
    shared = (
        select(other.c.seq)
        .join_from(
            mine,
            other,
            and_(mine.c.case_id == other.c.case_id, mine.c.token == other.c.token, mine.c.seq != other.c.seq),
        )
        .distinct()
    )

    def read(connection: Connection) -> dict[int, tuple[Any, ...]]:
        found = {row.seq: tuple(row) for row in connection.execute(present)}
        same_draw = {
            seq
            for numbers in _parts(list(found))
            for seq in connection.execute(shared.where(mine.c.seq.in_(numbers))).scalars()
        }
        for numbers in _parts(sorted(same_draw - found.keys())):
            others = connection.execute(select(*place).where(A.seq.in_(numbers), _VALID))
            found.update((row.seq, tuple(row)) for row in others)
        return found

    rows = sorted(ledger.database.read(read).values(), key=lambda row: row[3:])
    return [
        LiveAttempt(seq, AttemptRecord.model_validate_json(record), bool(after)) for seq, record, after, *_ in rows
    ]


def set_aside(ledger: Ledger, case_id: str, agent: str, digests: Digests, since: Since) -> SetAside:
    """Count the live rows of the case by that agent since the fix that have other digests."""
    query = select(func.count(), func.coalesce(func.sum(case((A.verdict == "recurred", 1), else_=0)), 0)).where(
        A.case_id == case_id,
        A.scenario == "live",
        A.agent == agent,
        _VALID,
        ~_are(digests),
        _after(ledger, since),
    )
    rows, recurred = ledger.database.read(lambda connection: tuple(connection.execute(query).one()))
    return SetAside(int(rows), int(recurred))


def newest(ledger: Ledger, case_id: str, agent: str, scenario: str, digests: Digests) -> Iterator[AttemptRecord]:
    """Yield the attempts of one scenario on these digests, the newest first; reads more where they are taken."""
    query = (
        select(A.record)
        .where(A.case_id == case_id, A.scenario == scenario, A.agent == agent, _VALID, _are(digests))
        .order_by(A.started_at.desc(), A.session_id.desc(), A["try"].desc(), A.run.desc())
    )
    start, size = 0, _FEW
    while True:
        part = query.offset(start).limit(size)
        found = ledger.database.read(lambda connection, part=part: list(connection.execute(part).scalars()))  # type: ignore[misc]
        yield from map(AttemptRecord.model_validate_json, found)
        if len(found) < size:
            return
        start, size = start + size, _AT_ONCE


def checks(ledger: Ledger, case_id: str, agent: str) -> Checks:
    """Return what is folded of the case's checks by that agent, and the rows since, oldest first."""
    folded = select(FOLDS.c.before, FOLDS.c.history).where(FOLDS.c.case_id == case_id, FOLDS.c.agent == agent)
    columns = (
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
    rows = (
        select(*columns)
        .where(A.case_id == case_id, A.agent == agent, A.scenario != "live", _VALID)
        .order_by(A.started_at, A.session_id, A["try"])
    )

    def read(connection: Connection) -> Checks:
        changes = late_changes(connection)
        fold = connection.execute(folded).one_or_none()
        found = connection.execute(rows if fold is None else rows.where(A.started_at >= fold.before))
        digests: dict[tuple[str, ...], Digests] = {}
        made = []
        for scenario, session_id, number, *parts, started_at, verdict, reason in found:
            known = digests.get(tuple(parts))
            if known is None:
                names = ("case", "simulation", "agent", "model")
                known = digests[tuple(parts)] = Digests(**dict(zip(names, parts, strict=True)))
            at = datetime.fromisoformat(started_at)
            made.append(CheckAttempt(case_id, agent, scenario, session_id, number, known, at, verdict, reason))
        before = None if fold is None else Fold(datetime.fromisoformat(fold.before), fold.history)
        return Checks(before, made, changes)

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


def _are(digests: Digests) -> ColumnElement[bool]:
    return and_(
        A.case_digest == digests.case,
        A.agent_digest == digests.agent,
        _equal(A.simulation_digest, digests.simulation),
        _equal(A.model_digest, digests.model),
    )


def _equal(column: ColumnElement[str], value: str | None) -> ColumnElement[bool]:
    # NULL where it is negated must be no third truth: a row with another digest is "not these".
    return column.is_(None) if value is None else and_(column.is_not(None), column == value)


def _after(ledger: Ledger, since: Since) -> ColumnElement[bool]:
    by_time: ColumnElement[bool] = A.started_at >= time_of(since.at)
    if not since.at_hand:
        return by_time
    if since.ledger_id == ledger.ledger_id:
        return or_(and_(A.home_ledger.is_(None), A.seq > since.rows), and_(A.home_ledger.is_not(None), by_time))
    from_there = and_(A.home_ledger.is_not(None), A.home_ledger == since.ledger_id)
    return or_(and_(from_there, A.home_row > since.rows), and_(~from_there, by_time))


def _parts(numbers: list[int]) -> list[list[int]]:
    return [numbers[start : start + _AT_ONCE] for start in range(0, len(numbers), _AT_ONCE)]
