"""A whole suite: how often it is green by chance, and what each case may flake so that it stays so.

Knows rates, numbers of cases and of attempts; knows no case. A rate here is the chance that one attempt of a case
that is in order fails. Everything is computed in decimals of 130 digits or in whole numbers, never in floats.
"""

from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation, localcontext
from fractions import Fraction

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.exact import Exact, as_decimal, proportion

MOST_CASES = 1_000_000
"""A suite with more cases is refused."""
MOST_RERUNS = 100
"""More reruns of a case are refused."""
MOST_GATE_RUNS = 10_000
"""`gate_plan` gives up above this number of attempts a case: no gate affords them."""
MOST_CONFIRM_RUNS = 10
"""`confirm_for` never asks for more: above it a confirm run adds next to nothing to what the gate sees."""

_DIGITS = 130
"""More than MOST_DECIMALS: 1 - (1-R)^(1/N) cancels about as many digits as R has zeros."""
_SETTLED = Decimal("1e-40")
_ROUNDED = Context(prec=20)


def suite_green(rate: Exact, cases: int, reruns: int = 0) -> Decimal:
    """Return the chance that a suite in order is green: (1 - q^(r+1))^N, attempts independent.

    A case passes if any of its 1 + `reruns` attempts passes.

    Raises:
        UsageRefused: a rate outside 0 to 1; no case; a number that is negative or too large.
    """
    return suite_green_bb(rate, "0", cases, reruns)


def suite_green_bb(rate: Exact, correlation: Exact, cases: int, reruns: int) -> Decimal:
    """Return the chance that a suite in order is green when the attempts of a case are correlated.

    (1 - P(all fail))^N with the beta-binomial P of `bb_all_fail`; the cases themselves are independent.

    Raises:
        UsageRefused: a rate or correlation outside 0 to 1; no case; a number that is negative or too large.
    """
    _check_cases(cases)
    all_fail = bb_all_fail(rate, correlation, reruns)
    with localcontext() as context:
        context.prec = _DIGITS
        return (1 - all_fail) ** cases


def bb_all_fail(rate: Exact, correlation: Exact, reruns: int) -> Decimal:
    """Return the chance that all 1 + `reruns` exchangeable attempts of a case fail.

    Beta-binomial: the product over i = 0..r of (q(1-rho) + i rho) / ((1-rho) + i rho). Correlation 0 gives
    q^(r+1); 1 gives q: a rerun then only repeats the first attempt. Estimate the correlation from pairs: the
    chance that the second attempt fails after a failed first one is q + rho (1-q).

    Raises:
        UsageRefused: a rate or correlation outside 0 to 1; a number of reruns that is negative or too large.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        return _all_fail(
            as_decimal(_probability(rate, "rate")),
            as_decimal(_probability(correlation, "correlation")),
            _checked_reruns(reruns),
        )


def flake_budget(false_red: Exact, cases: int, reruns: int = 0, correlation: Exact = "0") -> Decimal:
    """Return the highest flake rate of each case at which the suite is red by chance in `false_red` of runs.

    Uncorrelated it is (1 - (1-R)^(1/N))^(1/(r+1)); correlated, the rate whose `bb_all_fail` is the share of one
    case. To 20 digits. 200 cases, 0.05 and no rerun: 0.000256.

    Raises:
        UsageRefused: a share of false reds that is not strictly between 0 and 1; a correlation outside 0 to 1; no
            case; a number that is negative or too large.
    """
    _check_cases(cases)
    _checked_reruns(reruns)
    share = proportion(false_red, "false_red")
    with localcontext() as context:
        context.prec = _DIGITS
        rho = as_decimal(_probability(correlation, "correlation"))
        allowed = _of_one_case(share, cases)
        return _largest(lambda rate: _all_fail(rate, rho, reruns) <= allowed)


def rerun_pass_prob(failure_rate: Exact, reruns: int) -> Decimal:
    """Return the chance that reruns hide a regression that fails `failure_rate` of attempts, in one CI run.

    1 - f^(r+1): a case that passes if any attempt passes is green although it is broken. A regression of 0.3 with
    two reruns stays unseen in 97 of 100 runs.

    Raises:
        UsageRefused: a rate outside 0 to 1; a number of reruns that is negative or too large.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        return 1 - bb_all_fail(failure_rate, "0", reruns)


def gate_plan(good_rate: Exact, bad_rate: Exact, false_red: Exact, miss: Exact) -> tuple[int, int]:
    """Return the smallest (n, c) of a gate that makes n attempts and is red above c failures; ties exact.

    A case that fails `good_rate` of attempts is red in at most `false_red` of runs, one that fails `bad_rate` is
    green in at most `miss`. With several cases pass the share of one case as `false_red`.

    Raises:
        UsageRefused: a rate or risk that is not strictly between 0 and 1; a bad rate that is not above the good
            one; rates so close that more than MOST_GATE_RUNS attempts are needed.
    """
    good, bad = _Tail(proportion(good_rate, "good_rate")), _Tail(proportion(bad_rate, "bad_rate"))
    allowed_red, allowed_miss = proportion(false_red, "false_red"), proportion(miss, "miss")
    if bad.rate <= good.rate:
        raise UsageRefused(
            f"Couldn't tell a rate of {bad_rate} from {good_rate}: the bad one is not above the good one.\n"
            "Give a bad_rate above good_rate."
        )
    while good.attempts < MOST_GATE_RUNS:
        good.one_more_attempt()
        bad.one_more_attempt()
        while not good.is_at_least(1 - allowed_red):
            good.allow_one_more()
            bad.allow_one_more()
        if bad.is_at_most(allowed_miss):
            return good.attempts, good.failures
    raise UsageRefused(
        f"Couldn't tell a rate of {bad_rate} from {good_rate} in {MOST_GATE_RUNS} attempts.\n"
        "Give rates that lie further apart, or allow more false reds or misses."
    )


def confirm_for(checks: int, false_red: Exact, flake_rate: Exact) -> int:
    """Return the largest m, at most MOST_CONFIRM_RUNS, with which `confirm:m` keeps the share of false reds.

    A failed check is run m times more and is red if any of them fails: P(red) = q (1 - (1-q)^m), so a larger m
    sees more and is red by chance more often. 0: even one confirm run is red too often; the flake rate must come
    down.

    Raises:
        UsageRefused: no check; a share that is not strictly between 0 and 1; a rate outside 0 to 1.
    """
    _check_cases(checks)
    share = proportion(false_red, "false_red")
    with localcontext() as context:
        context.prec = _DIGITS
        rate = as_decimal(_probability(flake_rate, "flake_rate"))
        allowed = _of_one_case(share, checks)
        kept = (m for m in range(1, MOST_CONFIRM_RUNS + 1) if rate * (1 - (1 - rate) ** m) <= allowed)
        return max(kept, default=0)


class _Tail:
    """P(at most `failures` of `attempts` fail), in whole numbers over scale^attempts."""

    def __init__(self, rate: Fraction) -> None:
        self.rate = rate
        self.attempts = self.failures = 0
        self._fails, self._scale = rate.numerator, rate.denominator
        self._passes = self._scale - self._fails
        self._whole = self._at_most = self._exactly = 1

    def one_more_attempt(self) -> None:
        self._whole *= self._scale
        self._at_most = self._at_most * self._scale - self._exactly * self._fails
        self.attempts += 1
        self._exactly = self._exactly * self._passes * self.attempts // (self.attempts - self.failures)

    def allow_one_more(self) -> None:
        left = self.attempts - self.failures
        self.failures += 1
        self._exactly = self._exactly * left * self._fails // (self.failures * self._passes)
        self._at_most += self._exactly

    def is_at_least(self, chance: Fraction) -> bool:
        return self._at_most * chance.denominator >= chance.numerator * self._whole

    def is_at_most(self, chance: Fraction) -> bool:
        return self._at_most * chance.denominator <= chance.numerator * self._whole


def _all_fail(rate: Decimal, correlation: Decimal, reruns: int) -> Decimal:
    # The first factor is the rate itself; written as the others it would be 0/0 at correlation 1.
    chance = rate
    for earlier in range(1, reruns + 1):
        chance *= (rate * (1 - correlation) + earlier * correlation) / (1 - correlation + earlier * correlation)
    return chance


def _of_one_case(false_red: Fraction, cases: int) -> Decimal:
    """The share of one case: 1 - (1-R)^(1/N)."""
    return 1 - as_decimal(1 - false_red) ** (Decimal(1) / cases)


def _largest(keeps: Callable[[Decimal], bool]) -> Decimal:
    """The largest rate that keeps the budget: 0 does, and where one does not, no higher one does."""
    low, high = Decimal(0), Decimal(1)
    while high - low > _SETTLED * low:
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return _ROUNDED.create_decimal(low)


def _probability(value: Exact, name: str) -> Fraction:
    """As `proportion`, and both ends are allowed: a rate that was measured may be 0 or 1."""
    if isinstance(value, str | Decimal):
        try:
            exact = Decimal(value)
        except InvalidOperation:
            return proportion(value, name)
        if exact.is_finite() and exact in (0, 1):
            return Fraction(exact)
    return proportion(value, name)


def _check_cases(cases: int) -> None:
    if not 1 <= cases <= MOST_CASES:
        raise UsageRefused(
            f"Couldn't plan for {cases} cases.\nGive a number of cases from 1 to {MOST_CASES:,}.",
            slug="no-such-suite",
        )


def _checked_reruns(reruns: int) -> int:
    if not 0 <= reruns <= MOST_RERUNS:
        raise UsageRefused(
            f"Couldn't plan for {reruns} reruns.\nGive a number of reruns from 0 to {MOST_RERUNS}.",
            slug="no-such-suite",
        )
    return reruns
