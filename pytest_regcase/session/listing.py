"""All cases of a project with their states, for a list. Reads files and the ledger; never prints."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_regcase.case_files import LoadedCase, LoadedSimulation, load_simulations
from pytest_regcase.config import Project
from pytest_regcase.records.decision import Claim
from pytest_regcase.records.words import CaseState, HypothesisClass
from pytest_regcase.session.opening import CaseEntry, chosen_files, load_entries
from pytest_regcase.session.standing import reading_ledger, standing


@dataclass(frozen=True)
class ListedCase:
    """One case as it is listed."""

    loaded: LoadedCase
    state: CaseState
    claim: Claim | None
    classes: tuple[HypothesisClass, ...]
    """Of the simulations that its hypotheses name, in file order, each once."""

    @property
    def owner(self) -> str:
        """Whose case it is."""
        return self.loaded.case.handover.owner if self.loaded.case.handover is not None else ""

    @property
    def quarantined(self) -> bool:
        """Say whether it is set aside."""
        return self.loaded.case.quarantine is not None


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
    """Why the ledger says nothing of the cases with a claimed fix."""


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
    finally:
        if ledger is not None:
            ledger.close()
    cases = tuple(
        ListedCase(each, found.state(each), found.claim(each.id), _classes(each, simulations))
        for each in sorted(loaded, key=lambda each: each.id)
    )
    invalid = tuple(each for each in entries if each.loaded is None)
    # Without a claimed fix nothing is missed for want of a ledger: then `found` has nothing to say of it either.
    why = found.not_read and (not_read or found.not_read)
    return Listing(cases, invalid, tuple(project.case_folders), why)


def _classes(loaded: LoadedCase, simulations: Mapping[str, LoadedSimulation]) -> tuple[HypothesisClass, ...]:
    known = [simulations[name] for name in loaded.case.simulation_ids if name in simulations]
    return tuple(dict.fromkeys(each.simulation.hypothesis for each in known))
