from decimal import Decimal
from fractions import Fraction

import pytest

from pytest_regcase.rules.solving import Number, at_most, power, smallest_runs


def the_rate(rate: Number) -> Number:
    return rate


def a_third(rate: Number) -> Number:
    return rate / 3


@pytest.mark.parametrize("first", range(1, 12))
@pytest.mark.parametrize("lowest", [1, 2, 7])
def test_the_search_finds_the_smallest_number(lowest: int, first: int) -> None:
    asked: list[int] = []

    def holds(runs: int) -> bool:
        asked.append(runs)
        return runs >= first

    assert smallest_runs(lowest, holds) == max(lowest, first)
    assert min(asked) >= lowest
    assert len(asked) == len(set(asked)) <= 8


def test_a_search_of_a_million_asks_a_few_dozen_times() -> None:
    asked: list[int] = []

    def holds(runs: int) -> bool:
        asked.append(runs)
        return runs >= 10**6

    assert smallest_runs(1, holds) == 10**6
    assert asked[:6] == [1, 2, 4, 8, 16, 32]
    assert len(asked) <= 41


@pytest.mark.parametrize(
    ("limit", "holds"),
    [
        ("0.4", False),
        ("0.5", True),
        ("0.6", True),
        ("0.5" + "0" * 98 + "1", True),
        ("0.4" + "9" * 99, False),
        ("0.5" + "0" * 30 + "1", True),
    ],
)
def test_a_tie_is_at_most_and_the_last_of_100_decimals_counts(limit: str, holds: bool) -> None:
    assert at_most(the_rate, Fraction(1, 2), Fraction(limit)) is holds


def test_a_tie_that_decimals_cannot_write_is_told_exactly() -> None:
    assert at_most(a_third, Fraction(1, 2), Fraction(1, 6))
    assert not at_most(a_third, Fraction(1, 2), Fraction(1, 6) - Fraction(1, 10**200))


def test_where_decimals_can_tell_no_fraction_is_computed() -> None:
    def only_decimals(rate: Number) -> Number:
        assert isinstance(rate, Decimal)
        return rate

    assert at_most(only_decimals, Fraction(1, 3), Fraction(1, 2))
    # As far apart as one run makes at the smallest rate that can be written.
    assert not at_most(only_decimals, Fraction(1, 3) + Fraction(1, 10**101), Fraction(1, 3))


def test_exponent_zero_gives_one_also_for_zero() -> None:
    assert power(Decimal(0), 0) == Decimal(1)
    assert power(Fraction(0), 0) == Fraction(1)
    assert (power(Decimal("0.5"), 3), power(Fraction(1, 3), 2)) == (Decimal("0.125"), Fraction(1, 9))
    assert isinstance(power(Decimal(0), 0), Decimal)
    assert isinstance(power(Fraction(0), 0), Fraction)
