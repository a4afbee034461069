"""What a row of live runs may claim, what it needs for that, and what it does not show.

Knows the four claims: BOUNDED (the rate is below the one to rule out), IMPROVED (it fails less than its baseline),
FIXED (both) and NOT REPRODUCED (the baseline has no failure to compare with). Reads one look at the counts:
whether that look was planned, and which runs count, is for the plan and the ledger to say. Source: statistics
page, sections 0 and 1.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeVar

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.case import Baseline
from pytest_regcase.rules.binomial import bound_text, rules_out, upper_bound
from pytest_regcase.rules.comparison import TOO_LARGE, Method, comparison_p, comparison_runs
from pytest_regcase.rules.exact import Exact, chance, confidence, percent
from pytest_regcase.rules.rerun import clean_reruns, unchanged_probability

ClaimKind = Literal["none", "BOUNDED", "IMPROVED", "FIXED", "NOT REPRODUCED"]
Population = Literal["task", "sweep"]
Rule = Literal["bounded", "fixed"]

AFFORDABLE_TIMES = 10
"""A comparison that asks for more than this many times the runs of the bound is called not affordable."""

_P_PLACES = 4

_FORMULAS: Mapping[Method, str] = {
    "fisher": "smallest m with C({n}, {k}) / C({n} + m, {k}) <= {risk} (Fisher)",
    "boschloo": "smallest m from which on Boschloo's p of {k} of {n} against 0 of m is <= {risk}",
    "bayes": "smallest m with B(a + {k}, b + {n_k} + m) / B(a + {k}, b + {n_k}) <= {risk} (a, b = 0.05, 0.5)",
}
_P_NAMES: Mapping[Method, str] = {
    "fisher": "Fisher's p",
    "boschloo": "Boschloo's p",
    "bayes": "chance of so few had nothing changed",
}

V = TypeVar("V")


class Requirement(Record):
    """How many clean runs a case needs, and for what."""

    clean_reruns: int
    """What closing needs under the rule in force."""
    for_rate: int
    """Clean runs for BOUNDED."""
    for_comparison: int | None
    """Clean runs for IMPROVED; None without a baseline, or where it holds no failure."""
    fixed: int | None
    """Clean runs for FIXED, the larger of the two. None: it cannot be claimed; the rule `fixed` never closes."""
    would_pass_unchanged: str | None
    """How likely `clean_reruns` clean runs are if the baseline's rate still holds; two significant digits. None
    where the baseline estimates no rate: it is missing, has no failure, or is the failure that made the case."""
    formulas: Many[str]
    """How each number was got, a line each."""
    warnings: Many[str]


class ClaimStanding(Record):
    """What the runs so far may claim."""

    kind: ClaimKind
    """NOT REPRODUCED only while nothing is bounded: a bound may be claimed without any failure before."""
    bounded: bool
    improved: bool | None
    """None: there is nothing to compare with."""
    p_value: str | None
    """Of the comparison, rounded up to four decimals."""
    compared: str | None
    """What the comparison says, with its numbers."""
    says: str
    """What the counts say, `compared` included."""
    warnings: Many[str]


def requirement(
    max_rate: Exact,
    risk: Exact,
    *,
    baseline: Baseline | None = None,
    rule: Rule = "bounded",
    comparison: Method = "fisher",
    for_rate: int | None = None,
) -> Requirement:
    """Return how many clean runs, and nothing else, each claim needs.

    BOUNDED needs no baseline. Both claims at the same risk need no correction: FIXED is false only if one is.
    `for_rate` are the clean runs that the plan in force claims after, for that rate and risk; None: `zero`'s.

    Raises:
        UsageRefused: a rate or risk that is not strictly between 0 and 1; no such method of comparison.
    """
    formulas = []
    if for_rate is None:
        for_rate = clean_reruns(max_rate, risk)
        formulas.append(f"{for_rate} = smallest n with (1 - {max_rate})^n <= {risk}")
    warnings: list[str] = []
    for_comparison = fixed = unchanged = None
    need = for_rate
    if baseline is not None and baseline.failures:
        k, n = baseline.failures, baseline.trials
        method, for_comparison = _with_fallback(
            comparison, lambda method: comparison_runs(method, k, n, risk), warnings
        )
        formulas.append(f"{for_comparison} = {_FORMULAS[method].format(k=k, n=n, n_k=n - k, risk=risk)}")
        fixed = max(for_rate, for_comparison)
        if rule != "bounded":
            need = fixed
        unchanged = passes_unchanged(baseline, need)
        if unchanged is not None and unchanged > Decimal(risk):
            warnings.append(
                f"If nothing had changed, {need} clean runs would still happen {percent(chance(unchanged))} of "
                "the time: they bound the rate and do not show that anything changed."
            )
        if for_comparison > AFFORDABLE_TIMES * for_rate:
            warnings.append(
                f"Comparing with the baseline takes {for_comparison} clean runs, more than {AFFORDABLE_TIMES} "
                f"times the {for_rate} of the bound: not affordable, claim the bound only."
            )
    elif rule != "bounded":
        warnings.append('The rule "fixed" cannot be met: no failure before the fix is known.')
    if baseline is not None:
        warnings += _of_baseline(baseline, max_rate, need)
        if baseline.failures and baseline.population == "sweep":
            warnings.append(
                "The baseline counts a whole sweep: only reruns drawn from that sweep are compared with it. "
                "Reruns of one task can claim the bound only."
            )
    return Requirement(
        clean_reruns=need,
        for_rate=for_rate,
        for_comparison=for_comparison,
        fixed=fixed,
        would_pass_unchanged=None if unchanged is None else chance(unchanged),
        formulas=tuple(formulas),
        warnings=tuple(warnings),
    )


def passes_unchanged(baseline: Baseline | None, runs: int) -> Decimal | None:
    """Return how likely `runs` clean runs are if the baseline's rate still holds.

    None where it estimates no rate: it is missing, has no failure, or is the failure that made the case.
    """
    if baseline is None or not baseline.failures or baseline.kind == "trigger-only":
        return None
    return unchanged_probability(baseline.failures, baseline.trials, runs)


def fails_less(baseline: Baseline, failures: int, runs: int, risk: Exact, comparison: Method = "fisher") -> bool:
    """Say whether `failures` of `runs` are shown to be fewer than in the baseline, at `risk`.

    By Fisher's test where the method cannot do it.

    Raises:
        UsageRefused: counts that cannot be; no such method.
    """
    return _compared(baseline, failures, runs, comparison, [])[1] <= Fraction(risk)


def claim_of(
    *,
    max_rate: Exact,
    risk: Exact,
    baseline: Baseline | None,
    comparison: Method = "fisher",
    failures: int,
    runs: int,
    population: Population = "task",
) -> ClaimStanding:
    """Return what `failures` of `runs` counted live runs may claim.

    `population` is what the runs were drawn from: they are compared only with a baseline drawn from the same.
    BOUNDED is necessary for a plan that allows failures to accept, not enough: that plan decides.

    Raises:
        UsageRefused: a rate or risk that is not strictly between 0 and 1; counts that cannot be; no such method.
    """
    bounded = rules_out(failures, runs, max_rate, risk)
    warnings: list[str] = []
    improved: bool | None = None
    p_value = compared = None
    parts = [f"{failures} of {runs} failed: {_bound(failures, runs, max_rate, risk, bounded)}"]
    if baseline is not None:
        k, n = baseline.failures, baseline.trials
        if k and baseline.population == population:
            method, p = _compared(baseline, failures, runs, comparison, warnings)
            improved = p <= Fraction(risk)
            p_value = _rounded_up(p)
            compared = (
                f"{'fails less than before' if improved else 'not shown to fail less than before'} "
                f"({k} of {n}, {_P_NAMES[method]} = {p_value})"
            )
            parts.append(compared)
        elif k:
            warnings.append(
                f"The baseline counts a {baseline.population}, these runs are drawn from a {population}: they are "
                "not compared, only the bound may be claimed."
            )
        warnings += _of_baseline(baseline, max_rate, runs)
    return ClaimStanding(
        kind=_kind(bounded, improved, baseline),
        bounded=bounded,
        improved=improved,
        p_value=p_value,
        compared=compared,
        says="; ".join(parts),
        warnings=tuple(warnings),
    )


def _kind(bounded: bool, improved: bool | None, baseline: Baseline | None) -> ClaimKind:
    if bounded:
        return "FIXED" if improved else "BOUNDED"
    if improved:
        return "IMPROVED"
    return "NOT REPRODUCED" if baseline is not None and baseline.failures == 0 else "none"


def _bound(failures: int, runs: int, max_rate: Exact, risk: Exact, bounded: bool) -> str:
    sure = confidence(risk)
    if bounded:
        return f"failure rate below {percent(max_rate)} ({sure})"
    bound = bound_text(upper_bound(failures, runs, risk))
    return f"not shown to be below {percent(max_rate)}, at most {percent(bound)} ({sure})"


def _of_baseline(baseline: Baseline, max_rate: Exact, runs: int) -> Iterator[str]:
    if baseline.failures == 0:
        yield (
            f"Not reproduced: none of the {baseline.trials} trials of the baseline failed. There is nothing to "
            "improve on, only the bound may be claimed."
        )
    elif baseline.kind == "trigger-only":
        rare = Decimal(max_rate) / 10
        yield (
            "The baseline is the trial that made the case. There is a case because it failed, so the risk of the "
            f"comparison has no limit: what fails {percent(rare)} of the time passes {runs} clean runs unchanged "
            f"{percent(chance((1 - rare) ** runs))} of the time. Count every attempt before it, or draw a fresh "
            "baseline."
        )


def _compared(
    baseline: Baseline, failures: int, runs: int, comparison: Method, warnings: list[str]
) -> tuple[Method, Fraction]:
    k, n = baseline.failures, baseline.trials
    return _with_fallback(comparison, lambda method: comparison_p(method, k, n, failures, runs), warnings)


def _with_fallback(method: Method, of: Callable[[Method], V], warnings: list[str]) -> tuple[Method, V]:
    """Apply `of` to the method; to Fisher's test, and say so in `warnings`, where the method cannot do it."""
    try:
        return method, of(method)
    except UsageRefused as refused:
        if refused.slug != TOO_LARGE:
            raise
        warnings.append(f"{refused.text.splitlines()[0]} Fisher's exact test is used instead.")
        return "fisher", of("fisher")


def _rounded_up(p: Fraction) -> str:
    # Upwards, and from the exact value: a small chance is not printed as none, a tie not as more than it is.
    return f"{Decimal(math.ceil(p * 10**_P_PLACES)).scaleb(-_P_PLACES):f}"
