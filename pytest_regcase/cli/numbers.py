"""Numbers as they are typed on a command line: kept as written, since a float would not be exact.

Knows click and text; what a number means is for the rules to say. What no number can be is refused at once.
"""

import re
from decimal import Decimal, InvalidOperation

import click

_NUMBER = re.compile(r"[+-]?[0-9]*\.?[0-9]*([eE][+-]?[0-9]+)?")


class Share(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A proportion as a decimal string; strictly between 0 and 1 unless `ends` are allowed."""

    name = "decimal"

    def __init__(self, *, ends: bool = False) -> None:
        self.ends = ends

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text as it was given.

        Raises:
            click.BadParameter: it is no decimal number, or not in the range.
        """
        number = _decimal(value)
        inside = number is not None and (0 <= number <= 1 if self.ends else 0 < number < 1)
        if not inside:
            allowed = "from 0 to 1" if self.ends else "above 0 and below 1"
            self.fail(f'{value!r}; allowed: a decimal number {allowed}, such as "0.05".', param, ctx)
        return str(value)


class Amount(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """An amount of money or time: a decimal number that is not negative."""

    name = "number"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        """Return the exact number.

        Raises:
            click.BadParameter: it is no decimal number, negative, or beyond a billion.
        """
        number = _decimal(value)
        if number is None or not 0 <= number <= 10**9:
            self.fail(f"{value!r}; allowed: a decimal number from 0 to a billion, such as 0.35.", param, ctx)
        return number


class Counts(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """K failures of N trials, written K/N."""

    name = "K/N"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return both numbers.

        Raises:
            click.BadParameter: it is not two whole numbers, no trial, or more failures than trials.
        """
        failures, _, trials = str(value).partition("/")
        if not (_is_whole(failures) and _is_whole(trials)):
            self.fail(f"{value!r}; allowed: failures/trials in whole numbers, such as 2/20.", param, ctx)
        counts = int(failures), int(trials)
        if counts[1] < 1 or counts[0] > counts[1]:
            self.fail(f"{value!r}; allowed: at least one trial, and no more failures than trials.", param, ctx)
        return counts


def _decimal(value: object) -> Decimal | None:
    text = str(value)
    if not _NUMBER.fullmatch(text):  # Decimal also reads 0.1_0, the digits of other scripts, and spaces around
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 9
