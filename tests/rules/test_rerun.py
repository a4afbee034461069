import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.binomial import bound_text, upper_bound
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


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (0.1, 'such as "0.1": a float is not exact'),
        ("0", "rules out every failure"),
        ("-0.1", "rules out every failure"),
        ("1", "asks for no evidence"),
        ("1.0", "asks for no evidence"),
        ("2", "asks for no evidence"),
        ("ten", "write a decimal number between 0 and 1"),
        ("nan", "write a decimal number between 0 and 1"),
        ("Infinity", "write a decimal number between 0 and 1"),
        ("1e-101", "more than 100 decimals"),
    ],
)
def test_what_is_no_rate_is_refused_with_what_to_do(value: str, says: str) -> None:
    with pytest.raises(UsageRefused, match=says) as refused:
        clean_reruns(value, "0.05")
    assert "max_failure_rate" in refused.value.text
    assert refused.value.slug == "rate-out-of-range"
    with pytest.raises(UsageRefused, match="Couldn't use risk"):
        clean_reruns("0.1", value)


def test_upper_bound_without_failures_is_the_closed_form() -> None:
    assert upper_bound(0, 29, "0.05") == pytest.approx(Decimal("0.09814462767729575"), abs=Decimal("1e-12"))
    assert upper_bound(0, 1, "0.05") == Decimal("0.95")
    assert upper_bound(0, 2, "0.25") == Decimal("0.5")


def test_upper_bound_ends() -> None:
    assert upper_bound(0, 0, "0.05") == 1
    assert upper_bound(3, 3, "0.05") == 1


def test_upper_bound_with_failures() -> None:
    assert float(upper_bound(1, 30, "0.05")) == pytest.approx(0.14859606865911312, abs=1e-9)


@pytest.mark.parametrize(("failures", "attempts"), [(-1, 3), (4, 3)])
def test_upper_bound_refuses_counts_that_cannot_be(failures: int, attempts: int) -> None:
    with pytest.raises(UsageRefused, match="cannot be"):
        upper_bound(failures, attempts, "0.05")


def test_a_bound_is_printed_rounded_up() -> None:
    assert bound_text(Decimal("0.0981001")) == "0.0982"
    assert bound_text(Decimal("0.95")) == "0.9500"
    # Arithmetic noise behind the twelfth decimal is none of the bound.
    assert bound_text(Decimal("0.95000000000000000000000001")) == "0.9500"


def test_an_unchanged_rate_may_pass_unseen() -> None:
    assert unchanged_probability(1, 2, 3) == Fraction(1, 8)
    assert float(unchanged_probability(1, 200, 29)) == pytest.approx(0.8647, abs=1e-4)
    assert unchanged_probability(0, 5, 29) == 1


@pytest.mark.parametrize(("failures", "trials", "clean"), [(1, 0, 29), (3, 2, 29), (-1, 2, 29), (1, 2, -1)])
def test_a_baseline_that_cannot_be_is_refused(failures: int, trials: int, clean: int) -> None:
    with pytest.raises(UsageRefused, match="baseline"):
        unchanged_probability(failures, trials, clean)


def test_every_further_fix_adds_to_the_risk() -> None:
    assert float(risk_over_fixes("0.10", 29, 1)) == pytest.approx(0.0471, abs=1e-4)
    assert float(risk_over_fixes("0.10", 29, 3)) == pytest.approx(0.1347, abs=1e-4)


def test_reference_values(shared_reference: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads((shared_reference / "statistics.json").read_text(), parse_float=str)["rows"]
    ran = 0
    for row in rows:
        given = {name: str(value) for name, value in row["inputs"].items() if not isinstance(value, list)}
        match row["function"]:
            case "clean_reruns" if given["p"] != "1":  # refused here, by design
                assert clean_reruns(given["p"], given["alpha"]) == row["value"], row["id"]
            case "zero_failure_upper":
                _agrees(upper_bound(0, int(given["n"]), given["alpha"]), row)
            case "cp_upper":
                _agrees(upper_bound(int(given["k"]), int(given["n"]), given["alpha"]), row)
            case _:
                continue
        ran += 1
    with capsys.disabled():
        print(f" [{ran} reference rows]", end="")
    assert ran >= 40


def _agrees(got: Decimal, row: dict[str, object]) -> None:
    tolerance = row["tolerance"]
    assert isinstance(tolerance, dict)
    value = float(str(row["value"]))
    allowed = max(float(tolerance["abs"]), float(tolerance["rel"]) * abs(value))
    assert abs(float(got) - value) <= allowed, row["id"]
