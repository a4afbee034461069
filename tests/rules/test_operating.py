from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.operating import (
    Operating,
    acceptance_runs,
    claim_probabilities,
    claim_probability,
    curve,
    exact_risk,
    operating,
    streak_probability,
    streak_wait,
)
from pytest_regcase.rules.sequential import Plan, RunOutcome, decide
from tests.rules.plan_samples import at_most_failed, walked

ALLOW_ONE = Plan(name="allow-one", bounds=(31, 54))
BOUNDS = [(1,), (3,), (2, 2), (2, 4), (1, 1, 5), (2, 4, 4, 7), (5, 6, 7, 8)]
RATES = [Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10)]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("bounds", BOUNDS)
def test_the_exact_risk_is_the_share_of_all_histories_that_decide_accepts(
    bounds: tuple[int, ...], rate: Fraction
) -> None:
    plan = Plan(name="any", bounds=bounds)
    accepted = Fraction(0)
    kinds: tuple[RunOutcome, RunOutcome] = ("clean", "failed")
    for runs in product(kinds, repeat=bounds[-1]):
        result = decide(plan, dict(enumerate(runs, 1)))
        assert result.outcome != "undecided"
        if result.outcome == "accepted":
            failed = runs.count("failed")
            accepted += rate**failed * (1 - rate) ** (len(runs) - failed)
    assert exact_risk(plan, rate) == accepted


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("bounds", [*BOUNDS, (31, 54), (30, 64, 90, 115), (46, 46), (31, 60, 76)])
def test_risk_and_expected_runs_are_those_of_a_walk_run_by_run(bounds: tuple[int, ...], rate: Fraction) -> None:
    plan = Plan(name="any", bounds=bounds)
    slow = walked(bounds, rate)
    assert exact_risk(plan, rate) == slow.risk
    quick = operating(plan, float(rate))
    assert quick.accept == pytest.approx(float(slow.risk), rel=1e-12)
    assert quick.expected_runs == pytest.approx(float(slow.expected_runs), rel=1e-12)


def test_the_claims_are_told_by_their_number_of_failures() -> None:
    half = Fraction(1, 2)
    # 2 clean; or 1 of the first 2 failed, then clean up to run 4; or 2 of the first 4 failed on the way to run 5.
    assert claim_probabilities((2, 4, 5), half) == (Fraction(1, 4), Fraction(1, 8), Fraction(5, 32))
    assert claim_probability((2, 4, 5), half) == Fraction(17, 32)
    assert claim_probability((2, 4, 5), Decimal("0.5")) == Decimal("0.53125")


def test_a_rate_of_zero_claims_at_the_first_bound_and_one_of_one_fails_on_from_the_first_run() -> None:
    assert operating(ALLOW_ONE, 0) == Operating(rate=0, accept=1, expected_runs=31)
    assert operating(ALLOW_ONE, 1) == Operating(rate=1, accept=0, expected_runs=2)
    assert exact_risk(ALLOW_ONE, "0") == 1
    assert exact_risk(ALLOW_ONE, "1") == 0
    assert exact_risk(Plan(name="any", bounds=(1, 1, 5)), "1") == 1


def test_expected_runs_are_right_at_rates_far_below_what_a_float_difference_holds() -> None:
    found = operating(ALLOW_ONE, 1e-25)
    assert found.expected_runs == pytest.approx(31, rel=1e-14)
    assert operating(ALLOW_ONE, 1e-12).expected_runs - 31 == pytest.approx(31 * 23e-12, rel=1e-2)


@pytest.mark.parametrize(
    ("rate", "accept", "expected_runs"),
    [(0.001, 0.999, 31.7), (0.01, 0.914, 35.3), (0.02, 0.747, 35.9), (0.05, 0.306, 29.8), (0.1, 0.0498, 19.1)],
)
def test_what_allow_one_does_at_small_rates(rate: float, accept: float, expected_runs: float) -> None:
    found = operating(ALLOW_ONE, rate)
    assert found.accept == pytest.approx(accept, abs=5e-4)
    assert found.expected_runs == pytest.approx(expected_runs, abs=0.05)


def test_stopping_at_the_first_failure_cuts_the_runs_on_a_case_that_is_not_fixed() -> None:
    zero = Plan(name="zero", bounds=(29,))
    assert operating(zero, 0.1).expected_runs == pytest.approx(9.529, abs=1e-3)
    assert operating(zero, 0.2).expected_runs == pytest.approx(4.992, abs=1e-3)


def test_the_curve_keeps_the_order_of_the_rates() -> None:
    assert curve(ALLOW_ONE, (0.2, 0.0, 0.01)) == tuple(operating(ALLOW_ONE, rate) for rate in (0.2, 0.0, 0.01))


@pytest.mark.parametrize("rate", [-0.1, 1.5])
def test_a_rate_that_is_no_probability_is_refused(rate: float) -> None:
    for ask in (lambda: operating(ALLOW_ONE, rate), lambda: exact_risk(ALLOW_ONE, str(rate))):
        with pytest.raises(UsageRefused) as caught:
            ask()
        assert caught.value.text == (
            f"Couldn't use the failure rate {rate}: it is no probability.\nGive a rate from 0 to 1."
        )


@pytest.mark.parametrize(
    ("rate", "numbers"),
    [
        ("0.01", (299, 473, 628, 773, 913, 1049)),
        ("0.05", (59, 93, 124, 153, 181, 208)),
        ("0.10", (29, 46, 61, 76, 89, 103)),
        ("0.20", (14, 22, 30, 37, 44, 50)),
    ],
)
def test_plans_of_a_fixed_number_of_runs(rate: str, numbers: tuple[int, ...]) -> None:
    assert tuple(acceptance_runs(allowed, rate, "0.05") for allowed in range(6)) == numbers


@pytest.mark.parametrize("rate", ["0.1", "0.3", "0.5", "0.9", "0.99"])
@pytest.mark.parametrize("risk", ["0.01", "0.05", "0.5", "0.9"])
@pytest.mark.parametrize("allowed", [0, 1, 2, 4])
def test_the_number_is_the_smallest_one_that_does(allowed: int, rate: str, risk: str) -> None:
    runs = acceptance_runs(allowed, rate, risk)
    assert at_most_failed(allowed, runs, Fraction(rate)) <= Fraction(risk)
    assert at_most_failed(allowed, runs - 1, Fraction(rate)) > Fraction(risk)


def test_exact_ties_do_not_ask_for_one_run_more() -> None:
    assert acceptance_runs(1, "0.5", "0.6875") == 3
    assert acceptance_runs(1, "0.5", "0.5") == 3  # P(at most 1 of 3) is exactly 1/2
    assert acceptance_runs(1, "0.5", "0.49999999999999999999") == 4
    assert acceptance_runs(0, "0.1", "0.729") == 3


def test_a_negative_number_of_failures_is_refused() -> None:
    with pytest.raises(UsageRefused) as caught:
        acceptance_runs(-1, "0.1", "0.05")
    assert caught.value.text == "Couldn't allow -1 failures.\nGive 0 or more."


@pytest.mark.parametrize(("rate", "risk", "name"), [("0", "0.05", "max_failure_rate"), ("0.1", "1", "risk")])
def test_rates_and_risks_out_of_range_are_refused_by_name(rate: str, risk: str, name: str) -> None:
    with pytest.raises(UsageRefused, match=rf"^Couldn't use {name} = "):
        acceptance_runs(1, rate, risk)


def test_a_counter_that_starts_again_after_each_failure_is_no_test() -> None:
    """Pitfall 5: with nothing changed, 29 in a row come sooner or later."""
    chances = [streak_probability(29, runs, 0.1) for runs in (28, 29, 58, 100, 200, 500)]
    assert chances == pytest.approx([0, 0.9**29, 0.183695, 0.353212, 0.628609, 0.929686], abs=1e-6)
    assert streak_wait(29, 0.1) == pytest.approx(202.308, abs=1e-3)
    zero: Plan = Plan(name="zero", bounds=(29,))
    afterwards: dict[int, RunOutcome] = {1: "failed", **dict.fromkeys(range(2, 502), "clean")}
    assert decide(zero, afterwards).outcome == "refuted"
    assert exact_risk(zero, "0.1") <= Fraction("0.05")


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("runs", [0, 1, 2, 3, 7])
def test_a_row_of_clean_runs_is_as_likely_as_counting_says(length: int, runs: int) -> None:
    chance = sum(
        0.3 ** way.count("f") * 0.7 ** way.count("c")
        for way in map("".join, product("cf", repeat=runs))
        if "c" * length in way
    )
    assert streak_probability(length, runs, 0.3) == pytest.approx(chance, abs=1e-12)


def test_waiting_for_a_row_at_a_rate_of_zero_takes_its_length() -> None:
    assert streak_wait(29, 0) == 29
    assert streak_wait(1, 0.5) == 2


@pytest.mark.parametrize(("rate", "least", "most"), [(1e-9, 0.999, 1), (0.001, 0.999, 1), (0.9, 0, 1e-300)])
def test_no_chance_between_is_held_as_certain(rate: float, least: float, most: float) -> None:
    plan = Plan(name="x", bounds=(1000,) * 51)
    assert least < operating(plan, rate).accept < most
    assert (operating(plan, 0).accept, operating(plan, 1).accept) == (1, 0)
