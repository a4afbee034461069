"""How many clean reruns rule a failure rate out, and what clean reruns do not show.

Knows exact rational arithmetic on decimal strings and nothing of cases, ledgers or clocks. scipy is imported
inside the one branch that needs it. Formulas: (1 - rate)^n <= risk for the zero-failure rule; the exact
one-sided Clopper-Pearson bound; the plug-in chance that an unchanged failure rate passes unseen.
"""

from decimal import ROUND_CEILING, Decimal, InvalidOperation, localcontext
from fractions import Fraction

from pytest_regcase.errors import UsageRefused

Exact = str | Decimal
"""A proportion as it was written. A float is refused: 0.1 is not one tenth in binary."""

_NEAR_TIE = Decimal("1e-30")
_MOST_DECIMALS = 100


def clean_reruns(max_rate: Exact, risk: Exact) -> int:
    """Return the smallest n with (1 - `max_rate`)^n <= `risk`, ties exact.

    That many clean independent runs, and nothing else, rule out a rate of `max_rate` or more at `risk`. 0.10 and
    0.05 give 29.

    Raises:
        UsageRefused: a float, not a decimal number, or not strictly between 0 and 1.
    """
    rate = proportion(max_rate, "max_failure_rate")
    alpha = proportion(risk, "risk")
    with localcontext() as context:
        context.prec = 80 + 2 * _MOST_DECIMALS
        runs = _decimal(alpha).ln() / _decimal(1 - rate).ln()
        nearest = runs.to_integral_value()
        if abs(runs - nearest) > _NEAR_TIE:
            return int(runs.to_integral_value(rounding=ROUND_CEILING))
    # Logarithms cannot tell a tie from a near miss. Exact powers can, and are cheap here: a tie needs a risk that
    # was written with about as many digits as there are runs.
    n = int(nearest)
    return n if (1 - rate) ** n <= alpha else n + 1


def upper_bound(failures: int, attempts: int, risk: Exact) -> Decimal:
    """Return the exact one-sided upper bound on the failure rate after `failures` of `attempts`.

    Clopper-Pearson at confidence 1 - `risk`; with no failure it is the closed form 1 - risk^(1/n). No attempt
    bounds nothing: 1. The bound holds for a number of attempts that was fixed beforehand.

    Raises:
        UsageRefused: a risk that is not strictly between 0 and 1, or counts that cannot be.
    """
    alpha = proportion(risk, "risk")
    if not 0 <= failures <= attempts:
        raise UsageRefused(
            f"Couldn't bound a failure rate: {failures} failures of {attempts} attempts cannot be.\n"
            "Give 0 <= failures <= attempts."
        )
    if failures == attempts:
        return Decimal(1)
    if failures == 0:
        with localcontext() as context:
            context.prec = 50
            return 1 - _decimal(alpha) ** (Decimal(1) / attempts)
    from scipy.special import betainccinv

    return Decimal(repr(float(betainccinv(failures + 1, attempts - failures, float(alpha)))))


def bound_text(bound: Decimal, places: int = 4) -> str:
    """Return `bound` as a decimal string, rounded up: a bound that is printed too low would claim too much."""
    settled = bound.quantize(Decimal("1e-12"))
    return str(settled.quantize(Decimal(1).scaleb(-places), rounding=ROUND_CEILING))


def unchanged_probability(failures: int, trials: int, clean: int) -> Fraction:
    """Return how likely `clean` clean runs in a row are if the rate still is `failures` of `trials`.

    The plug-in value (1 - k/n)^m: it takes the baseline at its word, so it says what the clean runs do not show,
    and is no test.

    Raises:
        UsageRefused: no trial, or counts that cannot be.
    """
    if trials < 1 or not 0 <= failures <= trials or clean < 0:
        raise UsageRefused(
            f"Couldn't use the baseline: {failures} failures of {trials} trials, {clean} clean runs.\n"
            "Give at least one trial, 0 <= failures <= trials, and no negative number of runs."
        )
    return (1 - Fraction(failures, trials)) ** clean


def risk_over_fixes(max_rate: Exact, runs: int, fixes: int) -> Fraction:
    """Return the risk that at least one of `fixes` ineffective fixes passes `runs` clean runs at exactly
    `max_rate`.

    1 - (1 - (1 - rate)^n)^J for independent fix attempts (statistics page, section 3).
    """
    rate = proportion(max_rate, "max_failure_rate")
    return 1 - (1 - (1 - rate) ** runs) ** fixes


def proportion(value: Exact, name: str) -> Fraction:
    """Return `value` as an exact fraction strictly between 0 and 1.

    Raises:
        UsageRefused: anything else; the text names `name`, says what was found and what to write instead.
    """
    if not isinstance(value, str | Decimal):
        raise _refused(name, repr(value), f'write it as a decimal string, such as "{value}": a float is not exact')
    try:
        exact = Decimal(value)
    except InvalidOperation:
        exact = Decimal("nan")
    if not exact.is_finite():
        raise _refused(name, repr(str(value)), 'write a decimal number between 0 and 1, such as "0.10"')
    if int(exact.as_tuple().exponent) < -_MOST_DECIMALS:
        raise _refused(name, f"{exact:.3e}", f"it has more than {_MOST_DECIMALS} decimals; write it shorter")
    if exact <= 0:
        raise _refused(
            name,
            str(value),
            "no number of clean runs rules out every failure; write the smallest one that matters",
        )
    if exact >= 1:
        raise _refused(
            name, str(value), 'that asks for no evidence at all; write a number below 1, such as "0.10"'
        )
    return Fraction(exact)


def _refused(name: str, found: str, what_to_do: str) -> UsageRefused:
    return UsageRefused(f"Couldn't use {name} = {found}: {what_to_do}.", slug="rate-out-of-range")


def _decimal(exact: Fraction) -> Decimal:
    # The denominators here divide powers of ten, so this is exact at the precision set by the caller.
    return Decimal(exact.numerator) / Decimal(exact.denominator)
