"""Which lines of lower-level logs bear on which hypothesis of a case. Shows candidates; settles nothing, writes
nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, NamedTuple, get_args

from pytest_regcase.evidence.entries import Entry, Log
from pytest_regcase.evidence.log_kinds import LogKind
from pytest_regcase.evidence.sign_table import SIGNS, signs_of
from pytest_regcase.evidence.signs import Sign
from pytest_regcase.evidence.window import Window
from pytest_regcase.records.case import Hypothesis
from pytest_regcase.records.simulation import Simulation
from pytest_regcase.records.words import HypothesisClass

Stance = Literal["supports", "refutes"]
HITS_LIMIT: Final = 2000
"""Of one log: more lines than that are counted and not kept."""


class Hit(NamedTuple):
    """Lines of one log, one behind the other, that show the same sign."""

    log: int
    """Which of the logs, from 0."""
    first: int
    last: int
    sign: Sign
    text: str
    """The first of the lines."""
    at: datetime | None
    """None: the lines cannot be placed in time, so they speak for nothing until somebody places them."""


@dataclass
class LogRead:
    """What was read of one log."""

    log: Log
    lines: int = 0
    in_window: int = 0
    outside: int = 0
    unplaced: int = 0
    """Entries that have no time and cannot take one from a line before."""
    first: datetime | None = None
    last: datetime | None = None
    kinds: dict[LogKind, int] = field(default_factory=dict)
    hits: list[Hit] = field(default_factory=list)
    left_out: int = 0
    """Hits behind the limit."""


@dataclass(frozen=True)
class Compared:
    """What the logs show about one hypothesis."""

    hypothesis: str
    supports: tuple[Hit, ...]
    refutes: tuple[Hit, ...]
    unplaced: tuple[tuple[Stance, Hit], ...]
    """What would bear on it if it could be placed in the observation's time."""
    known: bool
    """Whether we know any sign of it: where not, silence says nothing."""

    @property
    def silent(self) -> bool:
        """Whether no line in the observation's time bears on it."""
        return not self.supports and not self.refutes


def read_log(log: Log, number: int, window: Window | None, near: datetime) -> LogRead:
    """Return what one log holds; without a window no entry counts as placed.

    Raises:
        LogUnreadable: it cannot be read to its end.
    """
    read = LogRead(log)
    open_hits: dict[str, Hit] = {}
    for entry in log.entries(near):
        read.lines += entry.last - entry.first + 1
        if entry.at is not None and not entry.inherited:
            read.first, read.last = min(read.first or entry.at, entry.at), max(read.last or entry.at, entry.at)
        placed = entry.at is not None and window is not None
        if placed and window is not None and entry.at is not None and not window.holds(entry.at):
            read.outside += 1
            continue
        read.in_window += placed
        read.unplaced += not placed
        if log.form.form == "nothing":
            continue
        line = entry.told
        read.kinds[line.kind] = read.kinds.get(line.kind, 0) + 1
        _add(read, open_hits, number, entry, signs_of(line), placed=placed)
    read.hits = sorted((*read.hits, *open_hits.values()), key=lambda each: (each.first, each.sign.id))
    return read


def _add(
    read: LogRead, open_hits: dict[str, Hit], number: int, entry: Entry, signs: Sequence[Sign], *, placed: bool
) -> None:
    for sign in signs:
        at = entry.at if placed else None
        before = open_hits.get(sign.id)
        if before is not None and before.last + 1 == entry.first and (before.at is None) == (at is None):
            open_hits[sign.id] = before._replace(last=entry.last)
            continue
        if before is not None:
            read.hits.append(before)
        if len(read.hits) >= HITS_LIMIT:
            read.left_out += 1
            open_hits.pop(sign.id, None)
            continue
        open_hits[sign.id] = Hit(number, entry.first, entry.last, sign, entry.text, at)


def compared(
    hypotheses: Sequence[Hypothesis], simulations: Mapping[str, Simulation], reads: Iterable[LogRead]
) -> tuple[Compared, ...]:
    """Return what the logs show about each hypothesis, in the order of the case."""
    hits = [hit for read in reads for hit in read.hits]
    return tuple(_about(each, targets_of(each, simulations), hits) for each in hypotheses)


def targets_of(hypothesis: Hypothesis, simulations: Mapping[str, Simulation]) -> frozenset[str]:
    """Return the classes and the kinds of faults that a hypothesis stands for; empty where nothing says so."""
    found = {hypothesis.id} & set(get_args(HypothesisClass))
    for name in hypothesis.simulations:
        simulation = simulations.get(name)
        if simulation is not None:
            found |= {simulation.hypothesis, simulation.fault.kind}
    return frozenset(found)


def stance_of(sign: Sign, targets: frozenset[str]) -> Stance | None:
    """Return on which side of a hypothesis the sign is; None where it says nothing about it."""
    if sign.supports & targets:
        return "supports"
    return "refutes" if sign.refutes & targets else None


def _about(hypothesis: Hypothesis, targets: frozenset[str], hits: Iterable[Hit]) -> Compared:
    sides: dict[Stance, list[Hit]] = {"supports": [], "refutes": []}
    unplaced: list[tuple[Stance, Hit]] = []
    for stance, hit in _bearing(targets, hits):
        if hit.at is None:
            unplaced.append((stance, hit))
        else:
            sides[stance].append(hit)
    known = any(stance_of(each, targets) is not None for each in SIGNS)
    return Compared(hypothesis.id, tuple(sides["supports"]), tuple(sides["refutes"]), tuple(unplaced), known)


def _bearing(targets: frozenset[str], hits: Iterable[Hit]) -> Iterator[tuple[Stance, Hit]]:
    for hit in hits:
        stance = stance_of(hit.sign, targets)
        if stance is not None:
            yield stance, hit
