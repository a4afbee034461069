"""The state of a case, from what its file records and whether its symptom came back.

Knows the order of a case's own records and nothing of ledgers or digests: the caller says whether the live rows
since the last claimed fix show a recurrence.
"""

from datetime import UTC, datetime

from pytest_regcase.records.case import Fix, RegressionCase
from pytest_regcase.records.words import CaseState

_STATES: tuple[CaseState, ...] = ("verifying", "closed", "regressed", "retired")
"""What a fix, a close, a reopening and retiring make of a case. Within one second they come in this order: a close
follows the fix it closes, a reopening the close it undoes, and retiring all."""


def case_state(case: RegressionCase, *, recurred: bool) -> CaseState:
    """Return the state that the latest of fix, closed, reopened and retired gives; a recurrence makes it
    `regressed`, unless the case is retired.

    Without a claimed fix a case stays `open`, whatever its live runs show. `reopened` stands in the file so that a
    clone without the ledger does not read a regressed case as closed. A retired case stays retired until it is
    reopened or a fix is claimed.
    """
    latest = _latest(case)
    if latest is None:
        return "open"
    return "regressed" if recurred and latest != "retired" else latest


def is_retired(case: RegressionCase) -> bool:
    """Say whether the case is out of service: nothing of it is run, and nothing of it is judged."""
    return _latest(case) == "retired"


def is_closed(case: RegressionCase) -> bool:
    """Say whether its file has the case closed, whatever came after that in the ledger."""
    return _latest(case) == "closed"


def last_fix(case: RegressionCase) -> Fix | None:
    """Return the fix that counts are about: the one with the highest number."""
    return max(case.fix, key=lambda each: each.number, default=None)


def in_utc(at: datetime) -> datetime:
    """Return `at` in UTC; a date-time without an offset is read as UTC."""
    return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC)


def _latest(case: RegressionCase) -> CaseState | None:
    """What the latest record makes of the case; None where it has none."""
    times = (
        [each.at for each in case.fix],
        [each.at for each in case.closed],
        [each.at for each in case.reopened],
        [each.at for each in case.retired],
    )
    events = [(in_utc(at), rank) for rank, made in enumerate(times) for at in made]
    return _STATES[max(events)[1]] if events else None
