from decimal import Decimal
from fractions import Fraction
from math import pi, prod

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.operating import exact_risk
from pytest_regcase.rules.plans import plan_for
from pytest_regcase.rules.spending import spent_plan, spent_risk
from tests.rules.plan_samples import SHIPPED


def test_the_share_falls_with_the_square_of_the_attempt() -> None:
    for attempt in (1, 2, 7, 100):
        share = spent_risk("0.05", attempt)
        assert float(share) == pytest.approx(6 * 0.05 / (pi**2 * attempt**2), rel=1e-14)
    assert spent_risk("0.05", 1) == Decimal("0.030396355092701331433163838962")


def test_all_shares_together_stay_within_the_risk() -> None:
    shares = [Fraction(spent_risk("0.05", attempt)) for attempt in range(1, 2001)]
    left = Fraction("0.05") - sum(shares)
    # What later attempts may still spend: their shares add up to less than 6 risk / (pi^2 2000).
    assert 0 < left < Fraction(6 * 0.05 / (pi**2 * 2000))
    # Rounded down, so that the sum stays within whatever the number of attempts.
    exact = Decimal("0.0303963550927013314331638389629182916713398")
    assert exact - Decimal("1e-30") < spent_risk("0.05", 1) < exact


def test_a_share_is_a_risk_that_every_plan_takes() -> None:
    assert [spent_plan("zero", "0.10", "0.05", attempt).bounds for attempt in range(1, 6)] == [
        (34,),
        (47,),
        (55,),
        (60,),
        (64,),
    ]
    for name in SHIPPED:
        plan = spent_plan(name, "0.10", "0.05", 3)
        assert plan == plan_for(name, "0.10", spent_risk("0.05", 3))
        assert exact_risk(plan, "0.10") <= Fraction(spent_risk("0.05", 3))


def test_fix_attempts_that_are_not_counted_raise_the_risk() -> None:
    """Pitfall 13: ten fixes that change nothing, each held to 5 %, pass one of them with 38 %."""
    each = exact_risk(plan_for("zero", "0.10", "0.05"), "0.10")
    assert [float(1 - (1 - each) ** fixes) for fixes in (3, 5, 10)] == pytest.approx(
        [0.135, 0.214, 0.383], abs=1e-3
    )
    for name in SHIPPED:
        shared = [exact_risk(spent_plan(name, "0.10", "0.05", fix), "0.10") for fix in range(1, 11)]
        assert 1 - prod(1 - risk for risk in shared) < Fraction("0.05")


@pytest.mark.parametrize("attempt", [0, -1])
def test_an_attempt_below_one_is_refused(attempt: int) -> None:
    with pytest.raises(UsageRefused) as caught:
        spent_risk("0.05", attempt)
    assert caught.value.text == (
        f"Couldn't share out the risk to fix attempt {attempt}.\nThe first claimed fix is 1."
    )


def test_a_share_that_would_round_to_nothing_is_refused() -> None:
    assert spent_risk("1e-29", 1) == Decimal("6e-30")
    with pytest.raises(UsageRefused) as caught:
        spent_risk("1e-30", 2)
    assert caught.value.text == (
        "Couldn't share out the risk 1e-30 to fix attempt 2: its share is below 1E-30.\nState a larger risk."
    )


def test_a_risk_out_of_range_is_refused_by_name() -> None:
    with pytest.raises(UsageRefused, match=r"^Couldn't use risk = 1: "):
        spent_risk("1", 1)
