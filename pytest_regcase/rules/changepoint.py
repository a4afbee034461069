"""Since when a check behaves as it does now: where its first-attempt failure rate last changed.

Knows outcomes in time order and where the digests change. Score: the log marginal likelihood of the two parts,
each under a beta prior, less that of the whole (LUCI Analysis, changepoints/bayesian). It finds where a segment
starts; it is far too slow to notice that a check became good, so it is never an exit test.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from math import lgamma, log
from typing import NamedTuple

from pytest_regcase.rules.binomial import POPULATION_PRIOR
from pytest_regcase.rules.flake import FirstAttempt

_PRIOR = (float(POPULATION_PRIOR[0]), float(POPULATION_PRIOR[1]))
SPLIT_PRIOR = 1e-4
"""How likely a change is before anything is seen. Harsh, because the best of many positions is taken."""
MOST_SPLITS = 32
"""Keeps the search linear: a history of blocks would else be cut block by block, each time read to its end."""
_ROUNDING = 1e-9
"""Scores that differ by less are equal, and the first position stands: sums of lgamma differ by machine."""


class Split(NamedTuple):
    """The best place to cut a sequence in two."""

    start: int
    """Where the second part starts."""
    score: float
    """Log likelihood ratio of the two parts against the whole."""


def bb_loglik(failures: int, attempts: int, prior: tuple[float, float] = _PRIOR) -> float:
    """Return ln(B(a + failures, b + passes) / B(a, b)): how likely one particular sequence of outcomes is.

    Raises:
        ValueError: counts that cannot be, or a prior without density.
    """
    a, b = prior
    if not 0 <= failures <= attempts or min(a, b) <= 0:
        raise ValueError(f"no likelihood of {failures} failures in {attempts} under Beta({a}, {b})")
    return _log_beta(a + failures, b + attempts - failures) - _log_beta(a, b)


def best_changepoint(
    failed: Sequence[bool | None],
    prior: tuple[float, float] = _PRIOR,
    *,
    boundaries: Iterable[int] | None = None,
) -> Split | None:
    """Return the split with the highest score, the first one on ties; None where there is no place for one.

    `boundaries` are the indexes at which the second part may start, by default every inner one. None among the
    outcomes proved nothing and weighs nothing. Linear in the number of boundaries.
    """
    inner = range(1, len(failed)) if boundaries is None else boundaries
    return _best(_Counts(failed), 0, inner, prior)


def present_segment(history: Sequence[FirstAttempt], prior: tuple[float, float] = _PRIOR) -> int:
    """Return the index in `history` from which on the failure rate is the present one; 0: it never changed.

    Splits lie only where the digests change: what failed and passed on equal digests did not change, it flakes.
    The part behind an accepted split is searched again, until none is accepted. A rate that changed more than 32
    times has no present segment but the present digests.
    """
    counts = _Counts([each.failed for each in history], [each.times for each in history])
    boundaries = [
        index for index, (before, each) in enumerate(pairwise(history), 1) if each.digests != before.digests
    ]
    start, behind = 0, boundaries
    for _ in range(MOST_SPLITS + 1):
        split = _best(counts, start, behind, prior)
        if split is None or split.score + log(SPLIT_PRIOR) <= 0:
            return start
        start = split.start
        behind = boundaries[bisect_right(boundaries, start) :]
    return boundaries[-1]


class _Counts:
    """Failures and passes before each index, so that any part is counted by a subtraction."""

    def __init__(self, failed: Sequence[bool | None], times: Sequence[int] | None = None) -> None:
        outcomes = list(zip(failed, times or [1] * len(failed), strict=True))
        self.failures = [0, *accumulate(n if each else 0 for each, n in outcomes)]
        self.passes = [0, *accumulate(n if each is not None and not each else 0 for each, n in outcomes)]


def _best(counts: _Counts, start: int, boundaries: Iterable[int], prior: tuple[float, float]) -> Split | None:
    a, b = prior
    failures, passes = counts.failures, counts.passes
    whole = _log_beta(a + (failures[-1] - failures[start]), b + (passes[-1] - passes[start])) + _log_beta(a, b)
    best: Split | None = None
    for at in boundaries:
        before = _log_beta(a + (failures[at] - failures[start]), b + (passes[at] - passes[start]))
        behind = _log_beta(a + (failures[-1] - failures[at]), b + (passes[-1] - passes[at]))
        score = before + behind - whole
        if best is None or score > best.score + _ROUNDING:
            best = Split(at, score)
    return best


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
