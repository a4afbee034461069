"""What is done to a case in its life, in the case file and in the ledger: who, when, why. Appends, never rewrites.

Knows the order of a case's own records; whether a claim holds is for the rules to say. Never prints.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pytest_regcase.case_files import LoadedCase, append_record, load_case
from pytest_regcase.config import Project
from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.case import RegressionCase, Reopened, Retired
from pytest_regcase.records.session import Transition
from pytest_regcase.records.words import CaseState, TransitionKind
from pytest_regcase.redaction import Redactor, numbers_taken
from pytest_regcase.rules.lifecycle import case_state, in_utc
from pytest_regcase.session.project.who import who_acts
from pytest_regcase.toml_lines import shown


@dataclass(frozen=True)
class Appended:
    """What was written to a case file."""

    path: Path
    case_id: str
    state: CaseState
    """What the file makes of the case now; the ledger may know of a recurrence."""
    at: datetime
    by: str
    notices: tuple[str, ...] = ()


def reopen_case(
    project: Project, path: Path, *, why: str, by: str | None = None, at: datetime | None = None
) -> Appended:
    """Append a ``[[reopened]]`` to the case file `path`: from here on it is regressed, until a fix is claimed.

    Raises:
        UsageRefused: there is nothing to reopen, or nobody can be named as who does it.
        FileError, WriteError: the case is not right as it is, or its file cannot be written.
        LedgerError: the ledger cannot be opened.
    """
    loaded = load_case(path)
    state = case_state(loaded.case, recurred=False)
    if state == "open":
        raise UsageRefused(
            f"Couldn't reopen {loaded.id}: it is open, and was never closed.\nWhen there is a fix:"
            f" regcase fix {loaded.id}"
        )
    if state == "regressed":
        last = max(loaded.case.reopened, key=lambda each: in_utc(each.at))
        raise UsageRefused(
            f"Couldn't reopen {loaded.id}: {last.by} did on {day(last.at)} ({last.why}), and no fix has been"
            f" claimed since.\nWhen there is one: regcase fix {loaded.id}"
        )
    by = by or who_acts(project.root, "who reopens the case")
    record = Reopened(at=moment(loaded, at), by=by, why=words(loaded, why))
    return _append(project, loaded, record)


def retire_case(
    project: Project, path: Path, *, why: str, by: str | None = None, at: datetime | None = None
) -> Appended:
    """Append a ``[[retired]]`` to the case file `path`: from here on it is listed, and neither run nor judged.

    Raises:
        UsageRefused: it is retired, or nobody can be named as who does it.
        FileError, WriteError: the case is not right as it is, or its file cannot be written.
        LedgerError: the ledger cannot be opened.
    """
    loaded = load_case(path)
    if case_state(loaded.case, recurred=False) == "retired":
        last = max(loaded.case.retired, key=lambda each: in_utc(each.at))
        raise UsageRefused(
            f"Couldn't retire {loaded.id}: {last.by} did on {day(last.at)} ({last.why}).\n"
            f"To bring it back: regcase reopen {loaded.id} --why ..."
        )
    by = by or who_acts(project.root, "who retires the case")
    record = Retired(at=moment(loaded, at), by=by, why=words(loaded, why))
    return _append(project, loaded, record)


def moment(loaded: LoadedCase, at: datetime | None = None) -> datetime:
    """Return the time of a record that is appended now: in whole seconds, where that is later than all before.

    The order of a case's records is that of their times. Two commands within one second keep it by fractions.

    Raises:
        UsageRefused: a record of the case is dated later than now, so what is appended would have no effect.
    """
    now = in_utc(at or datetime.now(UTC))
    latest = max((time for time, _ in _records(loaded.case)), default=None)
    whole = now.replace(microsecond=0)
    if latest is None or whole > latest:
        return whole
    if now > latest:
        return now
    name = next(name for time, name in _records(loaded.case) if time == latest)
    raise UsageRefused(
        f"Couldn't append to {shown(loaded.path)}: its last record, [[{name}]], is dated {latest.isoformat()}, and"
        f" here it is {now.isoformat(timespec='seconds')}.\nCheck this machine's clock and the other's, or wait."
    )


def words(loaded: LoadedCase, text: str) -> str:
    """Return what a person says of the case as it may be written down: without secrets."""
    return Redactor(numbers_taken=numbers_taken([loaded.path.read_text(encoding="utf-8")])).text(text)


def day(at: datetime) -> str:
    """Return the day of `at`, in UTC."""
    return in_utc(at).date().isoformat()


def _append(project: Project, loaded: LoadedCase, record: Reopened | Retired) -> Appended:
    from pytest_regcase.session.gate import ledger_for

    table: TransitionKind = "reopened" if isinstance(record, Reopened) else "retired"
    # Opened first: a ledger that cannot be written is told before the case file has changed.
    with ledger_for(project) as ledger:
        now = append_record(loaded.path, table, record, seen=loaded.case)
        ledger.add_transition(
            Transition(case_id=loaded.id, at=record.at, kind=table, why=record.why, who=record.by)
        )
    return Appended(loaded.path, loaded.id, case_state(now.case, recurred=False), record.at, record.by)


def _records(case: RegressionCase) -> list[tuple[datetime, str]]:
    """The times of the records that decide the state, and of amendments; each with the name of its table."""
    times = {
        "fix": [each.at for each in case.fix],
        "closed": [each.at for each in case.closed],
        "reopened": [each.at for each in case.reopened],
        "retired": [each.at for each in case.retired],
        "amendments": [each.at for each in case.amendments],
    }
    return [(in_utc(at), name) for name, made in times.items() for at in made]
