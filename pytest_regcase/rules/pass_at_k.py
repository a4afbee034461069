"""pass@k and pass^k from n trials of one task: unbiased estimates and exact intervals.

Knows counts of one task and nothing of cases. Never pool tasks here: average the estimates per task instead, and
take the standard error over tasks. Formulas: 1 - C(n-c, k) / C(n, k) and C(c, k) / C(n, k).
"""

from decimal import Context, Decimal
from fractions import Fraction
from math import comb

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.binomial import lower_bound, upper_bound
from pytest_regcase.rules.exact import MOST_DECIMALS, Exact, proportion

_EXACT = Context(prec=2 * MOST_DECIMALS)


def pass_at_k(trials: int, passed: int, k: int) -> Fraction:
    """Return the chance that at least one of `k` further trials passes, estimated from `passed` of `trials`.

    1 - C(n-c, k) / C(n, k): unbiased for independent trials, where 1 - (1 - c/n)^k is not.

    Raises:
        UsageRefused: fewer than `k` trials (nothing unbiased exists then), or counts that cannot be.
    """
    _check(trials, passed, k)
    return 1 - Fraction(comb(trials - passed, k), comb(trials, k))


def pass_hat_k(trials: int, passed: int, k: int) -> Fraction:
    """Return the chance that all of `k` further trials pass (pass^k), estimated from `passed` of `trials`.

    C(c, k) / C(n, k): unbiased for independent trials, where (c/n)^k is not (9 of 10, k = 3: 0.700, not 0.729).

    Raises:
        UsageRefused: fewer than `k` trials (nothing unbiased exists then), or counts that cannot be.
    """
    _check(trials, passed, k)
    return Fraction(comb(passed, k), comb(trials, k))


def pass_at_k_interval(trials: int, passed: int, k: int, risk: Exact) -> tuple[Decimal, Decimal]:
    """Return the two-sided interval of pass@k at confidence 1 - `risk`, for a number of trials fixed beforehand.

    Clopper-Pearson on the pass rate, half of `risk` on each side, mapped by 1 - (1 - p)^k: the map is monotone, so
    the coverage stays exact.

    Raises:
        UsageRefused: as for the estimate; a risk that is not strictly between 0 and 1.
    """
    low, high = _pass_rate(trials, passed, k, risk)
    return 1 - (1 - low) ** k, 1 - (1 - high) ** k


def pass_hat_k_interval(trials: int, passed: int, k: int, risk: Exact) -> tuple[Decimal, Decimal]:
    """Return the two-sided interval of pass^k at confidence 1 - `risk`, for a number of trials fixed beforehand.

    As `pass_at_k_interval`, mapped by p^k. 30 of 30 passed still leaves pass^8 anywhere in 0.374 to 1.

    Raises:
        UsageRefused: as for the estimate; a risk that is not strictly between 0 and 1.
    """
    low, high = _pass_rate(trials, passed, k, risk)
    return low**k, high**k


def _pass_rate(trials: int, passed: int, k: int, risk: Exact) -> tuple[Decimal, Decimal]:
    _check(trials, passed, k)
    proportion(risk, "risk")  # in the words of whoever gave it, not of its half
    half = _EXACT.multiply(Decimal(risk), Decimal("0.5"))
    return lower_bound(passed, trials, half), upper_bound(passed, trials, half)


def _check(trials: int, passed: int, k: int) -> None:
    if k < 1 or not 0 <= passed <= trials:
        raise UsageRefused(
            f"Couldn't estimate from {passed} passed of {trials} trials with k = {k}: these numbers cannot be.\n"
            "Give 0 <= passed <= trials and k of at least 1."
        )
    if trials < k:
        raise UsageRefused(
            f"Couldn't estimate for k = {k} from {trials} trials: with fewer trials than k no unbiased estimate"
            f" exists.\nRun at least {k} trials, or ask for a smaller k."
        )
