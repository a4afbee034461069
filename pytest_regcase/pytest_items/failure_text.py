"""The few lines that a failed item shows: what broke and by what facts, never a traceback of ours."""

from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.case import Quarantine
from pytest_regcase.reporters.layout import inert_lines, one_line, printable


def attempt_lines(record: AttemptRecord, standing: str) -> list[str]:
    """Return the lines of one attempt; `standing` says what it means for the check."""
    lines = [f"{record.case_id} {record.scenario}, {_which(record)}: {outcome(record)}; {standing}"]
    # What proves nothing has findings too, but they follow from whatever went wrong.
    broken = record.broken if record.reason is None else ()
    lines += [f"  {each.expectation}: {one_line(each.says)}" for each in broken]
    if record.says is not None and not broken:
        lines += [f"  {printable(line)}" for line in inert_lines(record.says)]
    if record.folder is not None:
        lines.append(f"  attempt: {record.folder}")
    return lines


def outcome(record: AttemptRecord) -> str:
    """Return the verdict in words; what proves nothing says why by its slug."""
    if record.reason is not None:
        return f"inconclusive ({record.reason})"
    return record.verdict


def quarantined_text(record: AttemptRecord, quarantine: Quarantine) -> str:
    """Return why a failed attempt of a quarantined case is shown as skipped."""
    return (
        f"{record.case_id} {record.scenario}: {outcome(record)}, quarantined until {quarantine.expires}"
        f" (owner {quarantine.owner}): {quarantine.reason}"
    )


def _which(record: AttemptRecord) -> str:
    if record.scenario == "live":
        return f"run {record.run}"
    return "first try" if record.try_number == 0 else f"try {record.try_number + 1}"
