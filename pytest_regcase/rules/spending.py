"""Risk over several fix attempts: what each may spend so that all together stay at the stated risk.

Knows plans and proportions. Each claimed fix that does not work is another chance of a false claim; a count that
starts again after a failure is an attempt too. Source: statistics page, section 3.
"""

from decimal import ROUND_FLOOR, Decimal, localcontext

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.exact import Exact, as_decimal, proportion
from pytest_regcase.rules.plans import plan_for
from pytest_regcase.rules.sequential import Plan

_DIGITS = 100
_SMALLEST = Decimal("1e-30")
# Rounded up, so that what an attempt may spend is never rounded up.
_PI = Decimal("3.1415926535897932384626433832795028841971693993752")


def spent_risk(risk: Exact, attempt: int) -> Decimal:
    """Return the risk that fix attempt number `attempt` (from 1) may spend: 6 risk / (pi^2 attempt^2).

    Over all attempts, however many, these add up to no more than `risk`. Rounded down to 30 decimals.

    Raises:
        UsageRefused: a risk that is not strictly between 0 and 1; an attempt below 1; a share below 1e-30.
    """
    if attempt < 1:
        raise UsageRefused(f"Couldn't share out the risk to fix attempt {attempt}.\nThe first claimed fix is 1.")
    with localcontext() as context:
        context.prec = _DIGITS
        exact = 6 * as_decimal(proportion(risk, "risk")) / (_PI * attempt) ** 2
        share = exact.quantize(_SMALLEST, rounding=ROUND_FLOOR)
    if not share:
        raise UsageRefused(
            f"Couldn't share out the risk {risk} to fix attempt {attempt}: its share is below {_SMALLEST}.\n"
            "State a larger risk."
        )
    return share


def spent_plan(name: str, max_rate: Exact, risk: Exact, attempt: int) -> Plan:
    """Return the plan for fix attempt number `attempt` if all attempts together may spend `risk`.

    `zero` at 0.10 and 0.05 needs 34, 47, 55, 60, 64 clean runs for the attempts 1 to 5.

    Raises:
        UsageRefused: as `plan_for` and `spent_risk`.
    """
    return plan_for(name, max_rate, spent_risk(risk, attempt))
