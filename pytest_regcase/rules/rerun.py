"""How many clean reruns rule a failure rate out, and what clean reruns do not show.

Knows exact rational arithmetic on decimal strings and nothing of cases, ledgers or clocks. Formulas:
(1 - rate)^n <= risk for the zero-failure rule; the plug-in chance that an unchanged failure rate passes unseen.
"""

from decimal import ROUND_CEILING, Decimal, localcontext

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.exact import MOST_DECIMALS, Exact, as_decimal, proportion

_LOGARITHM_DIGITS = 80 + 2 * MOST_DECIMALS
_NEAR_TIE = Decimal("1e-30")

_CHANCE_DIGITS = 50
"""Exact powers of a fraction would have as many digits as there are runs, and a small rate asks for millions."""


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
        context.prec = _LOGARITHM_DIGITS
        runs = as_decimal(alpha).ln() / as_decimal(1 - rate).ln()
        nearest = runs.to_integral_value()
        if runs.quantize(_NEAR_TIE) != nearest:
            return int(runs.to_integral_value(rounding=ROUND_CEILING))
    # Logarithms cannot tell a tie from a near miss. Exact powers can, and are cheap here: a tie needs a risk that
    # was written with about as many digits as there are runs.
    n = int(nearest)
    return n if (1 - rate) ** n <= alpha else n + 1


def unchanged_probability(failures: int, trials: int, clean: int) -> Decimal:
    """Return how likely `clean` clean runs in a row are if the rate still is `failures` of `trials`.

    The plug-in value (1 - k/n)^m, to 50 digits: it takes the baseline at its word, so it says what the clean runs
    do not show, and is no test.

    Raises:
        UsageRefused: no trial, or counts that cannot be.
    """
    if trials < 1 or not 0 <= failures <= trials or clean < 0:
        raise UsageRefused(
            f"Couldn't use the baseline: {failures} failures of {trials} trials, {clean} clean runs.\n"
            "Give at least one trial, 0 <= failures <= trials, and no negative number of runs."
        )
    if clean == 0:
        return Decimal(1)  # also where everything failed: 0^0
    with localcontext() as context:
        context.prec = _CHANCE_DIGITS
        return (Decimal(trials - failures) / trials) ** clean


def risk_over_fixes(max_rate: Exact, runs: int, fixes: int) -> Decimal:
    """Return the risk that at least one of `fixes` ineffective fixes passes `runs` clean runs at exactly
    `max_rate`, to 50 digits.

    1 - (1 - (1 - rate)^n)^J for independent fix attempts (statistics page, section 3).
    """
    with localcontext() as context:
        context.prec = _CHANCE_DIGITS
        passes = (1 - as_decimal(proportion(max_rate, "max_failure_rate"))) ** runs
        return 1 - (1 - passes) ** fixes
