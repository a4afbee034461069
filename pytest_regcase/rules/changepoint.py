"""Since when a check behaves as it does now: where its first-attempt failure rate last changed.

Knows outcomes in time order and where the digests change. Score: the log marginal likelihood of the two parts,
each under a beta prior, less that of the whole (LUCI Analysis, changepoints/bayesian). It finds where a segment
starts; it is far too slow to notice that a check became good, so it is never an exit test.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, count
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
    places = _places(failed)
    found = _best(places[0], (places[at] for at in inner), places[-1], prior)
    return None if found is None else Split(found[0].at, found[1])


def present_segment(history: Sequence[FirstAttempt], prior: tuple[float, float] = _PRIOR) -> int:
    """Return the index in `history` from which on the failure rate is the present one; 0: it never changed.

    Splits lie only where the digests change: what failed and passed on equal digests did not change, it flakes.
    The part behind an accepted split is searched again, until none is accepted. A rate that changed more than 32
    times has no present segment but the present digests.
    """
    boundaries, end = _boundaries(history)
    start, behind = _Place(0, 0, 0), _corners(boundaries)
    for _ in range(MOST_SPLITS + 1):
        found = _best(start, behind, end, prior)
        if found is None or found[1] + log(SPLIT_PRIOR) <= 0:
            return start.at
        start = found[0]
        behind = behind[bisect_right(behind, start) :]
    return boundaries[-1].at


class _Place(NamedTuple):
    """An index in a sequence of outcomes, and the failures and passes before it: any part is a subtraction."""

    at: int
    failures: int
    passes: int


def _places(failed: Sequence[bool | None]) -> list[_Place]:
    """Every index, and the one behind the last."""
    failures = accumulate((each is True for each in failed), initial=0)
    passes = accumulate((each is False for each in failed), initial=0)
    return list(map(_Place, count(), failures, passes))


def _boundaries(history: Sequence[FirstAttempt]) -> tuple[list[_Place], _Place]:
    """Where new digests begin, the first ones too, and the end. To split before the first has a score of 0."""
    found: list[_Place] = []
    failures = passes = 0
    before: str | None = None
    for index, (failed, digests, _, _, times) in enumerate(history):
        if digests != before:
            found.append(_Place(index, failures, passes))
            before = digests
        if failed:
            failures += times
        elif failed is not None:
            passes += times
    return found, _Place(len(history), failures, passes)


def _corners(boundaries: Sequence[_Place]) -> list[_Place]:
    """The boundaries at which the best split can lie: not those with only passes, or only failures, around them.

    Where only passes (or only failures) go over from the second part to the first, the score is convex in their
    number, as ln B(a, b) is in each argument: it is highest at one of the two ends. Of equal places the first.
    """
    places: list[_Place] = []
    for each in boundaries:
        if places and each[1:] == places[-1][1:]:
            continue
        if len(places) > 1 and (places[-2].failures == each.failures or places[-2].passes == each.passes):
            places.pop()
        places.append(each)
    return places


def _best(
    start: _Place, boundaries: Iterable[_Place], end: _Place, prior: tuple[float, float]
) -> tuple[_Place, float] | None:
    a, b = prior
    whole = _log_beta(a + (end.failures - start.failures), b + (end.passes - start.passes)) + _log_beta(a, b)
    best: tuple[_Place, float] | None = None
    for at in boundaries:
        before = _log_beta(a + (at.failures - start.failures), b + (at.passes - start.passes))
        behind = _log_beta(a + (end.failures - at.failures), b + (end.passes - at.passes))
        score = before + behind - whole
        if best is None or score > best[1] + _ROUNDING:
            best = at, score
    return best


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
