"""The binomial distribution: tails, exact one-sided bounds, and how a bound is printed.

Knows counts and proportions. scipy is imported inside the branches that need it. Source: Clopper and Pearson 1934;
with no failure the bound is the closed form 1 - risk^(1/n).
"""

import math
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.exact import Exact, as_decimal, proportion

_DIGITS = 50
_NOISE = Decimal("1e-12")
"""What lies behind the twelfth decimal is arithmetic and none of a bound."""


def probability_at_most(failures: int, attempts: int, rate: float) -> float:
    """Return P(X <= `failures`) for `attempts` independent attempts that each fail with probability `rate`.

    Raises:
        ValueError: a rate outside 0 to 1, or a negative number of attempts.
    """
    if not 0 <= rate <= 1 or attempts < 0:
        raise ValueError(f"no binomial distribution has {attempts} attempts with rate {rate}")
    if failures < 0:
        return 0.0
    from scipy.special import bdtr

    return float(bdtr(min(failures, attempts), attempts, rate))


def rules_out(failures: int, attempts: int, max_rate: Exact, risk: Exact) -> bool:
    """Say whether `failures` of `attempts` rule out a rate of `max_rate` or more: P(X <= k) <= `risk`, ties exact.

    One look at a number of attempts that was fixed beforehand, with the number of failures that it allows.

    Raises:
        UsageRefused: a rate or risk that is not strictly between 0 and 1, or counts that cannot be.
    """
    rate = proportion(max_rate, "max_failure_rate")
    alpha = proportion(risk, "risk")
    _check_counts(failures, attempts)
    fail, clean = rate.numerator, rate.denominator - rate.numerator
    ways = sum(math.comb(attempts, k) * fail**k * clean ** (attempts - k) for k in range(failures + 1))
    return Fraction(ways, rate.denominator**attempts) <= alpha


def lower_bound(failures: int, attempts: int, risk: Exact) -> Decimal:
    """Return the exact one-sided lower bound on the failure rate after `failures` of `attempts`.

    Clopper-Pearson at confidence 1 - `risk`; 0 where nothing failed. It holds for a number of attempts that was
    fixed beforehand.

    Raises:
        UsageRefused: a risk that is not strictly between 0 and 1, or counts that cannot be.
    """
    alpha = proportion(risk, "risk")
    _check_counts(failures, attempts)
    if failures == 0:
        return Decimal(0)
    from scipy.special import betaincinv

    return Decimal(repr(float(betaincinv(failures, attempts - failures + 1, float(alpha)))))


def upper_bound(failures: int, attempts: int, risk: Exact) -> Decimal:
    """Return the exact one-sided upper bound on the failure rate after `failures` of `attempts`.

    Clopper-Pearson at confidence 1 - `risk`; with no failure it is the closed form 1 - risk^(1/n). No attempt
    bounds nothing: 1. The bound holds for a number of attempts that was fixed beforehand.

    Raises:
        UsageRefused: a risk that is not strictly between 0 and 1, or counts that cannot be.
    """
    alpha = proportion(risk, "risk")
    _check_counts(failures, attempts)
    if failures == attempts:
        return Decimal(1)
    if failures == 0:
        with localcontext() as context:
            context.prec = _DIGITS
            return 1 - as_decimal(alpha) ** (Decimal(1) / attempts)
    from scipy.special import betainccinv

    return Decimal(repr(float(betainccinv(failures + 1, attempts - failures, float(alpha)))))


def bound_text(bound: Decimal, places: int = 4) -> str:
    """Return `bound` as a decimal string, rounded up: a bound that is printed too low would claim too much."""
    with localcontext() as context:
        settled = bound.quantize(_NOISE)
        context.rounding = ROUND_CEILING
        return f"{settled:.{places}f}"


def _check_counts(failures: int, attempts: int) -> None:
    if not 0 <= failures <= attempts:
        raise UsageRefused(
            f"Couldn't bound a failure rate: {failures} failures of {attempts} attempts cannot be.\n"
            "Give 0 <= failures <= attempts."
        )
