"""Proportions as they were written: decimal strings, kept exact.

Knows numbers between 0 and 1 and nothing of what they are the rate of.
"""

from contextlib import suppress
from decimal import Context, Decimal, InvalidOperation, localcontext
from fractions import Fraction

from pytest_regcase.errors import UsageRefused

Exact = str | Decimal
"""A proportion as it was written. A float is refused: 0.1 is not one tenth in binary."""

MOST_DECIMALS = 100
"""A proportion with more decimals is refused."""

_SMALLEST_CHANCE = Decimal("0.000001")
_EXACT = Context(prec=2 * MOST_DECIMALS)


def proportion(value: Exact, name: str) -> Fraction:
    """Return `value` as an exact fraction strictly between 0 and 1.

    Raises:
        UsageRefused: anything else; the text names `name`, says what was found and what to write instead.
    """
    if not isinstance(value, str | Decimal):
        raise _refused(name, repr(value), f'write it as a decimal string, such as "{value}": a float is not exact')
    exact = finite(value)
    if exact is None:
        raise _refused(name, repr(str(value)), 'write a decimal number between 0 and 1, such as "0.10"')
    if int(exact.as_tuple().exponent) < -MOST_DECIMALS:
        raise _refused(name, f"{exact:.3e}", f"it has more than {MOST_DECIMALS} decimals; write it shorter")
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


def finite(value: object) -> Decimal | None:
    """Return a decimal string or Decimal as its number; None for anything else: a float, text, infinity."""
    if isinstance(value, str | Decimal):
        with suppress(InvalidOperation):
            number = Decimal(value)
            return number if number.is_finite() else None
    return None


def _refused(name: str, found: str, what_to_do: str) -> UsageRefused:
    return UsageRefused(f"Couldn't use {name} = {found}: {what_to_do}.", slug="rate-out-of-range")


def as_decimal(exact: Fraction) -> Decimal:
    """Return a fraction as a decimal at the precision of the current decimal context.

    The denominators here divide powers of ten, so it is exact where the caller's precision is high enough.
    """
    return Decimal(exact.numerator) / Decimal(exact.denominator)


def percent(value: Exact) -> str:
    """Return a proportion as it is read, exact and without trailing zeros: ``10 %``, ``0.1 %``."""
    with localcontext(_EXACT):
        return f"{(Decimal(value) * 100).normalize():f} %"


def confidence(risk: Exact) -> str:
    """Return 1 - `risk` as it is read, exact: however small a risk is, ``100 %`` is never said."""
    with localcontext(_EXACT):
        return percent(1 - Decimal(risk))


def chance(value: Decimal) -> str:
    """Return a chance as a decimal string with two significant digits, never 0 for what is only unlikely.

    Nor 1 for what is only likely: near 1 the two digits are those of what is missing (0.9986, not 1.0). For
    display: it is rounded to the nearest, so nothing may be decided on it.
    """
    if value in (0, 1):
        return f"{value:.0f}"
    shown = Decimal(f"{max(value, _SMALLEST_CHANCE):.2g}")
    if shown == 1:
        with localcontext(_EXACT):
            shown = 1 - Decimal(f"{max(1 - value, _SMALLEST_CHANCE):.2g}")
    return f"{shown:f}"
