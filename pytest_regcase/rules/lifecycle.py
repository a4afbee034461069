"""The state of a case, from what its file records and whether its symptom came back.

Knows the order of a case's own records and nothing of ledgers or digests: the caller says whether the present
digests show a recurrence since the last claimed fix.
"""

from datetime import UTC, datetime

from pytest_regcase.records.case import Fix, RegressionCase
from pytest_regcase.records.words import CaseState


def case_state(case: RegressionCase, *, recurred: bool, retired: bool = False) -> CaseState:
    """Return the state that the latest of fix, closed and reopened gives; a recurrence makes either `regressed`.

    Without a claimed fix a case stays `open`, whatever its live runs show. `reopened` stands in the file so that a
    clone without the ledger does not read a regressed case as closed.
    """
    if retired:
        return "retired"
    latest = _latest(case)
    if latest is None:
        return "open"
    if latest == "reopened" or recurred:
        return "regressed"
    return "verifying" if latest == "fix" else "closed"


def last_fix(case: RegressionCase) -> Fix | None:
    """Return the fix that counts are about: the one with the highest number."""
    return max(case.fix, key=lambda each: each.number, default=None)


def in_utc(at: datetime) -> datetime:
    """Return `at` in UTC; a date-time without an offset is read as UTC."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _latest(case: RegressionCase) -> str | None:
    # Within one second, a close follows the fix it closes and a reopening the close it undoes.
    events = [
        *((in_utc(each.at), 0, "fix") for each in case.fix),
        *((in_utc(each.at), 1, "closed") for each in case.closed),
        *((in_utc(each.at), 2, "reopened") for each in case.reopened),
    ]
    return max(events)[2] if events else None
