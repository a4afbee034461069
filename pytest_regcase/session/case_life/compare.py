"""Sets lower-level logs beside a case, or beside what each hypothesis class needs. Writes nothing, never prints.

What is shown is redacted here: logs hold keys.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

from pytest_regcase.case_files import load_case, load_simulations
from pytest_regcase.config import Project
from pytest_regcase.errors import UsageRefused
from pytest_regcase.evidence.compare import Compared, LogRead, compared, read_log
from pytest_regcase.evidence.entries import Log
from pytest_regcase.evidence.log_lines import LogUnreadable
from pytest_regcase.evidence.sign_table import SIGNS
from pytest_regcase.evidence.signs import Sign
from pytest_regcase.evidence.window import SKEW, Window, window_of_observation
from pytest_regcase.importers.reading import printable
from pytest_regcase.records.simulation import Simulation
from pytest_regcase.records.words import HypothesisClass
from pytest_regcase.redaction import Redactor
from pytest_regcase.toml_lines import shown


@dataclass(frozen=True)
class Comparison:
    """What logs show about each hypothesis of a case."""

    case_id: str
    window: Window | None
    skew_seconds: float
    logs: tuple[LogRead, ...]
    hypotheses: tuple[Compared, ...]
    notices: tuple[str, ...]


@dataclass(frozen=True)
class ClassNeeds:
    """What has to be logged to tell one hypothesis class apart."""

    hypothesis: HypothesisClass
    simulations: tuple[Simulation, ...]
    signs: tuple[Sign, ...]
    """Those that a machine can find; empty: only a reader can."""


@dataclass(frozen=True)
class Fingerprints:
    """What each class needs, and what of it is there."""

    classes: tuple[ClassNeeds, ...]
    logs: tuple[LogRead, ...]

    def found(self, sign: Sign) -> tuple[tuple[LogRead, str], ...]:
        """Return where the sign is there: each log that shows it, and the lines where it does so first."""
        places = []
        for read in self.logs:
            hit = next((each for each in read.hits if each.sign.id == sign.id), None)
            if hit is not None:
                places.append((read, f"{hit.first}-{hit.last}" if hit.last > hit.first else str(hit.first)))
        return tuple(places)


def compare_case(project: Project, path: Path, logs: Sequence[Path], skew: timedelta = SKEW) -> Comparison:
    """Return which lines of `logs` support or refute which hypothesis of the case, within its observation's time.

    Raises:
        FileError, SealError: the case is not right as it is.
        UsageRefused: a log cannot be read.
    """
    loaded = load_case(path)
    window = window_of_observation(loaded.case.observation, loaded.transcript() or (), skew)
    reads = _read_all(logs, window, window.end if window is not None else datetime.now(UTC))
    simulations = _simulations(project)
    unknown = [each for each in loaded.case.simulation_ids if each not in simulations]
    notices = [f"no simulation has the id {each}, so nothing is known of what it would show" for each in unknown]
    found = compared(loaded.case.hypotheses, simulations, reads)
    return Comparison(loaded.id, window, skew.total_seconds(), reads, found, tuple(notices))


def fingerprints(project: Project, logs: Sequence[Path] = ()) -> Fingerprints:
    """Return per hypothesis class what has to be logged to tell it apart, and what `logs` hold of it at any time.

    Raises:
        FileError: a simulation holds something that is not allowed.
        UsageRefused: a log cannot be read.
    """
    simulations = _simulations(project)
    everything = Window(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), "any time")
    classes = tuple(_needs(each, simulations.values()) for each in get_args(HypothesisClass))
    return Fingerprints(classes, _read_all(logs, everything, datetime.now(UTC)))


def redacted(texts: Iterable[str]) -> list[str]:
    """Return lines of logs as they may be shown: without secrets, and with nothing that drives a terminal."""
    redactor = Redactor()
    known = list(texts)
    for each in known:
        redactor.learn(each)
    return [printable(redactor.text(each.expandtabs(4))) for each in known]


def _needs(name: HypothesisClass, simulations: Iterable[Simulation]) -> ClassNeeds:
    mine = tuple(each for each in simulations if each.hypothesis == name)
    targets = {name, *(each.fault.kind for each in mine)}
    return ClassNeeds(name, mine, tuple(each for each in SIGNS if each.supports & targets))


def _simulations(project: Project) -> Mapping[str, Simulation]:
    return {name: each.simulation for name, each in load_simulations(project).items()}


def _read_all(logs: Sequence[Path], window: Window | None, near: datetime) -> tuple[LogRead, ...]:
    reads: list[LogRead] = []
    for number, path in enumerate(logs):
        try:
            reads.append(read_log(Log.open(path), number, window, near))
        except LogUnreadable as error:
            raise UsageRefused(
                printable(f"Couldn't read the log {shown(path)}: {error.why}.\n{error.what_to_do}")
            ) from error
    return tuple(reads)
