"""The state of a case, from what its file records and whether its symptom came back.

Knows the order of a case's own records and nothing of ledgers or digests: the caller says whether the live rows
since the last claimed fix show a recurrence.
"""

from datetime import UTC, datetime

from pytest_regcase.records.case import Fix, RegressionCase
from pytest_regcase.records.words import CaseState


def case_state(case: RegressionCase, *, recurred: bool) -> CaseState:
    """Return the state that the latest of fix, closed, reopened and retired gives; a recurrence makes the first two
    `regressed`.

    Without a claimed fix a case stays `open`, whatever its live runs show. `reopened` stands in the file so that a
    clone without the ledger does not read a regressed case as closed. A retired case stays retired until it is
    reopened or a fix is claimed.
    """
    latest = _latest(case)
    if latest is None:
        return "open"
    if latest == "retired":
        return "retired"
    if latest == "reopened" or recurred:
        return "regressed"
    return "verifying" if latest == "fix" else "closed"


def is_retired(case: RegressionCase) -> bool:
    """Say whether the case is out of service: nothing of it is run, and nothing of it is judged."""
    return _latest(case) == "retired"


def last_fix(case: RegressionCase) -> Fix | None:
    """Return the fix that counts are about: the one with the highest number."""
    return max(case.fix, key=lambda each: each.number, default=None)


def in_utc(at: datetime) -> datetime:
    """Return `at` in UTC; a date-time without an offset is read as UTC."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _latest(case: RegressionCase) -> str | None:
    # Within one second, a close follows the fix it closes, a reopening the close it undoes, and retiring all.
    events = [
        *((in_utc(each.at), 0, "fix") for each in case.fix),
        *((in_utc(each.at), 1, "closed") for each in case.closed),
        *((in_utc(each.at), 2, "reopened") for each in case.reopened),
        *((in_utc(each.at), 3, "retired") for each in case.retired),
    ]
    return max(events)[2] if events else None
