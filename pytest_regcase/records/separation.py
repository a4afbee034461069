"""Separation of causes: which simulations of a case the agent's own logs tell apart."""

from typing import Literal

from pytest_regcase.records.attempt import Finding
from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.words import HypothesisClass

ToldApart = Literal["message", "stack-trace", "indistinguishable", "noisy"]
"""``message``: by what the logs say. ``stack-trace``: by frames or chained causes alone. ``noisy``: two runs of
the same simulation already differ, so a difference between the two says nothing."""


class ComparedSimulation(Record):
    """One simulation of the matrix."""

    name: str
    hypothesis: HypothesisClass
    runs: int
    """How many attempts were compared. With one, a difference may be noise."""
    noisy: bool = False
    """Its runs differ among themselves in what they say, stack traces left out."""


class Pair(Record):
    """Two simulations and how they are told apart, in the case's order."""

    first: str
    second: str
    told_apart: ToldApart


class Separation(Record):
    """The matrix of one case: every pair of `simulations`."""

    simulations: Many[ComparedSimulation] = ()
    not_compared: Many[str] = ()
    """Simulations of the case of which no attempt proved anything."""
    counted: Many[str] = ()
    """What was compared, where something stood in it: ``artefact``, ``stderr``, ``stdout``, ``log``, ``files``."""
    pairs: Many[Pair] = ()
    by_artefact: int = 0
    """How many pairs the agent's own record alone tells apart, without stderr and stdout."""
    finding: Finding | None = None
    """``separates_causes``, where the case asks for it."""
