"""E-processes: evidence that a failure rate is below a limit, valid however often it is looked at.

Knows counts and proportions. An e-value against "the rate is `max_rate` or more" is, whatever such rate is true,
at most 1 on average at every time; so the chance that it ever reaches 1/risk is at most `risk` (Ville's
inequality).
Also a confidence sequence, an interval that holds at every look. Source: statistics page, section 3.
"""

from collections.abc import Callable
from math import exp, inf, lgamma, log, log1p

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.exact import Exact, proportion
from pytest_regcase.rules.solving import Number, at_most, power, smallest_runs

SURVIVED_FAILURES = 3
"""The plan `e-process` gives up at the failure after these."""


def e_point(failures: int, runs: int, max_rate: Number, fixed_rate: Number) -> Number:
    """Return the likelihood ratio of `fixed_rate` (from 0 to below `max_rate`) against `max_rate`.

    (p1/p0)^k ((1-p1)/(1-p0))^(n-k). It bets that a working fix has exactly the rate `fixed_rate`; betting on 0 is
    the zero-failure rule: (1-p0)^-n until the first failure, then nothing.
    """
    clean = runs - failures
    return power(fixed_rate / max_rate, failures) * power((1 - fixed_rate) / (1 - max_rate), clean)


def e_two_points(failures: int, runs: int, max_rate: Number) -> Number:
    """Return the e-value of the plan `e-process`: half of the bet on a rate of 0, half on `max_rate` / 10."""
    nothing = type(max_rate)(0)
    return (e_point(failures, runs, max_rate, nothing) + e_point(failures, runs, max_rate, max_rate / 10)) / 2


def e_process_bounds(max_rate: Exact, risk: Exact) -> tuple[int, ...]:
    """Return for 0 to 3 failures the smallest number of runs at which the e-value is 1/`risk` or more.

    At 0.10 and 0.05: 30, 64, 90, 115. One clean run more than the zero-failure rule buys the first failure.

    Raises:
        UsageRefused: a rate or risk that is not strictly between 0 and 1.
    """
    rate, alpha = proportion(max_rate, "max_failure_rate"), proportion(risk, "risk")

    def runs_with(failures: int) -> int:
        def holds(runs: int) -> bool:
            def inverse(at: Number) -> Number:
                return 1 / e_two_points(failures, runs, at)

            return at_most(inverse, rate, alpha)

        return smallest_runs(failures + 1, holds)

    return tuple(runs_with(failures) for failures in range(SURVIVED_FAILURES + 1))


def e_beta(failures: int, runs: int, max_rate: Exact, a: float, b: float) -> float:
    """Return the e-value that spreads its bet over the rates below `max_rate` as Beta(`a`, `b`), cut off there.

    [I_p0(a+k, b+n-k) B(a+k, b+n-k)] / [I_p0(a, b) B(a, b)] / (p0^k (1-p0)^(n-k)); infinite where it exceeds what a
    float holds.

    Raises:
        UsageRefused: a rate that is not strictly between 0 and 1.
    """
    found = _log_e_beta(failures, runs, float(proportion(max_rate, "max_failure_rate")), a, b)
    try:
        return exp(found)
    except OverflowError:
        return inf


def e_beta_runs(failures: int, max_rate: Exact, risk: Exact, a: float, b: float) -> int:
    """Return the smallest number of runs at which `e_beta` with that many failures is 1/`risk` or more.

    That takes at least one clean run: failures alone are evidence for no bet below `max_rate`.

    Raises:
        UsageRefused: a rate or risk that is not strictly between 0 and 1.
    """
    rate = float(proportion(max_rate, "max_failure_rate"))
    wanted = -log(proportion(risk, "risk"))
    return smallest_runs(failures + 1, lambda runs: _log_e_beta(failures, runs, rate, a, b) >= wanted)


def confidence_sequence(
    failures: int, runs: int, risk: Exact, a: float = 1.0, b: float = 1.0
) -> tuple[float, float]:
    """Return the lower and upper end of the Beta(`a`, `b`) mixture confidence sequence at this look.

    {p : B(a+k, b+n-k) / B(a, b) / (p^k (1-p)^(n-k)) <= 1/risk}. The true rate lies within at all looks together
    with probability 1 - `risk`, so it may be read after each run; it is two-sided, and wider than a bound for a
    number of runs fixed beforehand (30 clean: up to 0.193, not 0.095). It is for display; plans make the claims.

    Raises:
        UsageRefused: a risk that is not strictly between 0 and 1, or counts that cannot be.
    """
    alpha = proportion(risk, "risk")
    if not 0 <= failures <= runs:
        raise UsageRefused(
            f"Couldn't give a confidence sequence: {failures} failures of {runs} runs cannot be.\n"
            "Give 0 <= failures <= runs."
        )
    if runs == 0:
        return 0.0, 1.0
    clean = runs - failures
    allowed = _log_beta(a, b) - _log_beta(a + failures, b + clean) - log(alpha)

    def inside(rate: float) -> bool:
        return -failures * log(rate) - clean * log1p(-rate) <= allowed

    seen = failures / runs
    return _edge(inside, within=seen, outside=0.0), _edge(inside, within=seen, outside=1.0)


def _edge(inside: Callable[[float], bool], within: float, outside: float) -> float:
    """Return where `inside` ends between two rates, on the outer side: the interval is never too narrow.

    Neither of the two rates is asked about; where they are the same it is that one.
    """
    while (middle := (within + outside) / 2) not in (within, outside):
        if inside(middle):
            within = middle
        else:
            outside = middle
    return outside


def _log_e_beta(failures: int, runs: int, max_rate: float, a: float, b: float) -> float:
    from scipy.special import betainc

    clean = runs - failures
    below = float(betainc(a + failures, b + clean, max_rate))
    if below == 0:  # so many failures that a float holds no evidence at all
        return -inf
    bet = log(below) + _log_beta(a + failures, b + clean)
    spread = log(float(betainc(a, b, max_rate))) + _log_beta(a, b)
    return bet - spread - failures * log(max_rate) - clean * log1p(-max_rate)


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
