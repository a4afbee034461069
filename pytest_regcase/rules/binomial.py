"""The binomial distribution: tails, exact one-sided bounds, and how a bound is printed.

Knows counts and proportions. scipy is imported inside the branches that need it. Source: Clopper and Pearson 1934;
with no failure the bound is the closed form 1 - risk^(1/n).
"""

from decimal import ROUND_CEILING, Decimal, localcontext

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.exact import Exact, as_decimal, proportion


def probability_at_most(failures: int, attempts: int, rate: float) -> float:
    """Return P(X <= `failures`) for `attempts` independent attempts that each fail with probability `rate`.

    Raises:
        ValueError: a rate outside 0 to 1, or a negative number of attempts.
    """
    if not 0 <= rate <= 1 or attempts < 0:
        raise ValueError(f"no binomial distribution has {attempts} attempts with rate {rate}")
    if failures < 0:
        return 0.0
    if failures >= attempts or rate == 0:
        return 1.0
    from scipy.special import bdtr

    return float(bdtr(failures, attempts, rate))


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
            context.prec = 50
            return 1 - as_decimal(alpha) ** (Decimal(1) / attempts)
    from scipy.special import betainccinv

    return Decimal(repr(float(betainccinv(failures + 1, attempts - failures, float(alpha)))))


def bound_text(bound: Decimal, places: int = 4) -> str:
    """Return `bound` as a decimal string, rounded up: a bound that is printed too low would claim too much."""
    settled = bound.quantize(Decimal("1e-12"))
    return str(settled.quantize(Decimal(1).scaleb(-places), rounding=ROUND_CEILING))


def _check_counts(failures: int, attempts: int) -> None:
    if not 0 <= failures <= attempts:
        raise UsageRefused(
            f"Couldn't bound a failure rate: {failures} failures of {attempts} attempts cannot be.\n"
            "Give 0 <= failures <= attempts."
        )
