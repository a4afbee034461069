from decimal import Decimal
from fractions import Fraction

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.rerun import clean_reruns, risk_over_fixes, unchanged_probability


@pytest.mark.parametrize(
    ("rate", "risk", "runs"),
    [
        ("0.10", "0.05", 29),
        (".1", "0.05", 29),
        ("0.05", "0.05", 59),
        ("0.01", "0.05", 299),
        ("0.0001", "0.05", 29956),
        ("0.5", "0.9", 1),
        # Exact ties, which logarithms in floating point round up.
        ("0.1", "0.729", 3),
        ("0.2", "0.64", 2),
        ("0.2", "0.512", 3),
        ("0.5", "0.125", 3),
        # Ties that logarithms round up at any precision.
        ("0.3", "0.343", 3),
        ("0.2", "0.2097152", 7),
        # A hair off the tie: below it one run more is needed.
        ("0.5", "0.1249999999999999999999999999999999999999", 4),
        ("0.5", "0.1250000000000000000000000000000000000001", 3),
    ],
)
def test_clean_reruns(rate: str, risk: str, runs: int) -> None:
    assert clean_reruns(rate, risk) == runs
    assert clean_reruns(Decimal(rate), Decimal(risk)) == runs


def test_a_very_small_rate_needs_no_huge_powers() -> None:
    assert clean_reruns("0.000000001", "0.05") == 2995732273
    assert str(clean_reruns("1e-100", "0.05")).startswith("299573227355")


@pytest.mark.parametrize("value", ["0", "1", "nan"])
def test_a_rate_or_risk_that_is_none_is_refused_by_its_name(value: str) -> None:
    with pytest.raises(UsageRefused, match="use max_failure_rate ="):
        clean_reruns(value, "0.05")
    with pytest.raises(UsageRefused, match="use risk ="):
        clean_reruns("0.1", value)
    with pytest.raises(UsageRefused, match="use max_failure_rate ="):
        risk_over_fixes(value, 29, 1)


def test_an_unchanged_rate_may_pass_unseen() -> None:
    assert unchanged_probability(1, 2, 3) == Fraction(1, 8)
    assert float(unchanged_probability(1, 200, 29)) == pytest.approx(0.8647, abs=1e-4)
    assert unchanged_probability(0, 5, 29) == 1
    assert unchanged_probability(5, 5, 1) == 0
    assert unchanged_probability(5, 5, 0) == 1


@pytest.mark.parametrize(
    ("failures", "trials", "clean"), [(1, 0, 29), (0, 0, 29), (3, 2, 29), (-1, 2, 29), (1, 2, -1)]
)
def test_a_baseline_that_cannot_be_is_refused(failures: int, trials: int, clean: int) -> None:
    with pytest.raises(UsageRefused) as refused:
        unchanged_probability(failures, trials, clean)
    assert refused.value.text == (
        f"Couldn't use the baseline: {failures} failures of {trials} trials, {clean} clean runs.\n"
        "Give at least one trial, 0 <= failures <= trials, and no negative number of runs."
    )


def test_every_further_fix_adds_to_the_risk() -> None:
    assert float(risk_over_fixes("0.10", 29, 1)) == pytest.approx(0.0471, abs=1e-4)
    assert float(risk_over_fixes("0.10", 29, 3)) == pytest.approx(0.1347, abs=1e-4)
    assert float(risk_over_fixes("0.10", 29, 10)) == pytest.approx(0.383, abs=1e-3)
    assert risk_over_fixes("0.5", 1, 2) == Fraction(3, 4)


def test_chances_over_very_many_runs_are_computed_at_once() -> None:
    runs = clean_reruns("0.000000001", "0.05")
    assert float(unchanged_probability(1, 10**9, runs)) == pytest.approx(0.05, abs=1e-9)
    assert float(risk_over_fixes("0.000000001", runs, 2)) == pytest.approx(0.0975, abs=1e-9)
    # Fifty digits, not those of the caller's context.
    assert len(unchanged_probability(1, 3, 200).as_tuple().digits) == 50
    assert len(risk_over_fixes("0.1", 100, 3).as_tuple().digits) >= 45
