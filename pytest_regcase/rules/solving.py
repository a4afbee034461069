"""The smallest number of runs for which a condition on an exact probability holds.

Knows numbers only. A search on floats is off by one at ties; a search on fractions of a million digits never ends.
So a value is compared at a precision far above what any difference needs, and exactly where even that cannot tell.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Protocol, TypeVar

from pytest_regcase.rules.exact import MOST_DECIMALS, as_decimal

Number = TypeVar("Number", Decimal, Fraction)
"""What the formulas of the plans are computed in: decimals of many digits, or fractions."""

_DIGITS = 80 + 2 * MOST_DECIMALS
_NEAR_TIE = Decimal("1e-150")  # far below the smallest rate: that is how much one run changes


class OfRate(Protocol):
    """A positive number that depends on a failure rate; its precision is the caller's."""

    def __call__(self, rate: Number, /) -> Number:
        """Return the value at `rate`."""
        ...


def at_most(value: OfRate, rate: Fraction, limit: Fraction) -> bool:
    """Say whether the value at `rate` is `limit` or less, exactly: a tie is not more."""
    with localcontext() as context:
        context.prec = _DIGITS
        found, allowed = value(as_decimal(rate)), as_decimal(limit)
        if abs(found - allowed) > allowed * _NEAR_TIE:
            return found < allowed
    # A true tie needs a limit that was written with about as many digits as there are runs: few runs, so cheap.
    return value(rate) <= limit


def smallest_runs(lowest: int, holds: Callable[[int], bool]) -> int:
    """Return the smallest number from `lowest` (at least 1) on for which `holds` is true.

    Once true it must stay true, and it must become true: the search doubles, then halves.
    """
    below = above = lowest
    while not holds(above):
        below, above = above, 2 * above
    while above - below > 1:
        middle = (below + above) // 2
        if holds(middle):
            above = middle
        else:
            below = middle
    return above


def power(base: Number, exponent: int) -> Number:
    """Return `base` to a whole exponent, 1 for the exponent 0 whatever the base (decimals leave 0^0 undefined)."""
    return base**exponent if exponent else type(base)(1)
