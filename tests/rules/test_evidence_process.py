from decimal import Decimal
from fractions import Fraction
from math import inf

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.binomial import upper_bound
from pytest_regcase.rules.evidence_process import (
    confidence_sequence,
    e_beta,
    e_beta_runs,
    e_point,
    e_process_bounds,
    e_two_points,
)
from pytest_regcase.rules.operating import acceptance_runs
from tests.rules.plan_samples import walked

TENTH = Fraction(1, 10)
RATES = ("0.02", "0.1", "0.37", "0.5", "0.9", "0.99")


def test_a_bet_on_one_rate_is_its_likelihood_ratio() -> None:
    assert e_point(0, 29, TENTH, Fraction(0)) == Fraction(10, 9) ** 29
    assert e_point(1, 29, TENTH, Fraction(0)) == 0
    assert e_point(2, 5, TENTH, Fraction(1, 100)) == Fraction(1, 100) * Fraction(11, 10) ** 3
    assert e_point(0, 0, TENTH, Fraction(0)) == 1
    assert e_point(1, 3, Decimal("0.2"), Decimal("0.1")) == Decimal("0.6328125")


def test_half_is_bet_on_no_failure_and_half_on_a_tenth_of_the_rate() -> None:
    assert e_two_points(0, 0, TENTH) == 1
    assert e_two_points(0, 3, TENTH) == (Fraction(10, 9) ** 3 + Fraction(11, 10) ** 3) / 2
    assert e_two_points(2, 5, TENTH) == Fraction(11, 10) ** 3 / 200


@pytest.mark.parametrize("true_rate", [TENTH, Fraction(1, 5), Fraction(9, 10), Fraction(1)])
@pytest.mark.parametrize(("failures", "runs"), [(0, 0), (0, 7), (1, 3), (3, 9)])
def test_one_more_run_does_not_raise_the_e_value_on_average(failures: int, runs: int, true_rate: Fraction) -> None:
    """What makes it evidence at every look: with nothing fixed, no strategy of stopping can expect to gain."""
    afterwards = true_rate * e_two_points(failures + 1, runs + 1, TENTH) + (1 - true_rate) * e_two_points(
        failures, runs + 1, TENTH
    )
    now = e_two_points(failures, runs, TENTH)
    assert afterwards <= now
    assert (afterwards == now) is (true_rate == TENTH)


def test_the_bounds_at_the_defaults() -> None:
    assert e_process_bounds("0.10", "0.05") == (30, 64, 90, 115)


@pytest.mark.parametrize("risk", ["0.01", "0.05", "0.3", "0.9"])
@pytest.mark.parametrize("rate", RATES)
def test_each_bound_is_the_first_run_whose_e_value_reaches_one_over_the_risk(rate: str, risk: str) -> None:
    bounds = e_process_bounds(rate, risk)
    assert len(bounds) == 4
    for failures, bound in enumerate(bounds):
        assert e_two_points(failures, bound, Fraction(rate)) >= 1 / Fraction(risk)
        fewest = failures + 1
        assert bound == fewest or e_two_points(failures, bound - 1, Fraction(rate)) < 1 / Fraction(risk)


def test_an_e_value_of_exactly_one_over_the_risk_is_enough() -> None:
    risk = Decimal("0.46875")
    assert e_two_points(0, 1, Fraction("0.544")) == 1 / Fraction(risk)
    assert e_process_bounds("0.544", risk)[0] == 1
    assert e_process_bounds("0.544", "0.46874" + "9" * 60)[0] == 2


@pytest.mark.parametrize(("rate", "risk", "name"), [("0", "0.05", "max_failure_rate"), ("0.1", "1", "risk")])
def test_rates_and_risks_out_of_range_are_refused_by_name(rate: str, risk: str, name: str) -> None:
    for ask in (
        lambda: e_process_bounds(rate, risk),
        lambda: e_beta_runs(0, rate, risk, 1, 1),
    ):
        with pytest.raises(UsageRefused, match=rf"^Couldn't use {name} = "):
            ask()


def test_a_spread_bet_equals_the_integral_over_the_rates_below() -> None:
    steps = 20_000
    for failures, runs, a, b in ((0, 12, 1.0, 1.0), (2, 30, 1.0, 3.0), (1, 9, 2.0, 1.0)):
        weights = bets = 0.0
        for step in range(steps):
            rate = 0.1 * (step + 0.5) / steps
            weight = rate ** (a - 1) * (1 - rate) ** (b - 1)
            weights += weight
            bets += weight * (rate / 0.1) ** failures * ((1 - rate) / 0.9) ** (runs - failures)
        assert e_beta(failures, runs, "0.1", a, b) == pytest.approx(bets / weights, rel=1e-6)


def test_no_run_is_no_evidence() -> None:
    assert e_beta(0, 0, "0.1", 0.5, 0.5) == pytest.approx(1, rel=1e-12)


def test_evidence_beyond_a_float_is_infinite_or_nothing() -> None:
    assert 7e307 < e_beta(0, 6790, "0.1", 1, 1) < inf
    assert e_beta(0, 6900, "0.1", 1, 1) == inf
    assert e_beta(2000, 2000, "0.1", 1, 1) == 0


@pytest.mark.parametrize(
    ("failures", "a", "b", "runs"),
    [(0, 1, 1, 43), (1, 1, 1, 66), (2, 1, 1, 85), (0, 0.5, 0.5, 36), (1, 0.05, 0.5, 79), (5, 1, 1, None)],
)
def test_the_first_run_at_which_a_spread_bet_claims(failures: int, a: float, b: float, runs: int | None) -> None:
    found = e_beta_runs(failures, "0.1", "0.05", a, b)
    assert runs in (None, found)
    assert e_beta(failures, found, "0.1", a, b) >= 20 > e_beta(failures, found - 1, "0.1", a, b)


def test_a_spread_bet_claims_on_no_failure_alone() -> None:
    assert e_beta_runs(3, "0.999999", "0.999", 1, 1) == 4
    assert e_beta_runs(0, "0.999999", "0.9", 1, 1) == 1


@pytest.mark.parametrize(
    ("failures", "runs", "a", "b", "ends"),
    [
        (0, 30, 1, 1, (0.0, 0.19291313944028204)),
        (3, 30, 1, 1, (0.007894801822106126, 0.3487254188288328)),
        (1, 200, 0.5, 0.5, (5.001127909609052e-06, 0.044693654058565284)),
        (30, 30, 1, 1, (1 - 0.19291313944028204, 1.0)),
        (0, 0, 1, 1, (0.0, 1.0)),
    ],
)
def test_the_ends_of_the_confidence_sequence(
    failures: int, runs: int, a: float, b: float, ends: tuple[float, float]
) -> None:
    assert confidence_sequence(failures, runs, "0.05", a, b) == pytest.approx(ends, rel=1e-9)


def test_the_sequence_spreads_its_bets_evenly_unless_told_otherwise() -> None:
    assert confidence_sequence(3, 30, "0.05") == confidence_sequence(3, 30, "0.05", 1.0, 1.0)


def test_the_ends_are_on_the_outer_side() -> None:
    lower, upper = confidence_sequence(3, 30, "0.05")
    # The ratio at which a rate drops out: B(4, 28) / (p^3 (1-p)^27) > 20, with B(4, 28) = 1/(28 C(31, 3)).
    for end in (lower, upper):
        rate = Fraction(end)
        ratio = Fraction(1, 28 * 4495) / (rate**3 * (1 - rate) ** 27)
        assert float(ratio) == pytest.approx(20, rel=1e-9)
        assert ratio > Fraction(20) * (1 - Fraction(1, 10**13))


@pytest.mark.parametrize(("failures", "runs"), [(-1, 3), (4, 3)])
def test_counts_that_cannot_be_are_refused(failures: int, runs: int) -> None:
    with pytest.raises(UsageRefused) as caught:
        confidence_sequence(failures, runs, "0.05")
    assert caught.value.text == (
        f"Couldn't give a confidence sequence: {failures} failures of {runs} runs cannot be.\n"
        "Give 0 <= failures <= runs."
    )


def test_a_risk_out_of_range_is_refused_by_name() -> None:
    with pytest.raises(UsageRefused, match=r"^Couldn't use risk = 1: "):
        confidence_sequence(0, 0, "1")
    with pytest.raises(UsageRefused, match=r"^Couldn't use max_failure_rate = 1: "):
        e_beta(0, 3, "1", 1, 1)


def test_an_interval_for_a_fixed_number_of_runs_does_not_hold_when_it_is_read_after_each_run() -> None:
    """Pitfall 20: claiming as soon as some reading is below 10 %, with up to 5 failures, has 10 %, not 5 %."""
    fixed = tuple(acceptance_runs(failures, "0.1", "0.05") for failures in range(6))
    for failures, runs in enumerate(fixed):
        assert upper_bound(failures, runs, "0.05") <= Decimal("0.1") < upper_bound(failures, runs - 1, "0.05")
    assert walked(fixed, TENTH).risk > Fraction(2, 20)

    def first_below(failures: int) -> int:
        return next(n for n in range(failures, 400) if confidence_sequence(failures, n, "0.05")[1] <= 0.1)

    always = tuple(first_below(failures) for failures in range(6))
    assert walked(always, TENTH).risk <= Fraction(1, 20)
    assert all(later > earlier for earlier, later in zip(fixed, always, strict=True))
