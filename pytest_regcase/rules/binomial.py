"""The binomial distribution: exact one-sided bounds, how one is printed, and what rates are like beforehand.

Knows counts and proportions. scipy is imported inside the branches that need it. Source: Clopper and Pearson 1934;
with no failure the bound is the closed form 1 - risk^(1/n).
"""

from decimal import ROUND_CEILING, Context, Decimal, localcontext

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.exact import Exact, as_decimal, proportion

Prior = tuple[Exact, Exact]
"""The two shape parameters of a beta distribution, as decimal strings."""

POPULATION_PRIOR: Prior = ("0.05", "0.5")
"""What failure rates of tests look like before anything is known of one: most nearly 0, some nearly 1.

LUCI's prior for first attempts. Of the usual ones it is the only one under which a comparison keeps a risk of 5 %:
the uniform prior reaches 9.8 %, Jeffreys' 6.7 % (statistics page, section 1).
"""

_DIGITS = 50
_SETTLED = Context(prec=12)
"""What lies behind the twelfth digit is arithmetic and none of a bound."""


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
    allowed, weight = alpha.numerator * rate.denominator**attempts, alpha.denominator
    exactly = clean**attempts
    so_far = 0
    for failed in range(failures + 1):
        so_far += exactly * weight
        if so_far > allowed:  # thousands of failures need not be added up to see that they rule out nothing
            return False
        exactly = exactly * (attempts - failed) * fail // ((failed + 1) * clean)
    return True


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
        context.rounding = ROUND_CEILING
        return f"{_SETTLED.plus(bound):.{places}f}"


def _check_counts(failures: int, attempts: int) -> None:
    if not 0 <= failures <= attempts:
        raise UsageRefused(
            f"Couldn't bound a failure rate: {failures} failures of {attempts} attempts cannot be.\n"
            "Give 0 <= failures <= attempts."
        )
