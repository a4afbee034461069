"""Which cases may be set aside as flaky, and which of those set aside may come back.

Reads case files and the ledger and asks the rules; edits no case file. Proposals are written, where the project
wants them, beside the ledger. Never prints.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_regcase.case_files import LoadedCase, find_case, writing
from pytest_regcase.case_files.places_on_disk import replace_whole
from pytest_regcase.case_files.rewriting import table_text
from pytest_regcase.config import Project
from pytest_regcase.errors import FileError, UsageRefused
from pytest_regcase.records.case import Quarantine
from pytest_regcase.rules.exact import percent
from pytest_regcase.rules.flake import first_attempts
from pytest_regcase.rules.lifecycle import in_utc, is_retired
from pytest_regcase.rules.quarantine import (
    ExitCheck,
    Proposal,
    check_exit,
    most_quarantined,
    propose,
)
from pytest_regcase.session.ledgers.flakiness import CheckStanding, check_rows, check_standings
from pytest_regcase.session.ledgers.probation import CheckProbation, probations
from pytest_regcase.session.planning.opening import chosen_files, load_entries, make_session_folder
from pytest_regcase.session.project.rules_in_force import rerun_rule
from pytest_regcase.session.project.who import who_acts
from pytest_regcase.toml_lines import shown

if TYPE_CHECKING:
    from pytest_regcase.ledger.store import Ledger

FLAKY_DAYS: Final = 30
"""How long a proposed quarantine lasts: then somebody looks again."""


@dataclass(frozen=True)
class CheckExit:
    """Whether one check that the case was set aside for lets it out."""

    scenario: str
    exit: ExitCheck


@dataclass(frozen=True)
class CaseStanding:
    """One case: what the ledger says of its checks, and where its quarantine stands."""

    loaded: LoadedCase
    today: date
    checks: tuple[CheckStanding, ...] = ()
    exits: tuple[CheckExit, ...] = ()
    """Of a case that is set aside as flaky, by check."""
    probations: tuple[CheckProbation, ...] = ()
    proposed: Quarantine | None = None
    """What its owner may write into the file; None where nothing is proposed."""
    beyond_cap: bool = False
    """It is over the budget, and as many cases as may be are set aside, or proposed, already."""

    @property
    def quarantine(self) -> Quarantine | None:
        """The quarantine that stands in its file."""
        return self.loaded.case.quarantine

    @property
    def expired(self) -> bool:
        """Say whether its quarantine has ended and still stands in its file."""
        return self.quarantine is not None and self.today > self.quarantine.expires

    @property
    def may_leave(self) -> bool:
        """Say whether the rule lets it out: every check that it was set aside for does."""
        return bool(self.exits) and all(each.exit.granted for each in self.exits)

    @cached_property
    def over_budget(self) -> tuple[tuple[str, Proposal], ...]:
        """The checks that are flaky beyond the budget, and why."""
        return tuple((each.scenario, each.found) for each in self.checks if isinstance(each.found, Proposal))


@dataclass(frozen=True)
class QuarantineReport:
    """All cases that were asked about."""

    cases: tuple[CaseStanding, ...]
    """By id; retired ones are not among them."""
    in_service: int
    """Cases of the project that load and are not retired."""
    quarantined: int
    most: int
    """So many may be set aside at once."""
    flake_budget: str
    written: tuple[Path, ...] = ()
    """Files of proposals (``quarantine = "auto"``)."""


def quarantine_report(
    project: Project, ledger: "Ledger | None", names: Sequence[str] = (), *, today: date | None = None
) -> QuarantineReport:
    """Return where the cases of `project` stand (those that `names` say: files, folders, ids; without any, all).

    Without a ledger nothing is known of their checks. With ``quarantine = "auto"`` each proposal is written to
    ``.regcase/proposals/<case>.toml``, and one that holds no longer is taken away.

    Raises:
        UnknownName: a name means no case.
        FileError: a folder of cases, or a named case, cannot be read.
        LedgerError: the ledger cannot be read.
        UsageRefused: a named case is retired; a flake budget or risk is no proportion; nobody can be named as
            owner.
        WriteError: a proposal cannot be written.
    """
    today = today or datetime.now(UTC).date()
    served = cases_in_service(project)
    quarantined = sum(each.case.quarantine is not None for each in served)
    most = most_quarantined(len(served), project.config.max_quarantined)
    chosen = [_named(project, name) for name in names] or served
    standings = [_standing(project, each, ledger, today) for each in sorted(chosen, key=lambda each: each.id)]
    room = most - quarantined
    found: dict[str, CaseStanding] = {}
    # The worst first: where not all of them may be set aside, it is not the alphabet that chooses.
    for each in sorted(standings, key=_worst, reverse=True):
        new = each
        if each.over_budget and each.quarantine is None:
            new = replace(each, beyond_cap=True) if room <= 0 else replace(each, proposed=_proposed(project, each))
            room -= 1
        found[each.loaded.id] = new
    cases = tuple(found[each.loaded.id] for each in standings)
    written = _write_proposals(project, cases) if project.config.quarantine == "auto" else ()
    return QuarantineReport(cases, len(served), quarantined, most, project.config.flake_budget, written)


def cases_in_service(project: Project) -> list[LoadedCase]:
    """Return the cases that load and are not retired, which is what the cap on quarantines is about.

    Raises:
        FileError: a folder of cases cannot be listed.
    """
    entries = load_entries(chosen_files(project, None))
    return [each.loaded for each in entries if each.loaded is not None and not is_retired(each.loaded.case)]


def quarantine_text(quarantine: Quarantine) -> str:
    """Return the whole ``[quarantine]`` table, as it stands in a case file."""
    return table_text("quarantine", quarantine_values(quarantine))


def quarantine_values(quarantine: Quarantine) -> dict[str, object]:
    """Return the keys of a ``[quarantine]`` in the order in which a person reads them."""
    names = ("kind", "owner", "reason", "since", "expires")
    return {name: getattr(quarantine, name) for name in names}


def check_exits(project: Project, loaded: LoadedCase, ledger: "Ledger") -> tuple[CheckExit, ...]:
    """Return whether each check that the quarantined case was set aside for lets it out.

    That is each one that was shown to be flaky by the end of the day on which it was set aside; where none was,
    each that was ever run. What ran on later days counts.

    Raises:
        LedgerError: the ledger cannot be read.
        UsageRefused: a flake budget or risk that is no proportion.
    """
    quarantine = loaded.case.quarantine
    assert quarantine is not None
    end = datetime.combine(quarantine.since + timedelta(days=1), time.min, UTC)
    rule = {"budget": project.config.flake_budget, "risk": rerun_rule(project, loaded.case).risk}
    shown_flaky: list[CheckExit] = []
    others: list[CheckExit] = []
    for name, made, control in check_rows(loaded, ledger):
        before = first_attempts((row for row in made if in_utc(row.started_at) < end), control=control)
        after = first_attempts((row for row in made if in_utc(row.started_at) >= end), control=control)
        if not before and not after:
            continue  # what is left of it are confirm runs
        found = propose(before, **rule)
        flaky = isinstance(found, Proposal)
        entry = found.digests if isinstance(found, Proposal) else (*before[-1:], *after)[0].digests
        (shown_flaky if flaky else others).append(CheckExit(name, check_exit(after, entry_digests=entry, **rule)))
    return tuple(shown_flaky or others)


def _named(project: Project, name: str) -> LoadedCase:
    path = find_case(project.case_folders, name)
    (entry,) = load_entries([path])
    if entry.loaded is None:
        raise FileError(list(entry.problems))
    if is_retired(entry.loaded.case):
        raise UsageRefused(
            f"Couldn't look at {entry.loaded.id}: it is retired, so nothing of it is run or judged.\n"
            f"To bring it back: regcase reopen {entry.loaded.id} --why ..."
        )
    return entry.loaded


def _standing(project: Project, loaded: LoadedCase, ledger: "Ledger | None", today: date) -> CaseStanding:
    if ledger is None:
        return CaseStanding(loaded, today)
    quarantine = loaded.case.quarantine
    flaky = quarantine is not None and quarantine.kind == "flaky"
    return CaseStanding(
        loaded,
        today,
        check_standings(project, loaded, ledger),
        exits=check_exits(project, loaded, ledger) if flaky else (),
        probations=probations(project, loaded, ledger),
    )


def _worst(standing: CaseStanding) -> Decimal:
    return max((Decimal(each.lower) for _, each in standing.over_budget), default=Decimal(0))


def _proposed(project: Project, standing: CaseStanding) -> Quarantine:
    handover = standing.loaded.case.handover
    owner = handover.owner if handover is not None else who_acts(project.root, "who owns the quarantine")
    reasons = [
        f"{name}: {each.failures} of {each.attempts} first attempts failed over {each.sessions} sessions, at least"
        f" {percent(each.lower)} against a budget of {percent(each.budget)}"
        for name, each in standing.over_budget
    ]
    return Quarantine(
        owner=owner,
        reason="; ".join(reasons),
        kind="flaky",
        since=standing.today,
        expires=standing.today + timedelta(days=FLAKY_DAYS),
    )


def _write_proposals(project: Project, cases: Sequence[CaseStanding]) -> tuple[Path, ...]:
    folder = project.root / ".regcase" / "proposals"
    written: list[Path] = []
    with writing(folder):
        for each in cases:
            path = folder / f"{each.loaded.id}.toml"
            if each.proposed is None:
                with suppress(FileNotFoundError):
                    path.unlink()
                continue
            make_session_folder(project, folder)
            replace_whole(path, "".join(_proposal_lines(each, each.proposed)).encode())
            written.append(path)
    return tuple(written)


def _proposal_lines(standing: CaseStanding, quarantine: Quarantine) -> Iterator[str]:
    case_id = standing.loaded.id
    yield f"# Proposed on {quarantine.since}, and no more than that: its owner decides.\n"
    yield f"# To set {case_id} aside, paste this above [seal] of {shown(standing.loaded.path)}, then:\n"
    yield f"#   regcase amend {case_id} --why ...\n"
    yield quarantine_text(quarantine)
