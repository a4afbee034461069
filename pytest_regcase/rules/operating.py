"""What a plan does at a failure rate: how often it claims, how many runs it takes. Exact.

Knows plans and rates, nothing of cases. The runs are taken as independent draws that fail with one rate; what
correlated sessions or repeated draws do to a plan is said elsewhere.

A plan with k failures so far claims at run ``bounds[k]`` and at no other (its bounds never decrease), so it is
enough to follow the number of failures from one bound to the next. The expected number of runs then follows from
Wald's identity: expected failures at the end = rate * expected runs.
"""

import sys
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.base import Record
from pytest_regcase.rules.exact import Exact, proportion
from pytest_regcase.rules.sequential import Plan
from pytest_regcase.rules.solving import Number, at_most, power, smallest_runs

_DIGITS = 50


class Operating(Record):
    """What a plan does at one true failure rate."""

    rate: float
    accept: float
    """The chance that the plan claims."""
    expected_runs: float
    """Runs until it claims or refutes, on average."""


def exact_risk(plan: Plan, rate: Exact | Fraction) -> Fraction:
    """Return the chance that `plan` claims where runs fail with probability `rate` (0 and 1 included).

    At the rate that the plan rules out, it is the risk of the plan; above that rate it is smaller.

    Raises:
        UsageRefused: a rate outside 0 to 1.
    """
    return claim_probability(plan.bounds, _rate(rate))


def operating(plan: Plan, rate: float) -> Operating:
    """Return how often `plan` claims at a failure rate, and after how many runs it ends on average.

    Raises:
        UsageRefused: a rate outside 0 to 1.
    """
    # Decimals, not floats: at small rates the expected runs are a quotient of two small differences.
    exact = Decimal(str(rate))
    _rate(exact)
    with localcontext() as context:
        context.prec = _DIGITS
        claims = claim_probabilities(plan.bounds, exact)
        accept = sum(claims)
        survived = sum(claim * failures for failures, claim in enumerate(claims))
        failures_at_end = survived + (1 - accept) * len(plan.bounds)
        expected = failures_at_end / exact if exact else Decimal(plan.bounds[0])
    claims_at_times = float(accept)
    if 0 < exact < 1:  # then nothing is certain, whatever a float can hold
        claims_at_times = min(max(claims_at_times, sys.float_info.min), 1 - sys.float_info.epsilon)
    return Operating(rate=rate, accept=claims_at_times, expected_runs=float(expected))


def curve(plan: Plan, rates: Sequence[float]) -> tuple[Operating, ...]:
    """Return what `plan` does at each of `rates`, in their order: its operating curve.

    Raises:
        UsageRefused: a rate outside 0 to 1.
    """
    return tuple(operating(plan, rate) for rate in rates)


def claim_probabilities(bounds: Sequence[int], rate: Number) -> tuple[Number, ...]:
    """Return for each number of failures the chance to claim with exactly that many of them.

    The result has the type and the precision of `rate`, which the caller has checked to be from 0 to 1.
    """
    still_open = [type(rate)(1)] + [type(rate)(0) for _ in bounds[1:]]
    claimed = still_open.copy()
    made = 0
    for bound in sorted(set(bounds)):
        still_open = _after(still_open, bound - made, rate)
        made = bound
        for failures, at in enumerate(bounds):
            if at == bound:
                claimed[failures], still_open[failures] = still_open[failures], type(rate)(0)
    return tuple(claimed)


def claim_probability(bounds: Sequence[int], rate: Number) -> Number:
    """Return the chance to claim at all, in the type and the precision of `rate`, which the caller has checked."""
    claims = claim_probabilities(bounds, rate)
    return sum(claims[1:], start=claims[0])


def acceptance_runs(allowed: int, max_rate: Exact, risk: Exact) -> int:
    """Return the smallest n with P(at most `allowed` of n runs fail) <= `risk` at the rate `max_rate`, ties exact.

    `allowed` is chosen before the runs: chosen after a failure was seen, the risk is higher than stated.

    Raises:
        UsageRefused: a rate or risk that is not strictly between 0 and 1; a negative number of failures.
    """
    if allowed < 0:
        raise UsageRefused(f"Couldn't allow {allowed} failures.\nGive 0 or more.")
    rate, alpha = proportion(max_rate, "max_failure_rate"), proportion(risk, "risk")

    def holds(runs: int) -> bool:
        def accepted(at: Number) -> Number:
            return claim_probability((runs,) * (allowed + 1), at)

        return at_most(accepted, rate, alpha)

    return smallest_runs(allowed + 1, holds)


def streak_probability(length: int, runs: int, rate: float) -> float:
    """Return the chance that `length` clean runs in a row occur somewhere within `runs` runs.

    What "start the count again after each failure" really claims: with 29 in a row at a rate of 10 % it is 0.35
    within 100 runs and 0.93 within 500. No plan counts like that.
    """
    if runs < length:
        return 0.0
    starts_here = rate * (1 - rate) ** length
    chances = [0.0] * length + [(1 - rate) ** length]
    for made in range(length + 1, runs + 1):
        # The first such row ends here: a failure and then `length` clean runs, and no row before that failure.
        chances.append(chances[-1] + (1 - chances[made - length - 1]) * starts_here)
    return chances[-1]


def streak_wait(length: int, rate: float) -> float:
    """Return how many runs pass on average until `length` in a row are clean: ((1 - rate)^-length - 1) / rate.

    At a rate of 0 it is `length`; the rate must be below 1.
    """
    if rate == 0:
        return float(length)
    return float(((1 - rate) ** -length - 1) / rate)


def _after(still_open: Sequence[Number], runs: int, rate: Number) -> list[Number]:
    """Return the chances of each number of failures after `runs` further runs; more than these refute."""
    chances = [
        power(rate, failed) * power(1 - rate, runs - failed) * comb(runs, failed)
        for failed in range(min(runs + 1, len(still_open)))
    ]
    after = [type(rate)(0)] * len(still_open)
    for before, open_before in enumerate(still_open):
        if open_before:
            for failed, chance in enumerate(chances[: len(still_open) - before]):
                after[before + failed] += open_before * chance
    return after


def _rate(rate: Exact | Fraction) -> Fraction:
    exact = Fraction(rate)
    if not 0 <= exact <= 1:
        raise UsageRefused(
            f"Couldn't use the failure rate {rate}: it is no probability.\nGive a rate from 0 to 1."
        )
    return exact
