"""A project whose case has first attempts on many days, written into its ledger in one go.

The budget is 10 % at a risk of 30 %: 4 failures in 20 first attempts show that it is exceeded, 12 clean ones let
a case out again.
"""

from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from pytest_regcase.ledger.columns import attempt_columns
from pytest_regcase.records.attempt import AttemptRecord, Digests
from pytest_regcase.records.words import AttemptVerdict
from tests.rules.attempt_samples import an_attempt
from tests.session.case_life.stories import CASE, ID, LifeProject, make_life_project

SIMULATION = "deadline-no-answer-v1"
FIRST_DAY: Final = date(2026, 5, 1)
FLAKY: Final = "p" * 4 + "fpppp" * 4
"""24 first attempts, one a day; 4 fail, and their confirm runs pass."""
_TRIES: Final[dict[str, tuple[AttemptVerdict, ...]]] = {
    "p": ("recovered",),
    "f": ("not-recovered", "recovered", "recovered"),
    "b": ("not-recovered", "not-recovered", "not-recovered"),
    "u": ("inconclusive",),
}


def make_flaky_project(root: Path, *more: str, case: str = CASE) -> LifeProject:
    """Write the project; `more` are further lines of its configuration."""
    return make_life_project(root, case, ['flake_budget = "0.10"', *more])


def days(
    life: LifeProject,
    outcomes: str,
    *,
    first: date = FIRST_DAY,
    agent: str = "a1",
    scenario: str = SIMULATION,
    case_id: str = ID,
    by: str = "default",
) -> date:
    """Store one session a day: p passed, f failed and confirm runs passed, b failed thrice, u proved nothing.

    Return the day after the last one.
    """
    records = [
        each
        for number, outcome in enumerate(outcomes)
        for each in _session(first + timedelta(days=number), outcome, agent, scenario, case_id, by)
    ]

    def store(connection: Connection) -> None:
        for record in records:
            assert ledger.insert(connection, record, attempt_columns(record))

    with life.ledger() as ledger:
        ledger.database.write("store", store)
    return first + timedelta(days=len(outcomes))


def _session(day: date, outcome: str, agent: str, scenario: str, case_id: str, by: str) -> list[AttemptRecord]:
    at = datetime.combine(day, time(9), UTC)
    return [
        an_attempt(
            verdict,
            scenario,
            case_id=case_id,
            agent=by,
            try_number=number,
            session_id=f"s-{day}",
            started_at=at + timedelta(minutes=number),
            digests=Digests(case="c", simulation="s", agent=agent),
        )
        for number, verdict in enumerate(_TRIES[outcome])
    ]
