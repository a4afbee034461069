from decimal import Decimal

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.binomial import bound_text, lower_bound, rules_out, upper_bound


def test_upper_bound_without_failures_is_the_closed_form() -> None:
    assert upper_bound(0, 29, "0.05") == pytest.approx(Decimal("0.09814462767729575"), abs=Decimal("1e-16"))
    assert upper_bound(0, 11701, "0.05") == pytest.approx(Decimal("0.000255990839858305"), abs=Decimal("1e-16"))
    assert upper_bound(0, 29, "0.05").as_tuple().exponent == -50
    assert upper_bound(0, 1, "0.05") == Decimal("0.95")
    assert upper_bound(0, 2, "0.25") == Decimal("0.5")


def test_a_bound_is_one_sided() -> None:
    # A two-sided interval ends at 0.1157.
    assert bound_text(upper_bound(0, 30, "0.05")) == "0.0951"
    assert bound_text(upper_bound(0, 30, "0.025")) == "0.1158"
    assert float(lower_bound(3, 10, "0.05")) == pytest.approx(0.08726443391415033, abs=1e-9)


def test_bounds_at_the_ends() -> None:
    assert upper_bound(0, 0, "0.05") == 1
    assert upper_bound(3, 3, "0.05") == 1
    assert lower_bound(0, 0, "0.05") == 0
    assert lower_bound(0, 3, "0.05") == 0
    assert float(lower_bound(1, 1, "0.05")) == pytest.approx(0.05, abs=1e-12)
    assert float(lower_bound(10, 10, "0.05")) == pytest.approx(0.7411344491069477, abs=1e-9)


@pytest.mark.parametrize(
    ("failures", "attempts", "risk", "bound"),
    [
        (1, 30, "0.05", 0.14859606865911312),
        (2, 30, "0.05", 0.19532604365492595),
        (5, 100, "0.025", 0.11283491110546275),
        (1, 200, "0.05", 0.023498470434950704),
    ],
)
def test_upper_bound_with_failures(failures: int, attempts: int, risk: str, bound: float) -> None:
    assert float(upper_bound(failures, attempts, risk)) == pytest.approx(bound, abs=1e-9)


@pytest.mark.parametrize(
    ("failures", "attempts", "risk", "bound"),
    [
        (20, 200, "0.05", 0.06726140110013971),
        (1, 200, "0.05", 0.0002564335872234742),
        (5, 100, "0.025", 0.016431879182052155),
    ],
)
def test_lower_bound_with_failures(failures: int, attempts: int, risk: str, bound: float) -> None:
    assert float(lower_bound(failures, attempts, risk)) == pytest.approx(bound, abs=1e-9)


@pytest.mark.parametrize(("failures", "attempts"), [(-1, 3), (4, 3)])
def test_counts_that_cannot_be_are_refused(failures: int, attempts: int) -> None:
    for ask in (lower_bound, upper_bound):
        with pytest.raises(UsageRefused) as refused:
            ask(failures, attempts, "0.05")
        assert refused.value.text == (
            f"Couldn't bound a failure rate: {failures} failures of {attempts} attempts cannot be.\n"
            "Give 0 <= failures <= attempts."
        )
    with pytest.raises(UsageRefused, match="cannot be"):
        rules_out(failures, attempts, "0.1", "0.05")


@pytest.mark.parametrize("ask", [lower_bound, upper_bound])
@pytest.mark.parametrize("failures", [0, 1, 3])
def test_a_risk_that_is_none_is_refused(ask: object, failures: int) -> None:
    with pytest.raises(UsageRefused, match="Couldn't use risk"):
        ask(failures, 3, "1")  # type: ignore[operator]


def test_a_bound_is_printed_rounded_up() -> None:
    assert bound_text(Decimal("0.0981001")) == "0.0982"
    assert bound_text(Decimal("0.0981001"), 2) == "0.10"
    assert bound_text(Decimal("0.95")) == "0.9500"
    # Arithmetic noise behind the twelfth decimal is none of the bound.
    assert bound_text(Decimal("0.95000000000000000000000001")) == "0.9500"
    assert bound_text(Decimal("0.950000000001")) == "0.9501"
    # What is small is not noise.
    assert bound_text(Decimal("1e-14")) == "0.0001"
    assert bound_text(Decimal("1.04e-11"), 13) == "0.0000000000104"
    assert bound_text(Decimal(0)) == "0.0000"


@pytest.mark.parametrize(
    ("failures", "attempts", "rules"),
    [(0, 28, False), (0, 29, True), (1, 45, False), (1, 46, True), (2, 60, False), (2, 61, True), (0, 0, False)],
)
def test_the_rate_is_ruled_out_from_the_number_of_runs_that_the_failures_ask_for(
    failures: int, attempts: int, rules: bool
) -> None:
    assert rules_out(failures, attempts, "0.10", "0.05") is rules


def test_a_tie_rules_out() -> None:
    assert rules_out(0, 3, "0.1", "0.729")
    assert not rules_out(0, 3, "0.1", "0.7289999999999999999999999999999999999999")
    # 0.9^2 + 2 * 0.1 * 0.9, exactly.
    assert rules_out(1, 2, "0.1", "0.99")
    assert not rules_out(1, 2, "0.1", "0.9899999999999999999999999999999999999999")


def test_many_failures_rule_out_nothing_and_take_no_time() -> None:
    assert not rules_out(9_000, 10_000, "0.001", "0.05")
    assert rules_out(900, 10_000, "0.1", "0.05")
    assert not rules_out(960, 10_000, "0.1", "0.05")
