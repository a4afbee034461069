import json
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from math import comb
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules import suite
from pytest_regcase.rules.exact import as_decimal
from pytest_regcase.rules.rerun import clean_reruns
from pytest_regcase.rules.suite import (
    bb_all_fail,
    confirm_for,
    flake_budget,
    gate_plan,
    rerun_pass_prob,
    suite_green,
    suite_green_bb,
)

rates = st.integers(1, 999).map(lambda thousandths: str(Decimal(thousandths) / 1000))


def near(value: object, places: str = "1e-12") -> object:
    return pytest.approx(Decimal(str(value)), abs=Decimal(places))


@pytest.mark.parametrize(
    ("reruns", "budget", "to_verify"), [(0, "0.000256", 11681), (1, "0.0160", 186), (2, "0.0635", 46)]
)
def test_the_budget_of_200_cases_and_what_verifies_it(reruns: int, budget: str, to_verify: int) -> None:
    found = flake_budget("0.05", 200, reruns)
    assert found.quantize(Decimal(budget)) == Decimal(budget)
    assert clean_reruns(found, "0.05") == to_verify


def test_a_budget_is_spent_by_exactly_the_false_reds_allowed() -> None:
    for correlation in ("0", "0.2", "1"):
        budget = flake_budget("0.05", 200, 2, correlation)
        assert suite_green_bb(budget, correlation, 200, 2) == near("0.95", "1e-16")


def test_a_budget_with_an_exact_value_is_that_value() -> None:
    assert flake_budget("0.19", 2) == Decimal("0.1")
    assert flake_budget("0.0001", 1, 1) == Decimal("0.01")


def test_a_budget_is_exact_also_where_it_is_tiny() -> None:
    tiny = "0." + "0" * 89 + "1"
    assert flake_budget(tiny, 1) == Decimal("1e-90")
    assert flake_budget(tiny, 1, 1) == Decimal("1e-45")


@given(rates, st.integers(1, 500), st.integers(0, 4))
def test_a_budget_is_the_closed_form(false_red: str, cases: int, reruns: int) -> None:
    closed = (1 - (1 - float(false_red)) ** (1 / cases)) ** (1 / (reruns + 1))
    assert float(flake_budget(false_red, cases, reruns)) == pytest.approx(closed, rel=1e-9)


def test_correlation_makes_the_budget_smaller_until_reruns_buy_nothing() -> None:
    budgets = [flake_budget("0.05", 200, 1, rho) for rho in ("0", "0.01", "0.2", "0.9", "1")]
    assert budgets == sorted(budgets, reverse=True)
    assert len(set(budgets)) == 5
    assert budgets[-1] == flake_budget("0.05", 200)


@pytest.mark.parametrize(("correlation", "red"), [("0.05", "0.188"), ("0.2", "0.494"), ("0.5", "0.805")])
def test_a_suite_planned_for_5_percent_is_redder_with_correlated_attempts(correlation: str, red: str) -> None:
    assert 1 - suite_green_bb("0.016", correlation, 200, 1) == near(red, "0.0006")


@given(rates, rates, st.integers(0, 5))
def test_all_attempts_fail_as_the_beta_function_says(rate: str, correlation: str, reruns: int) -> None:
    # By its definition: B(a + r + 1, b) / B(a, b) with a = q(1-rho)/rho and b = (1-q)(1-rho)/rho.
    q, rho = Fraction(rate), Fraction(correlation)
    a, b = q * (1 - rho) / rho, (1 - q) * (1 - rho) / rho
    expected = Fraction(1)
    for i in range(reruns + 1):
        expected *= (a + i) / (a + b + i)
    assert bb_all_fail(rate, correlation, reruns) == near(float(expected))


def test_the_ends_of_a_rate_are_allowed_where_a_rate_was_measured() -> None:
    assert suite_green("0", 200) == 1
    assert suite_green("1", 1, 3) == 0
    assert suite_green(Decimal("1.0"), 1) == 0
    assert bb_all_fail("0.1", "1", 5) == Decimal("0.1")
    assert bb_all_fail("1", "0.3", 5) == 1
    assert rerun_pass_prob("0", 2) == 1
    assert rerun_pass_prob("1", 2) == 0
    assert confirm_for(200, "0.05", "0") == suite.MOST_CONFIRM_RUNS
    assert confirm_for(200, "0.05", "1") == 0


def test_reruns_hide_a_partial_regression() -> None:
    assert rerun_pass_prob("0.3", 2) == Decimal("0.973")
    assert rerun_pass_prob("0.3", 0) == Decimal("0.7")


@pytest.mark.parametrize(
    ("good", "bad", "lax", "strict"),
    [
        ("0.001", "0.1", (22, 0), (46, 1)),
        ("0.001", "0.5", (4, 0), (5, 0)),
        ("0.01", "0.1", (52, 2), (76, 3)),
        ("0.01", "0.3", (12, 1), (14, 1)),
        ("0.05", "0.2", (38, 4), (69, 8)),
        ("0.05", "0.5", (7, 1), (13, 3)),
    ],
)
def test_fixed_repetitions(good: str, bad: str, lax: tuple[int, int], strict: tuple[int, int]) -> None:
    assert gate_plan(good, bad, "0.05", "0.1") == lax
    assert gate_plan(good, bad, "0.01", "0.05") == strict


@cache
def at_most(failures: int, attempts: int, rate: Fraction) -> Fraction:
    return sum(
        (comb(attempts, k) * rate**k * (1 - rate) ** (attempts - k) for k in range(failures + 1)), Fraction(0)
    )


@settings(max_examples=30)
@given(st.sampled_from(["0.05", "0.2", "0.4"]), st.sampled_from(["0.6", "0.95"]), rates, rates)
def test_fixed_repetitions_are_the_first_that_keep_both_risks(good: str, bad: str, red: str, miss: str) -> None:
    def keeps(n: int, c: int) -> bool:
        return 1 - at_most(c, n, Fraction(good)) <= Fraction(red) and at_most(c, n, Fraction(bad)) <= Fraction(
            miss
        )

    runs, allowed = gate_plan(good, bad, red, miss)
    assert keeps(runs, allowed)
    assert not any(keeps(runs, fewer) for fewer in range(allowed))
    if runs <= 20:
        assert not any(keeps(n, c) for n in range(1, runs) for c in range(n + 1))


def test_fixed_repetitions_are_exact_at_a_tie() -> None:
    # One attempt: red with chance 0.1, missed with chance 0.5; both exactly what is allowed.
    assert gate_plan("0.1", "0.5", "0.1", "0.5") == (1, 0)
    assert gate_plan("0.1", "0.5", "0.1", "0.4999") != (1, 0)
    assert gate_plan("0.1", "0.5", "0.0999", "0.5") != (1, 0)


@pytest.mark.parametrize(("runs", "allowed"), [(24, 4), (30, 5), (36, 6), (40, 7)])
def test_fixed_repetitions_are_exact_at_a_tie_of_many_digits(runs: int, allowed: int) -> None:
    with localcontext() as context:
        context.prec = 60
        red = as_decimal(1 - at_most(allowed, runs, Fraction("0.1")))
        miss = as_decimal(at_most(allowed, runs, Fraction("0.5")))
        assert gate_plan("0.1", "0.5", red, miss) == (runs, allowed)
        assert gate_plan("0.1", "0.5", red - Decimal("1e-50"), miss) != (runs, allowed)
        assert gate_plan("0.1", "0.5", red, miss - Decimal("1e-50")) != (runs, allowed)


def test_rates_that_no_affordable_gate_tells_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "MOST_GATE_RUNS", 76)
    assert gate_plan("0.01", "0.1", "0.01", "0.05") == (76, 3)
    monkeypatch.setattr(suite, "MOST_GATE_RUNS", 75)
    with pytest.raises(UsageRefused, match=r"from 0\.01 in 75 attempts\.\nGive rates that lie further apart"):
        gate_plan("0.01", "0.1", "0.01", "0.05")


@pytest.mark.parametrize("bad", ["0.1", "0.05"])
def test_a_bad_rate_is_above_the_good_one(bad: str) -> None:
    with pytest.raises(UsageRefused) as refused:
        gate_plan("0.1", bad, "0.05", "0.05")
    assert refused.value.text == (
        f"Couldn't tell a rate of {bad} from 0.1: the bad one is not above the good one.\n"
        "Give a bad_rate above good_rate."
    )


def test_the_confirm_runs_that_keep_the_share_of_false_reds() -> None:
    # confirm:2 is red by chance in 3.9 % of runs of 200 cases that flake 1 %, confirm:3 in 5.8 %.
    assert confirm_for(200, "0.05", "0.01") == 2
    assert confirm_for(200, "0.06", "0.01") == 3
    assert confirm_for(200, "0.05", "0.001") == 10
    assert confirm_for(200, "0.05", "0.05") == 0


def test_confirm_runs_are_exact_at_a_tie() -> None:
    # One check at 0.5: 0.25 with one confirm run, 0.375 with two.
    assert confirm_for(1, "0.375", "0.5") == 2
    assert confirm_for(1, "0.3749", "0.5") == 1
    assert confirm_for(1, "0.2499", "0.5") == 0


@given(st.integers(1, 300), rates, rates)
def test_one_confirm_run_more_would_be_red_too_often(checks: int, false_red: str, rate: str) -> None:
    def red(m: int) -> float:
        q = float(rate)
        return float(1 - (1 - q * (1 - (1 - q) ** m)) ** checks)

    m = confirm_for(checks, false_red, rate)
    assert red(m) <= float(false_red) + 1e-9
    assert m == 10 or red(m + 1) > float(false_red) - 1e-9


@pytest.mark.parametrize(
    ("function", "arguments", "says"),
    [
        (suite_green, ("0.1", 0), r"plan for 0 cases\.\nGive a number of cases from 1 to 1,000,000"),
        (suite_green, ("0.1", 1_000_001), "plan for 1000001 cases"),
        (suite_green, ("0.1", 1, -1), r"plan for -1 reruns\.\nGive a number of reruns from 0 to 100"),
        (suite_green, ("0.1", 1, 101), "plan for 101 reruns"),
        (suite_green, ("1.1", 1), "use rate = 1.1"),
        (suite_green, ("-0.1", 1), "use rate = -0.1"),
        (suite_green, ("ten", 1), "use rate = 'ten'"),
        (suite_green, ("sNaN", 1), "use rate = 'sNaN'"),
        (suite_green, (0.0, 1), "use rate = 0.0: .* a float is not exact"),
        (suite_green_bb, ("0.1", "2", 1, 1), "use correlation = 2"),
        (suite_green_bb, ("0.1", "0.5", 0, 1), "plan for 0 cases"),
        (bb_all_fail, ("0.1", "0.5", -1), "plan for -1 reruns"),
        (flake_budget, ("0", 1), "use false_red = 0"),
        (flake_budget, ("0.05", 0), "plan for 0 cases"),
        (flake_budget, ("0.05", 1, 101), "plan for 101 reruns"),
        (flake_budget, ("0.05", 1, 0, "-1"), "use correlation = -1"),
        (rerun_pass_prob, ("2", 1), "use rate = 2"),
        (gate_plan, ("0", "0.1", "0.05", "0.05"), "use good_rate = 0"),
        (gate_plan, ("0.1", "1", "0.05", "0.05"), "use bad_rate = 1"),
        (gate_plan, ("0.1", "0.5", "0", "0.05"), "use false_red = 0"),
        (gate_plan, ("0.1", "0.5", "0.05", "1"), "use miss = 1"),
        (confirm_for, (0, "0.05", "0.01"), "plan for 0 cases"),
        (confirm_for, (1, "1", "0.01"), "use false_red = 1"),
        (confirm_for, (1, "0.05", "2"), "use flake_rate = 2"),
    ],
    ids=lambda each: getattr(each, "__name__", repr(each)),
)
def test_what_cannot_be_is_refused(
    function: Callable[..., object], arguments: tuple[object, ...], says: str
) -> None:
    with pytest.raises(UsageRefused, match=f"^Couldn't {says}"):
        function(*arguments)


def test_the_largest_suite_is_computed() -> None:
    assert suite_green("0.000001", 1_000_000) == near("0.36787925723", "1e-9")
    assert suite_green("0.5", 1, 100) == near(1, "1e-9")


def test_reference_values(shared_reference: Path) -> None:
    rows = json.loads((shared_reference / "statistics.json").read_text(), parse_float=str)["rows"]
    computed: dict[str, Callable[[dict[str, str]], Decimal | tuple[int, int]]] = {
        "suite_green": lambda x: suite_green(x["q"], int(x["N"]), int(x["r"])),
        "suite_green_bb": lambda x: suite_green_bb(x["q"], x["rho"], int(x["N"]), int(x["r"])),
        "bb_all_fail": lambda x: bb_all_fail(x["q"], x["rho"], int(x["r"])),
        "flake_budget": lambda x: flake_budget(x["target"], int(x["N"]), int(x["r"])),
        "rerun_pass_prob": lambda x: rerun_pass_prob(x["f"], int(x["r"])),
        "gate_plan": lambda x: gate_plan(x["q0"], x["f1"], x["false_red"], x["miss"]),
    }
    ran = 0
    for row in rows:
        if row["function"] not in computed:
            continue
        got = computed[row["function"]]({name: str(value) for name, value in row["inputs"].items()})
        if isinstance(got, tuple):
            assert list(got) == row["value"], row["id"]
        else:
            assert got == near(row["value"], "1e-9"), row["id"]
        ran += 1
    assert ran == 9 + 3 + 5 + 6 + 6 + 5
