"""Several claims at once: p-values adjusted for their number, and e-values that need no independence.

Knows numbers and nothing of cases. For claims ("all of these are fixed") only: a gate acts on each red check, so
it keeps its share of false reds through a flake budget per case instead (rules.suite).
"""

from collections.abc import Sequence
from fractions import Fraction
from math import inf

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.exact import Exact, proportion


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return Holm's adjusted p-values, in the order given.

    The claims with one at or below the risk may be made together: the chance that any of them is false is at most
    the risk, whatever their dependence (Holm 1979).

    Raises:
        UsageRefused: a p-value outside 0 to 1.
    """
    ascending = _ascending(p_values)
    highest = Fraction(0)
    adjusted: dict[int, Fraction] = {}
    for rank, (value, position) in enumerate(ascending):
        highest = max(highest, min(value * (len(ascending) - rank), Fraction(1)))
        adjusted[position] = highest
    return _in_given_order(adjusted)


def bh(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return Benjamini and Hochberg's adjusted p-values, in the order given.

    Of the claims with one at or below the risk, at most the share `risk` is expected to be false. Valid for
    independent p-values (Benjamini and Hochberg 1995); `by` for any others.

    Raises:
        UsageRefused: a p-value outside 0 to 1.
    """
    return _step_up(p_values, 1)


def by(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return Benjamini and Yekutieli's adjusted p-values, in the order given: as `bh`, under any dependence.

    The price is the factor 1 + 1/2 + ... + 1/m (Benjamini and Yekutieli 2001).

    Raises:
        UsageRefused: a p-value outside 0 to 1.
    """
    return _step_up(p_values, sum(Fraction(1, each) for each in range(1, len(p_values) + 1)))


def ebh(e_values: Sequence[float], risk: Exact) -> tuple[int, ...]:
    """Return the positions of the claims that e-BH lets stand, ascending; ties exact.

    The k largest, for the largest k whose k-th largest e-value e has k * e >= m / risk. Valid under any
    dependence (arXiv 2009.02824), for e-values at the current time or at each case's own stopping time: the
    highest value that an e-process ever reached is no e-value (arXiv 2501.19360).

    Raises:
        UsageRefused: a negative e-value, or none; a risk that is not strictly between 0 and 1.
    """
    threshold = len(e_values) / proportion(risk, "risk")
    for each in e_values:
        if not each >= 0:
            raise UsageRefused(
                f"Couldn't use {each} as an e-value.\nAn e-value is a number that is never negative."
            )
    descending = sorted(range(len(e_values)), key=lambda position: -e_values[position])
    stand = 0
    for rank, position in enumerate(descending, 1):
        value = e_values[position]
        if value == inf or rank * Fraction(value) >= threshold:
            stand = rank
    return tuple(sorted(descending[:stand]))


def _step_up(p_values: Sequence[float], factor: Fraction | int) -> tuple[float, ...]:
    ascending = _ascending(p_values)
    lowest = Fraction(1)
    adjusted: dict[int, Fraction] = {}
    for rank in range(len(ascending), 0, -1):
        value, position = ascending[rank - 1]
        lowest = min(lowest, value * factor * len(ascending) / rank)
        adjusted[position] = lowest
    return _in_given_order(adjusted)


def _ascending(p_values: Sequence[float]) -> list[tuple[Fraction, int]]:
    for each in p_values:
        if not 0 <= each <= 1:
            raise UsageRefused(f"Couldn't use {each} as a p-value.\nA p-value is a number from 0 to 1.")
    return sorted((Fraction(each), position) for position, each in enumerate(p_values))


def _in_given_order(by_position: dict[int, Fraction]) -> tuple[float, ...]:
    return tuple(float(by_position[position]) for position in range(len(by_position)))
