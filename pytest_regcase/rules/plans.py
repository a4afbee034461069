"""The plans that are shipped, solved for a rate and a risk: how many runs claim with how many failures among them.

Knows formulas and names; nothing of cases. Every plan has to be chosen before the runs it reads, and every one
that leaves here has an exact risk of at most the stated one. Source: statistics page, sections 2, 3 and 8.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.evidence_process import e_process_bounds
from pytest_regcase.rules.exact import Exact, proportion
from pytest_regcase.rules.operating import acceptance_runs, claim_probability
from pytest_regcase.rules.rerun import clean_reruns
from pytest_regcase.rules.sequential import Plan
from pytest_regcase.rules.solving import Number, at_most, smallest_runs

MOST_ALLOWED_FAILURES = 100
"""The largest n of a plan `c:<n>`."""
MOST_RUNS = 1_000_000
"""Where even the zero-failure rule needs more clean runs, no other plan is solved."""

_FIRST_SHARE = Fraction(4, 5)
_ALLOWED = f'"zero", "allow-one", "e-process" or "c:<n>" with n from 0 to {MOST_ALLOWED_FAILURES}, such as "c:2"'


@lru_cache(maxsize=256, typed=True)
def plan_for(name: str, max_rate: Exact, risk: Exact) -> Plan:
    """Return the plan of that name, solved exactly for a rate and a risk.

    At 0.10 and 0.05: `zero` claims after 29 clean runs; `allow-one` after 31, or after 54 with one failure;
    `c:<n>` after one fixed number of runs with at most n failures (46 for `c:1`); `e-process` after 30, 64, 90 or
    115 with 0 to 3 failures. Solved plans are remembered, so asking for each case of a gate costs nothing.

    Raises:
        UsageRefused: no such plan (the text names those there are); a rate or risk that is not strictly between
            0 and 1; a plan other than `zero` for a rate that takes more than a million runs to rule out.
    """
    return proven(Plan(name=name, bounds=_bounds(name, max_rate, risk)), max_rate, risk)


def proven(plan: Plan, max_rate: Exact, risk: Exact) -> Plan:
    """Return `plan` as it is, once it is shown that its exact risk at `max_rate` is at most `risk`.

    At rates above `max_rate` the risk is smaller.

    Raises:
        UsageRefused: the risk is higher than stated ("29 clean, or 46 with one failure" has 0.072, not 0.05); a
            rate or risk that is not strictly between 0 and 1.
    """
    rate, alpha = proportion(max_rate, "max_failure_rate"), proportion(risk, "risk")
    if not _risk_at_most(plan.bounds, rate, alpha):
        raise UsageRefused(
            f"Couldn't use the plan {plan.name!r} ({' / '.join(map(str, plan.bounds))} runs): at a failure rate of"
            f" {max_rate} it claims with a higher risk than {risk}.\nUse {_ALLOWED}.",
            slug="risk-too-high",
        )
    return plan


def _bounds(name: str, max_rate: Exact, risk: Exact) -> tuple[int, ...]:
    clean = clean_reruns(max_rate, risk)
    if name == "zero":
        return (clean,)
    solve = _solver(name)
    if clean > MOST_RUNS:
        raise UsageRefused(
            f"Couldn't solve the plan {name!r}: even without a failure it takes more than {MOST_RUNS} runs to rule"
            f" out a failure rate of {max_rate}.\nState a higher rate."
        )
    return solve(max_rate, risk)


def _solver(name: str) -> Callable[[Exact, Exact], tuple[int, ...]]:
    if name == "allow-one":
        return _allow_one
    if name == "e-process":
        return e_process_bounds
    found = re.fullmatch(r"c:([0-9]{1,3})", name)
    if found and int(found[1]) <= MOST_ALLOWED_FAILURES:
        return partial(_fixed_size, int(found[1]))
    why = "there is none of that name"
    if name == "sprt":
        why = "Wald's thresholds hold the stated risk only roughly (0.0501 for 0.05, at 0.10 against 0.01)"
    raise UsageRefused(f"Couldn't use the plan {name!r}: {why}.\nUse {_ALLOWED}.")


def _fixed_size(allowed: int, max_rate: Exact, risk: Exact) -> tuple[int, ...]:
    return (acceptance_runs(allowed, max_rate, risk),) * (allowed + 1)


def _allow_one(max_rate: Exact, risk: Exact) -> tuple[int, int]:
    """Spend four fifths of the risk on the claim without a failure, what is left of it on the claim with one."""
    rate, alpha = Fraction(max_rate), Fraction(risk)
    first = smallest_runs(1, lambda runs: _risk_at_most((runs,), rate, alpha * _FIRST_SHARE))
    return first, smallest_runs(first + 1, lambda runs: _risk_at_most((first, runs), rate, alpha))


def _risk_at_most(bounds: tuple[int, ...], rate: Fraction, limit: Fraction) -> bool:
    def claims(at: Number) -> Number:
        return claim_probability(bounds, at)

    return at_most(claims, rate, limit)
