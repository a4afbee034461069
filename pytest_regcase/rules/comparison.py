"""Before and after: does the case fail less often than in its baseline?

Knows four counts (failures and runs, before and after) and nothing of cases or of the rate that is to be ruled
out. Whole numbers and fractions, so that ties are ties; only Boschloo's test computes in floating point.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeVar

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.binomial import POPULATION_PRIOR, Prior
from pytest_regcase.rules.exact import Exact, finite, proportion

T = TypeVar("T")

Method = Literal["fisher", "boschloo", "bayes"]

MOST_TRIALS = 10_000_000
"""A comparison with more runs on either side is refused."""

_MOST_TABLES = 10_000
"""Boschloo's test looks at every outcome that the two numbers of runs allow, many times over."""

_MOST_PREDICTED_RUNS = 20_000
_SURELY = 1e-3
"""Far more than floats lose in logarithms of that size."""

TOO_LARGE = "comparison-too-large"
"""The slug of the refusal that means: this method cannot do it, Fisher's test can."""


def fisher_p(failures_before: int, runs_before: int, failures_after: int, runs_after: int) -> Fraction:
    """Return the one-sided p-value of Fisher's exact test that it fails less often after than before.

    The chance of so few failures after, if all failures were dealt out over all runs blindly. With none after it
    is C(n, k) / C(n + m, k).

    Raises:
        UsageRefused: counts that cannot be.
    """
    _check_counts(failures_before, runs_before)
    _check_counts(failures_after, runs_after)
    return Fraction(*_dealt_out(failures_before, runs_before, failures_after, runs_after))


def fisher_runs(failures: int, trials: int, risk: Exact) -> int:
    """Return the smallest m of clean runs with C(n, k) / C(n + m, k) <= `risk`, ties exact.

    For k failures of n trials; 2 of 20 need 68, and a single failure needs n (1 / risk - 1).

    Raises:
        UsageRefused: nothing failed, counts that cannot be, or a risk that is not strictly between 0 and 1.
    """
    alpha = proportion(risk, "risk")
    _check_reproduced(failures, trials)

    def enough(runs: int) -> bool:
        share, whole = _dealt_out(failures, trials, 0, runs)
        return share * alpha.denominator <= alpha.numerator * whole

    # More clean runs always say more here, so doubling and halving finds the first number that is enough without
    # ever looking far behind it, where the binomial coefficients would be huge.
    high = 1
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def boschloo_p(failures_before: int, runs_before: int, failures_after: int, runs_after: int) -> float:
    """Return the one-sided p-value of Boschloo's exact test that it fails less often after than before.

    Never above Fisher's, which it uses as its statistic. scipy takes the *columns* of a table as the groups; the
    other way round it gives another p-value and no error.

    Raises:
        UsageRefused: counts that cannot be, or, with the slug `TOO_LARGE`, so many that it would take minutes.
    """
    _check_counts(failures_before, runs_before)
    _check_counts(failures_after, runs_after)
    _check_tables(runs_before, runs_after)
    if failures_before == 0 or runs_after == 0:
        return 1.0
    from scipy.stats import boschloo_exact

    table = (
        (failures_before, failures_after),
        (runs_before - failures_before, runs_after - failures_after),
    )
    return float(boschloo_exact(table, alternative="greater").pvalue)


def boschloo_runs(failures: int, trials: int, risk: Exact) -> int:
    """Return the smallest m of clean runs from which on Boschloo's p-value is at most `risk`.

    From which on: one more clean run may raise this p-value (2 of 20 pass at 50, not at 51, and again from 52),
    and a claim must not be lost to a further clean run. Never more than Fisher's test asks for.

    Raises:
        UsageRefused: as `fisher_runs`, and, with the slug `TOO_LARGE`, where it would take minutes.
    """
    alpha = proportion(risk, "risk")
    runs = fisher_runs(failures, trials, risk)
    _check_tables(trials, runs)
    # No run at all has the p-value 1, so this ends at 1 at the latest.
    while boschloo_p(failures, trials, 0, runs - 1) <= alpha:
        runs -= 1
    return runs


def predictive_at_most(
    failures: int, trials: int, further_failures: int, runs: int, prior: Prior = POPULATION_PRIOR
) -> Fraction:
    """Return how likely at most `further_failures` of `runs` further runs fail, had nothing changed.

    Beta-binomial: the sum over j of C(m, j) B(a + k + j, b + n - k + m - j) / B(a + k, b + n - k).

    Raises:
        UsageRefused: counts that cannot be, a prior that is none, or, with the slug `TOO_LARGE`, too many runs.
    """
    _check_counts(failures, trials)
    _check_counts(further_failures, runs)
    if runs > _MOST_PREDICTED_RUNS:
        raise _too_large(f"the prior gives no prediction for more than {_MOST_PREDICTED_RUNS} runs")
    fail, clean, unit = _posterior(failures, trials, prior)
    # The betas are products of runs that follow on each other; over a common denominator they are whole numbers.
    likely = sum(
        math.comb(runs, j) * _rising(fail, j, unit) * _rising(clean, runs - j, unit)
        for j in range(further_failures + 1)
    )
    return Fraction(likely, _rising(fail + clean, runs, unit))


def predictive_zero(failures: int, trials: int, runs: int, prior: Prior = POPULATION_PRIOR) -> Fraction:
    """Return how likely `runs` further runs are all clean, had nothing changed: B(a+k, b+n-k+m) / B(a+k, b+n-k).

    Raises:
        UsageRefused: as `predictive_at_most`.
    """
    return predictive_at_most(failures, trials, 0, runs, prior)


def bayes_runs(failures: int, trials: int, risk: Exact, prior: Prior = POPULATION_PRIOR) -> int:
    """Return the smallest m with `predictive_zero` at most `risk`, ties exact.

    Raises:
        UsageRefused: as `fisher_runs`; a prior that is none; with the slug `TOO_LARGE`, more than 20,000 runs.
    """
    alpha = proportion(risk, "risk")
    _check_reproduced(failures, trials)
    fail, clean, unit = _posterior(failures, trials, prior)
    if _log_zero(fail / unit, clean / unit, _MOST_PREDICTED_RUNS) > math.log(alpha) + _SURELY:
        raise _too_many_predicted()
    share, whole = alpha.denominator, alpha.numerator
    for runs in range(1, _MOST_PREDICTED_RUNS + 1):
        share *= clean + (runs - 1) * unit
        whole *= fail + clean + (runs - 1) * unit
        if share <= whole:
            return runs
    raise _too_many_predicted()


@lru_cache(maxsize=256)
def comparison_runs(method: Method, failures: int, trials: int, risk: Exact) -> int:
    """Return how many clean runs, and nothing else, show that it fails less often than `failures` of `trials`.

    Raises:
        UsageRefused: no such method; else as the method's own function.
    """
    return _of(method, _RUNS)(failures, trials, risk)


def comparison_p(
    method: Method, failures_before: int, runs_before: int, failures_after: int, runs_after: int
) -> Fraction:
    """Return the p-value of the comparison; for `bayes`, how likely so few failures were, had nothing changed.

    Raises:
        UsageRefused: no such method; else as the method's own function.
    """
    return Fraction(_of(method, _P_VALUES)(failures_before, runs_before, failures_after, runs_after))


def false_fixed_risk_fisher(trials: int, rate: Exact, risk: Exact) -> float:
    """Return how likely a case is claimed to have improved although it still fails with `rate`.

    For a baseline of `trials` runs and then as many clean ones as `fisher_runs` asks for: the sum over k >= 1 of
    P(k failures) (1 - p)^m(k). Not conditional on a failure: a baseline without any claims nothing.
    """
    p = float(proportion(rate, "rate"))
    return math.fsum(
        math.exp(
            math.log(math.comb(trials, k))
            + k * math.log(p)
            + (trials - k + fisher_runs(k, trials, risk)) * math.log1p(-p)
        )
        for k in range(1, trials + 1)
    )


def false_fixed_risk_first_failure(rate: Exact, risk: Exact) -> float:
    """Return the same for a case that is made at its first failure, where every attempt before it was counted.

    p (1 - p)^c / (1 - (1 - p)^(c + 1)) with c = 1 / risk - 1: at most `risk` whatever the rate is, and nearly
    that for a small one.
    """
    p = float(proportion(rate, "rate"))
    c = float(1 / proportion(risk, "risk") - 1)
    return p * math.exp(c * math.log1p(-p)) / -math.expm1((c + 1) * math.log1p(-p))


def ppv_fixed(prior: Exact, rate: Exact, runs: int) -> float:
    """Return how likely a fix worked, given `runs` clean runs, when a share `prior` of such fixes works.

    pi / (pi + (1 - pi)(1 - p)^n): a fix works wholly or leaves the rate as it was. This, not 1 - risk, is how far
    a claim can be believed.
    """
    works = float(proportion(prior, "prior"))
    unseen = math.exp(runs * math.log1p(-float(proportion(rate, "rate"))))
    return works / (works + (1 - works) * unseen)


_RUNS: Mapping[str, Callable[[int, int, Exact], int]] = {
    "fisher": fisher_runs,
    "boschloo": boschloo_runs,
    "bayes": bayes_runs,
}
_P_VALUES: Mapping[str, Callable[[int, int, int, int], Fraction | float]] = {
    "fisher": fisher_p,
    "boschloo": boschloo_p,
    "bayes": predictive_at_most,
}


def _of(method: str, functions: Mapping[str, T]) -> T:
    if method not in functions:
        allowed = ", ".join(f'"{name}"' for name in functions)
        raise UsageRefused(f"Couldn't compare with the baseline: no method {method!r}.\nWrite one of {allowed}.")
    return functions[method]


def _dealt_out(failures_before: int, runs_before: int, failures_after: int, runs_after: int) -> tuple[int, int]:
    """Numerator and denominator of P(at most `failures_after` of all failures fall into the runs after)."""
    runs, failures = runs_before + runs_after, failures_before + failures_after
    # Dealing failures over runs and runs over failures is the same distribution. The smaller hand is far cheaper.
    hand, after = sorted((failures, runs_after))
    fewest = max(0, hand - (runs - after))
    ways = sum(
        math.comb(after, j) * math.comb(runs - after, hand - j)
        for j in range(fewest, min(failures_after, hand) + 1)
    )
    return ways, math.comb(runs, hand)


def _posterior(failures: int, trials: int, prior: Prior) -> tuple[int, int, int]:
    """The two shape parameters after the baseline, as whole numbers of a common unit, and that unit."""
    a, b = (_shape(each) for each in prior)
    unit = math.lcm(a.denominator, b.denominator)
    return int((a + failures) * unit), int((b + trials - failures) * unit), unit


def _shape(value: Exact) -> Fraction:
    shape = finite(value)
    if shape is None or shape <= 0:
        raise UsageRefused(
            f"Couldn't use the prior: {value!r} is no shape parameter.\n"
            'Write two positive decimal strings, such as "0.05" and "0.5".'
        )
    return Fraction(shape)


def _log_zero(a: float, b: float, runs: int) -> float:
    """The logarithm of B(a, b + runs) / B(a, b): whether it is far from the risk is seen without long numbers."""
    return math.lgamma(b + runs) - math.lgamma(a + b + runs) - math.lgamma(b) + math.lgamma(a + b)


def _too_many_predicted() -> UsageRefused:
    return _too_large(f"under the prior it takes more than {_MOST_PREDICTED_RUNS} clean runs")


def _rising(start: int, factors: int, step: int) -> int:
    return math.prod(range(start, start + factors * step, step))


def _check_counts(failures: int, runs: int) -> None:
    if not 0 <= failures <= runs:
        raise UsageRefused(
            f"Couldn't compare: {failures} failures of {runs} runs cannot be.\nGive 0 <= failures <= runs."
        )
    if runs > MOST_TRIALS:
        raise UsageRefused(f"Couldn't compare: {runs} runs are too many.\nGive at most {MOST_TRIALS}.")


def _check_reproduced(failures: int, trials: int) -> None:
    _check_counts(failures, trials)
    if failures == 0:
        raise UsageRefused(
            f"Couldn't compare with the baseline: none of its {trials} trials failed.\n"
            "No number of clean runs is fewer failures than none; claim a bound instead.",
            slug="not-reproduced",
        )


def _check_tables(runs_before: int, runs_after: int) -> None:
    if (runs_before + 1) * (runs_after + 1) > _MOST_TABLES:
        raise _too_large(f"Boschloo's test of {runs_before} and {runs_after} runs would take too long")


def _too_large(why: str) -> UsageRefused:
    return UsageRefused(
        f'Couldn\'t compare with the baseline: {why}.\nWrite comparison = "fisher".', slug=TOO_LARGE
    )
