"""Sets a case aside by hand as broken, and takes a quarantine out again: in the case file and in the ledger.

Who, when and why stand in both. The quarantine is in no digest, so nothing that was counted changes. Never prints.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from pytest_regcase.case_files import LoadedCase, load_case
from pytest_regcase.case_files.editing import append_amendments
from pytest_regcase.case_files.guarded import guarded_changes
from pytest_regcase.case_files.loading import check_case
from pytest_regcase.case_files.rewriting import add_table, remove_table
from pytest_regcase.config import Project
from pytest_regcase.errors import ClaimRefused, UsageRefused
from pytest_regcase.records.case import Amendment, Quarantine
from pytest_regcase.records.session import Transition
from pytest_regcase.records.words import TransitionKind
from pytest_regcase.rules.lifecycle import in_utc, is_retired
from pytest_regcase.rules.quarantine import most_quarantined
from pytest_regcase.session.case_life.life import moment, words
from pytest_regcase.session.case_life.quarantine import CheckExit, cases_in_service, check_exits, quarantine_values
from pytest_regcase.session.project.who import who_acts
from pytest_regcase.toml_lines import parse_toml, read_toml

MOST_DAYS: Final = 14
"""A quarantine by hand lasts no longer."""
_NAMED_BY: Final = "quarantine.expires"
"""The key whose change is recorded: it says both that a case is set aside and until when."""


@dataclass(frozen=True)
class Moved:
    """What was done to the quarantine of a case."""

    path: Path
    case_id: str
    kind: TransitionKind
    quarantine: Quarantine
    """The one that was written, or taken out."""
    at: datetime
    by: str
    says: tuple[str, ...] = ()
    """What the rule says of each check, on the way out."""


def set_aside_broken(
    project: Project,
    path: Path,
    *,
    why: str,
    days: int = MOST_DAYS,
    by: str | None = None,
    at: datetime | None = None,
) -> Moved:
    """Write a ``[quarantine]`` of kind broken into the case file `path`, with an ``[[amendments]]`` that says why.

    Its owner is the case's, else whoever does it. It ends after `days`, from 1 to 14.

    Raises:
        UsageRefused: the case is retired or set aside already, as many cases as may be are, or nobody can be
            named.
        FileError, WriteError: the case is not right, or its file cannot be written; it stays as it was.
        LedgerError: the ledger cannot be opened.
    """
    loaded = load_case(path)
    if is_retired(loaded.case):
        raise UsageRefused(
            f"Couldn't set {loaded.id} aside: it is retired, so nothing of it is run or judged.\n"
            "Nothing was written."
        )
    before = loaded.case.quarantine
    if before is not None:
        raise UsageRefused(
            f"Couldn't set {loaded.id} aside: it is already, until {before.expires}"
            f" ({before.owner}: {before.reason}).\n"
            f"To end that first: regcase quarantine {loaded.id} --lift --why ..."
        )
    served = cases_in_service(project)
    most = most_quarantined(len(served), project.config.max_quarantined)
    out = [each.id for each in served if each.case.quarantine is not None]
    if len(out) >= most:
        raise UsageRefused(
            f"Couldn't set {loaded.id} aside: {len(out)} of {len(served)} cases are, and at most {most} may be"
            f" ({', '.join(out)}).\nRepair one of them first."
        )
    by = by or who_acts(project.root, "who sets the case aside")
    at = moment(loaded, at)
    why = words(loaded, why)
    since = in_utc(at).date()
    quarantine = Quarantine(
        owner=loaded.case.handover.owner if loaded.case.handover is not None else by,
        reason=why,
        kind="broken",
        since=since,
        expires=since + timedelta(days=days),
    )
    text = read_toml(loaded.path).text
    done = Moved(loaded.path, loaded.id, "quarantined", quarantine, at, by)
    _write(project, loaded, text, add_table(text, "quarantine", quarantine_values(quarantine)), done, why)
    return done


def lift(
    project: Project,
    path: Path,
    *,
    why: str,
    on_probation: bool = False,
    by: str | None = None,
    at: datetime | None = None,
) -> Moved:
    """Take the ``[quarantine]`` out of the case file `path`: it gates again. Why stands in an ``[[amendments]]``.

    One that was set aside as broken goes back by hand, as it came. A flaky one needs a recorded change and the
    clean first attempts of the budget since, for each check that it was set aside for; or, with `on_probation`, a
    change and at least one clean attempt: what becomes of it then, `quarantine` follows.

    Raises:
        ClaimRefused: the rule does not let it out.
        UsageRefused: it is not set aside, its table is written in a form that cannot be taken out, or nobody can
            be named as who does it.
        FileError, WriteError: the case is not right, or its file cannot be written; it stays as it was.
        LedgerError: the ledger cannot be opened or read.
    """
    from pytest_regcase.session.gate import ledger_for

    loaded = load_case(path)
    quarantine = loaded.case.quarantine
    if quarantine is None:
        raise UsageRefused(f"Couldn't lift the quarantine of {loaded.id}: it has none.\nNothing was written.")
    if quarantine.kind == "broken" and on_probation:
        raise UsageRefused(
            f"Couldn't put {loaded.id} on probation: that is for a flaky case, and it was set aside as broken.\n"
            "Leave --probation out: one that is repaired gates again at once."
        )
    exits: tuple[CheckExit, ...] = ()
    if quarantine.kind == "flaky":
        with ledger_for(project) as ledger:
            exits = check_exits(project, loaded, ledger)
        _check_way_out(loaded, exits, on_probation=on_probation)
    by = by or who_acts(project.root, "who lifts the quarantine")
    at = moment(loaded, at)
    weaker = on_probation and not all(each.exit.granted for each in exits)
    why = words(loaded, why) + (" (on probation)" if weaker else "")
    text = read_toml(loaded.path).text
    kind: TransitionKind = "on-probation" if weaker else "lifted"
    says: list[str] = []
    for each in exits:
        way_out = each.exit.probation
        says.append(f"{each.scenario}: {each.exit.says if way_out is None else way_out.says}")
    done = Moved(loaded.path, loaded.id, kind, quarantine, at, by, tuple(says))
    _write(project, loaded, text, remove_table(text, "quarantine"), done, why)
    return done


def _check_way_out(loaded: LoadedCase, exits: tuple[CheckExit, ...], *, on_probation: bool) -> None:
    if not exits:
        raise ClaimRefused(
            f"Couldn't lift the quarantine of {loaded.id}: this ledger holds no attempt of its simulations, so"
            " nothing shows that it is better.\nUse the ledger that counted it (REGCASE_LEDGER names one)."
        )
    refused = [each for each in exits if not each.exit.granted]
    if not refused or (on_probation and all(each.exit.probation is not None for each in refused)):
        return
    lines = [f"{each.scenario}: {each.exit.says}" for each in refused]
    may = all(each.exit.probation is not None for each in refused)
    then = (
        f"For probation: regcase quarantine {loaded.id} --lift --probation --why ..."
        if may
        else "Nothing was written. It takes a change and clean runs of it; it keeps running in every session."
    )
    raise ClaimRefused("\n".join([f"Couldn't lift the quarantine of {loaded.id}.", *lines, then]))


def _write(project: Project, loaded: LoadedCase, old: str, new: str, done: Moved, why: str) -> None:
    from pytest_regcase.session.gate import ledger_for

    after = check_case(parse_toml(loaded.path, new.encode()))
    what = next(each.text for each in guarded_changes(loaded.case, after.case) if each.key == _NAMED_BY)
    # Opened first: a ledger that cannot be written is told before the case file has changed.
    with ledger_for(project) as ledger:
        append_amendments(loaded.path, old, new, [Amendment(what=what, why=why, who=done.by, at=done.at)])
        ledger.add_transition(
            Transition(case_id=loaded.id, at=done.at, kind=done.kind, why=why, who=done.by, evidence=what)
        )
