from decimal import Decimal
from fractions import Fraction

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.exact import as_decimal, chance, confidence, percent, proportion


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        ("0.10", Fraction(1, 10)),
        (".05", Fraction(1, 20)),
        (Decimal("0.999"), Fraction(999, 1000)),
        ("1e-100", Fraction(1, 10**100)),
        ("0." + "3" * 100, Fraction(int("3" * 100), 10**100)),
    ],
)
def test_a_proportion_is_what_was_written(value: str | Decimal, exact: Fraction) -> None:
    assert proportion(value, "risk") == exact


NO_RATE = "no number of clean runs rules out every failure; write the smallest one that matters."
NO_EVIDENCE = 'that asks for no evidence at all; write a number below 1, such as "0.10".'
NO_NUMBER = 'write a decimal number between 0 and 1, such as "0.10".'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, '0.1: write it as a decimal string, such as "0.1": a float is not exact.'),
        (1, '1: write it as a decimal string, such as "1": a float is not exact.'),
        ("0", f"0: {NO_RATE}"),
        ("-0.1", f"-0.1: {NO_RATE}"),
        ("1", f"1: {NO_EVIDENCE}"),
        ("1.0", f"1.0: {NO_EVIDENCE}"),
        ("ten", f"'ten': {NO_NUMBER}"),
        ("nan", f"'nan': {NO_NUMBER}"),
        (Decimal("Infinity"), f"'Infinity': {NO_NUMBER}"),
        ("1e-101", "1.000e-101: it has more than 100 decimals; write it shorter."),
    ],
)
def test_what_is_no_proportion_is_refused_with_what_to_do(value: object, text: str) -> None:
    with pytest.raises(UsageRefused) as refused:
        proportion(value, "risk")  # type: ignore[arg-type]
    assert refused.value.text == f"Couldn't use risk = {text}"
    assert refused.value.slug == "rate-out-of-range"


def test_a_fraction_of_tens_is_an_exact_decimal() -> None:
    assert as_decimal(Fraction(1, 8)) == Decimal("0.125")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0.10", "10 %"),
        ("0.001", "0.1 %"),
        ("0.0982", "9.82 %"),
        (Decimal("1.0000"), "100 %"),
        ("0.00000001", "0.000001 %"),
        (f"0.{'9' * 40}", f"99.{'9' * 38} %"),
    ],
)
def test_a_percentage_has_no_trailing_zeros(value: str | Decimal, text: str) -> None:
    assert percent(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0.8647", "0.86"),
        ("0.04710", "0.047"),
        ("0.000774", "0.00077"),
        ("0.5", "0.5"),
        ("1", "1"),
        ("0.994", "0.99"),
        # Likely is not certain.
        ("0.995", "0.995"),
        ("0.9986", "0.9986"),
        ("0.99857", "0.9986"),
        ("0.99999999", "0.999999"),
        # Unlikely is not impossible.
        ("1e-30", "0.000001"),
        ("0", "0"),
    ],
)
def test_a_chance_has_two_significant_digits(value: str, text: str) -> None:
    assert chance(Decimal(value)) == text


def test_no_confidence_is_rounded_to_certainty() -> None:
    assert confidence("0.05") == "95 %"
    assert confidence("1e-40") == f"99.{'9' * 38} %"
