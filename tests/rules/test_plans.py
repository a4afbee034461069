import re
from decimal import Decimal
from fractions import Fraction
from math import log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.operating import acceptance_runs, exact_risk
from pytest_regcase.rules.plans import plan_for, proven
from pytest_regcase.rules.rerun import clean_reruns
from pytest_regcase.rules.sequential import Plan
from tests.rules.plan_samples import DEFAULTS, SHIPPED, walked

NAMES = '"zero", "allow-one", "e-process" or "c:<n>" with n from 0 to 100, such as "c:2"'
RATES = ("0.05", "0.1", "0.2", "0.25", "0.5", "0.9", "0.99")
RISKS = ("0.01", "0.05", "0.2", "0.5", "0.9")
ABOVE = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("zero", (29,)),
        ("allow-one", (31, 54)),
        ("c:0", (29,)),
        ("c:1", (46, 46)),
        ("c:2", (61, 61, 61)),
        ("c:5", (103,) * 6),
        ("e-process", (30, 64, 90, 115)),
    ],
)
def test_the_plans_at_the_defaults(name: str, bounds: tuple[int, ...]) -> None:
    assert plan_for(name, *DEFAULTS) == Plan(name=name, bounds=bounds)


@pytest.mark.parametrize(
    ("name", "chance"), [("zero", 0.0471), ("allow-one", 0.0498), ("c:1", 0.0480), ("e-process", 0.0482)]
)
def test_the_exact_risks_at_the_defaults(name: str, chance: float) -> None:
    assert float(exact_risk(plan_for(name, *DEFAULTS), "0.10")) == pytest.approx(chance, abs=5e-5)


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", SHIPPED)
def test_no_plan_exceeds_its_risk_at_its_rate_and_above(name: str, rate: str, risk: str) -> None:
    plan = plan_for(name, rate, risk)
    limit = Fraction(risk)
    for above in ABOVE:
        true_rate = Fraction(rate) + above * (1 - Fraction(rate))
        found = walked(plan.bounds, true_rate).risk
        assert found <= limit
        limit = found  # and it falls as the rate rises
    assert exact_risk(plan, rate) == walked(plan.bounds, Fraction(rate)).risk <= Fraction(risk)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.sampled_from(SHIPPED), st.integers(20, 999), st.integers(1, 999))
def test_the_risk_holds_for_any_rate_and_risk(name: str, rate: int, risk: int) -> None:
    plan = plan_for(name, str(Decimal(rate) / 1000), str(Decimal(risk) / 1000))
    assert walked(plan.bounds, Fraction(rate, 1000)).risk <= Fraction(risk, 1000)


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("rate", RATES)
def test_allow_one_has_the_smallest_bounds_that_spend_its_risk(rate: str, risk: str) -> None:
    first, second = plan_for("allow-one", rate, risk).bounds
    true_rate, alpha = Fraction(rate), Fraction(risk)
    assert first == clean_reruns(rate, Decimal(risk) * Decimal("0.8"))
    assert second > first
    assert walked((first, second), true_rate).risk <= alpha
    assert second == first + 1 or walked((first, second - 1), true_rate).risk > alpha


def test_allow_one_is_solved_for_the_rate_and_the_risk() -> None:
    assert plan_for("allow-one", "0.05", "0.05").bounds == (63, 113)
    assert plan_for("allow-one", "0.2", "0.05").bounds == (15, 25)
    assert plan_for("allow-one", "0.1", "0.01").bounds == (46, 74)


@pytest.mark.parametrize("allowed", [0, 1, 7, 100])
def test_a_fixed_number_of_runs_is_one_bound_for_all_that_may_fail(allowed: int) -> None:
    plan = plan_for(f"c:{allowed}", "0.3", "0.05")
    assert plan.bounds == (acceptance_runs(allowed, "0.3", "0.05"),) * (allowed + 1)


@pytest.mark.parametrize("name", ["", "Zero", "c", "c:", "c:-1", "c:101", "c:1000", "c:²", "c:1 ", "xc:1", "two"])
def test_a_plan_that_is_not_there_is_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(UsageRefused) as caught:
        plan_for(name, *DEFAULTS)
    assert caught.value.text == f"Couldn't use the plan {name!r}: there is none of that name.\nUse {NAMES}."


@pytest.mark.parametrize("name", [*SHIPPED, "sprt"])
@pytest.mark.parametrize(
    ("rate", "risk", "what"),
    [("0", "0.05", "max_failure_rate"), ("1", "0.05", "max_failure_rate"), ("0.1", "0", "risk")],
)
def test_rates_and_risks_out_of_range_are_refused_by_every_plan(
    name: str, rate: str, risk: str, what: str
) -> None:
    with pytest.raises(UsageRefused, match=rf"^Couldn't use {what} = "):
        plan_for(name, rate, risk)


def test_a_float_is_refused_also_where_an_equal_decimal_is_remembered() -> None:
    assert plan_for("zero", Decimal("0.5"), "0.05").bounds == (5,)
    with pytest.raises(UsageRefused, match="a float is not exact"):
        plan_for("zero", 0.5, "0.05")


@pytest.mark.parametrize("name", ["allow-one", "c:1", "e-process"])
def test_a_rate_that_takes_more_than_a_million_runs_is_left_to_the_plan_zero(name: str) -> None:
    assert plan_for(name, "0.000003", "0.05").bounds[0] > 998_000
    with pytest.raises(UsageRefused) as caught:
        plan_for(name, "0.000002", "0.05")
    assert caught.value.text == (
        f"Couldn't solve the plan {name!r}: even without a failure it takes more than 1000000 runs to rule out a"
        " failure rate of 0.000002.\nState a higher rate."
    )
    assert plan_for("zero", "0.000002", "0.05").bounds == (clean_reruns("0.000002", "0.05"),)


@pytest.mark.parametrize(("runs", "solved"), [(1_000_000, True), (1_000_001, False)])
def test_a_million_runs_are_still_solved(runs: int, solved: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_regcase.rules.plans.clean_reruns", lambda *_: runs)
    plan_for.cache_clear()
    try:
        if solved:
            assert plan_for("allow-one", *DEFAULTS).bounds == (31, 54)
        else:
            with pytest.raises(UsageRefused, match="more than 1000000 runs"):
                plan_for("allow-one", *DEFAULTS)
    finally:
        plan_for.cache_clear()


def test_a_solved_plan_is_remembered() -> None:
    assert plan_for("allow-one", *DEFAULTS) is plan_for("allow-one", *DEFAULTS)


def test_allowing_a_failure_after_it_was_seen_is_refused() -> None:
    """Pitfall 6: "29 clean or, if one failed, 46 with one" reads like two plans at 5 %, and has 7.2 %."""
    afterthought = Plan(name="afterthought", bounds=(29, 46))
    assert float(exact_risk(afterthought, "0.10")) == pytest.approx(0.0724, abs=5e-5)
    with pytest.raises(UsageRefused) as caught:
        proven(afterthought, *DEFAULTS)
    assert caught.value.slug == "risk-too-high"
    assert caught.value.text == (
        "Couldn't use the plan 'afterthought' (29 / 46 runs): at a failure rate of 0.10 it claims with a higher"
        f" risk than 0.05.\nUse {NAMES}."
    )
    declared = plan_for("allow-one", *DEFAULTS)
    assert proven(declared, *DEFAULTS) is declared


@pytest.mark.parametrize(("rate", "risk", "what"), [("1", "0.05", "max_failure_rate"), ("0.1", "1", "risk")])
def test_a_plan_is_proven_only_for_a_rate_and_a_risk_that_can_be(rate: str, risk: str, what: str) -> None:
    with pytest.raises(UsageRefused, match=rf"^Couldn't use {what} = "):
        proven(Plan(name="half", bounds=(1,)), rate, risk)


def test_a_plan_that_spends_exactly_its_risk_is_proven() -> None:
    plan = Plan(name="half", bounds=(1,))
    assert proven(plan, "0.5", "0.5") is plan
    with pytest.raises(UsageRefused):
        proven(plan, "0.5", "0.49999999999999999999999999999")


def wald(p0: float, p1: float, claim_above: float, give_up_below: float, most: int, rate: float) -> float:
    """How often Wald's sequential test claims at `rate`: log likelihood ratio between two thresholds."""
    on_failure, on_clean = log(p1 / p0), log((1 - p1) / (1 - p0))
    still_open, claimed = {0: 1.0}, 0.0
    for made in range(1, most + 1):
        after: dict[int, float] = {}
        for failures, chance in still_open.items():
            after[failures] = after.get(failures, 0.0) + chance * (1 - rate)
            after[failures + 1] = after.get(failures + 1, 0.0) + chance * rate
        still_open = {}
        for failures, chance in after.items():
            ratio = failures * on_failure + (made - failures) * on_clean
            if ratio >= claim_above:
                claimed += chance
            elif ratio > give_up_below:
                still_open[failures] = chance
    return claimed


def test_walds_test_does_not_hold_its_risk_and_is_no_plan() -> None:
    """Pitfall 19: the threshold ln((1-beta)/alpha) is an approximation; ln(1/alpha) and the plans here hold."""
    risk, beta = 0.05, 0.1
    roughly = wald(0.1, 0.01, log((1 - beta) / risk), log(beta / (1 - risk)), 200, rate=0.1)
    assert roughly == pytest.approx(0.0500804389516801, rel=1e-9)
    assert roughly > risk
    assert wald(0.1, 0.01, log(1 / risk), log(beta / (1 - risk)), 200, rate=0.1) < risk
    assert wald(0.1, 0.001, log((1 - beta) / risk), log(beta / (1 - risk)), 200, rate=0.1) > 0.0525
    with pytest.raises(UsageRefused) as caught:
        plan_for("sprt", *DEFAULTS)
    assert caught.value.text == (
        "Couldn't use the plan 'sprt': Wald's thresholds hold the stated risk only roughly (0.0501 for 0.05, at"
        f" 0.10 against 0.01).\nUse {NAMES}."
    )
    for name in re.findall(r'"([a-z:0-9-]+)"', NAMES):
        assert exact_risk(plan_for(name, *DEFAULTS), "0.10") <= Fraction("0.05")
