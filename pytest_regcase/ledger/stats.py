"""What a ledger holds, in numbers. Reads every row once; knows no rule."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, func, select

from pytest_regcase.ledger.engine import shown
from pytest_regcase.ledger.schema import ATTEMPTS, DECISIONS, SCHEMA_VERSION, SESSIONS, SOURCES, TRANSITIONS
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.ledger.versions import versions_of

A = ATTEMPTS.c


@dataclass(frozen=True)
class LedgerStats:
    """The numbers of one ledger."""

    place: str
    """Its file, or its URL without the password."""
    ledger_id: str
    schema: int
    attempts: int
    """All rows, the invalidated ones too."""
    invalidated: int
    verdicts: dict[str, dict[str, int]]
    """Kind of scenario -> verdict -> rows that are valid."""
    cases: int
    sessions: int
    unfinished: int
    """Sessions without an end: killed, interrupted, or still running."""
    transitions: int
    decisions: int
    active: str | None
    """The revision that was made active last."""
    merged_from: tuple[str, ...]
    """Ids of the ledgers that were merged into this one."""
    oldest: str | None
    newest: str | None
    file_bytes: int | None
    """None for a server."""


def ledger_stats(ledger: Ledger) -> LedgerStats:
    """Count what the ledger holds.

    Raises:
        LedgerError: it cannot be read.
    """
    return ledger.database.read(lambda connection: _read(ledger, connection))


def session_starts(ledger: Ledger) -> dict[str, str]:
    """Return when each session began, by its id."""
    query = select(SESSIONS.c.session_id, SESSIONS.c.started_at)
    return ledger.database.read(lambda connection: {row[0]: row[1] for row in connection.execute(query)})


def _read(ledger: Ledger, connection: Connection) -> LedgerStats:
    def one(query: object) -> int:
        return int(connection.execute(query).scalar() or 0)  # type: ignore[call-overload]

    groups = select(A.scenario, A.verdict, A.invalidated_at.is_not(None), func.count()).group_by(
        A.scenario, A.verdict, A.invalidated_at.is_not(None)
    )
    verdicts: dict[str, dict[str, int]] = {}
    attempts = invalidated = 0
    for scenario, verdict, is_invalid, count in connection.execute(groups):
        attempts += count
        if is_invalid:
            invalidated += count
            continue
        kind = scenario if scenario in ("control", "live") else "simulation"
        of_kind = verdicts.setdefault(kind, {})
        of_kind[verdict] = of_kind.get(verdict, 0) + count
    oldest, newest = connection.execute(select(func.min(A.started_at), func.max(A.started_at))).one()
    url = ledger.database.url
    file = None if ledger.database.is_server or url.database is None else Path(url.database)
    return LedgerStats(
        place=shown(url),
        ledger_id=ledger.ledger_id,
        schema=SCHEMA_VERSION,
        attempts=attempts,
        invalidated=invalidated,
        verdicts={kind: dict(sorted(found.items())) for kind, found in sorted(verdicts.items())},
        cases=one(select(func.count(A.case_id.distinct()))),
        sessions=one(select(func.count()).select_from(SESSIONS)),
        unfinished=one(select(func.count()).select_from(SESSIONS).where(SESSIONS.c.finished_at.is_(None))),
        transitions=one(select(func.count()).select_from(TRANSITIONS)),
        decisions=one(select(func.count()).select_from(DECISIONS)),
        active=active[-1].active if (active := versions_of(connection)) else None,
        merged_from=tuple(connection.execute(select(SOURCES.c.ledger_id).order_by(SOURCES.c.ledger_id)).scalars()),
        oldest=oldest,
        newest=newest,
        file_bytes=file.stat().st_size if file is not None and file.is_file() else None,
    )


def cases_with_failed_checks(ledger: Ledger) -> frozenset[str]:
    """Return the ids of the cases of which any check ever failed: nothing is to be told of the flaking of others.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    query = select(A.case_id).where(A.verdict == "not-recovered", A.invalidated_at.is_(None)).distinct()
    return frozenset(ledger.database.read(lambda connection: list(connection.execute(query).scalars())))
