"""The catalogue of simulations: what each injects, and on which wires that means something.

Loads every fault that a simulation names, to ask it. Never prints.
"""

from dataclasses import dataclass

from pytest_regcase import registry
from pytest_regcase.case_files import load_simulations
from pytest_regcase.config import Project
from pytest_regcase.errors import FileError
from pytest_regcase.records.simulation import Simulation
from pytest_regcase.records.wire import Delivery
from pytest_regcase.records.words import HypothesisClass
from pytest_regcase.supplier.inject import declares_for


@dataclass(frozen=True)
class CatalogueEntry:
    """One simulation, and where its fault means something."""

    simulation: Simulation
    streaming: tuple[str, ...]
    """Wires on which it can be injected into a stream."""
    whole: tuple[str, ...]
    """Wires on which it can be injected into an answer that is no stream."""

    @property
    def wires(self) -> tuple[str, ...]:
        """Wires on which the fault means something, in a stream or outside of one."""
        return tuple(sorted({*self.streaming, *self.whole}))


def catalogue(project: Project, hypothesis: HypothesisClass | None = None) -> tuple[CatalogueEntry, ...]:
    """Return the built-in simulations and the project's own, by id; those of one class where one is named.

    Raises:
        FileError: a simulation holds something that is not allowed, a setting that its fault has not included.
        ExtensionError: a fault is registered, but broken.
    """
    entries: list[CatalogueEntry] = []
    problems: list[str] = []
    for loaded in load_simulations(project).values():
        if hypothesis is not None and loaded.simulation.hypothesis != hypothesis:
            continue
        try:
            entries.append(entry_of(loaded.simulation))
        except FileError as error:
            problems += error.problems
    if problems:
        raise FileError(problems)
    return tuple(entries)


def entry_of(simulation: Simulation) -> CatalogueEntry:
    """Return what the fault of `simulation` says of every registered wire.

    Raises:
        FileError: a setting that the fault has not.
        UnknownName, ExtensionError: nobody has registered the fault, or it is broken.
    """
    declares = declares_for(simulation)

    def wires(*, streaming: bool) -> tuple[str, ...]:
        known = registry.names("wires")
        return tuple(each for each in known if isinstance(declares(each, streaming), Delivery))

    return CatalogueEntry(simulation, wires(streaming=True), wires(streaming=False))
