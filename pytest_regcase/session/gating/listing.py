"""All cases of a project with their states, for a list. Reads files and the ledger; never prints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_regcase.case_files import LoadedCase, LoadedSimulation, load_simulations
from pytest_regcase.config import Project
from pytest_regcase.errors import RegcaseError
from pytest_regcase.records.case import Quarantine
from pytest_regcase.records.decision import Claim
from pytest_regcase.records.words import CaseState, HypothesisClass
from pytest_regcase.rules.lifecycle import is_retired
from pytest_regcase.session.gating.standing import reading_ledger, standing
from pytest_regcase.session.ledgers.flakiness import CheckStanding, check_standings
from pytest_regcase.session.planning.opening import CaseEntry, chosen_files, load_entries

if TYPE_CHECKING:
    from pytest_regcase.ledger.store import Ledger


@dataclass(frozen=True)
class ListedCase:
    """One case as it is listed."""

    loaded: LoadedCase
    state: CaseState
    claim: Claim | None
    classes: tuple[HypothesisClass, ...]
    """Of the simulations that its hypotheses name, in file order, each once."""

    over_budget: bool = False
    """A check of it is shown to be flaky beyond the budget."""
    drifting: bool = False
    """A check of it fails more often than it did: the drift alarm stands."""

    @property
    def owner(self) -> str:
        """Whose case it is."""
        return self.loaded.case.handover.owner if self.loaded.case.handover is not None else ""

    @property
    def quarantine(self) -> Quarantine | None:
        """The quarantine that stands in its file."""
        return self.loaded.case.quarantine


@dataclass(frozen=True)
class Listing:
    """All cases of a project."""

    cases: tuple[ListedCase, ...]
    """By id."""
    invalid: tuple[CaseEntry, ...]
    """Files that do not load, with their problems."""
    folders: tuple[Path, ...]
    """Where was looked."""
    not_read: str | None
    """Why the ledger says nothing of the cases with a claimed fix, or of how checks fail."""


def list_cases(project: Project) -> Listing:
    """Return all cases below the project's folders; one file that does not load hides none of the others.

    Raises:
        FileError: a folder of cases cannot be listed, or a simulation file holds something that is not allowed.
    """
    entries = load_entries(chosen_files(project, None))
    loaded = [each.loaded for each in entries if each.loaded is not None]
    simulations = load_simulations(project)
    ledger, not_read = reading_ledger(project)
    try:
        found = standing(project, loaded, ledger)
        checks, unreadable = _checks(project, loaded, ledger)
    finally:
        if ledger is not None:
            ledger.close()
    cases = tuple(
        ListedCase(
            each,
            found.state(each),
            found.claim(each.id),
            _classes(each, simulations),
            over_budget=any(check.over_budget for check in checks.get(each.id, ())),
            drifting=any(check.alarm is not None for check in checks.get(each.id, ())),
        )
        for each in sorted(loaded, key=lambda each: each.id)
    )
    invalid = tuple(each for each in entries if each.loaded is None)
    # Without a claimed fix nothing is missed for want of a ledger: then `found` has nothing to say of it either.
    why = (found.not_read and (not_read or found.not_read)) or unreadable
    return Listing(cases, invalid, tuple(project.case_folders), why)


def _classes(loaded: LoadedCase, simulations: Mapping[str, LoadedSimulation]) -> tuple[HypothesisClass, ...]:
    known = [simulations[name] for name in loaded.case.simulation_ids if name in simulations]
    return tuple(dict.fromkeys(each.simulation.hypothesis for each in known))


def _checks(
    project: Project, cases: Sequence[LoadedCase], ledger: "Ledger | None"
) -> tuple[dict[str, tuple[CheckStanding, ...]], str | None]:
    """What the ledger says of the checks of each case, and why it says no more."""
    found: dict[str, tuple[CheckStanding, ...]] = {}
    if ledger is not None:
        from pytest_regcase.ledger.stats import cases_with_failed_checks

        try:
            failed = cases_with_failed_checks(ledger)
            for each in cases:
                if each.id in failed and not is_retired(each.case):
                    found[each.id] = check_standings(project, each, ledger)
        except RegcaseError as error:
            return found, error.text.splitlines()[0]
    return found, None
