from collections.abc import Callable
from decimal import Decimal
from typing import Literal, cast

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.case import Baseline
from pytest_regcase.rules.claims import ClaimStanding, Population, claim_of, fails_less, requirement
from pytest_regcase.rules.comparison import Method
from pytest_regcase.rules.exact import Exact

BARNARD = cast(Method, "barnard")


def baseline(
    failures: int,
    trials: int,
    kind: Literal["trigger-only", "all-attempts", "fresh"] = "fresh",
    population: Population = "task",
) -> Baseline:
    return Baseline(failures=failures, trials=trials, kind=kind, population=population)


def claim(
    failures: int,
    runs: int,
    before: Baseline | None = None,
    comparison: Method = "fisher",
    population: Population = "task",
    max_rate: Exact = "0.10",
    risk: Exact = "0.05",
) -> ClaimStanding:
    return claim_of(
        max_rate=max_rate,
        risk=risk,
        baseline=before,
        comparison=comparison,
        failures=failures,
        runs=runs,
        population=population,
    )


@pytest.mark.parametrize(
    ("failures", "trials", "for_comparison", "fixed", "unchanged"),
    [
        (2, 20, 68, 68, "0.047"),
        (20, 200, 31, 31, "0.047"),
        (1, 200, 3800, 3800, "0.86"),
        (3, 10, 16, 29, "0.000032"),
        (5, 5, 2, 29, "0"),
    ],
)
def test_closing_needs_the_bound_and_fixed_the_comparison_too(
    failures: int, trials: int, for_comparison: int, fixed: int, unchanged: str
) -> None:
    needs = requirement("0.10", "0.05", baseline=baseline(failures, trials))
    assert (needs.clean_reruns, needs.for_rate) == (29, 29)
    assert (needs.for_comparison, needs.fixed) == (for_comparison, fixed)
    assert needs.would_pass_unchanged == unchanged


def test_the_rule_fixed_asks_for_the_larger_number() -> None:
    needs = requirement("0.10", "0.05", baseline=baseline(2, 20), rule="fixed")
    assert (needs.clean_reruns, needs.for_rate, needs.for_comparison, needs.fixed) == (68, 29, 68, 68)
    assert needs.would_pass_unchanged == "0.00077"  # after 68 runs, not 29
    assert needs.warnings == ()
    assert requirement("0.10", "0.05", baseline=baseline(3, 10), rule="fixed").clean_reruns == 29


def test_no_baseline_is_needed_for_the_bound() -> None:
    needs = requirement("0.10", "0.05")
    assert needs.to_plain() == {
        "clean_reruns": 29,
        "for_rate": 29,
        "for_comparison": None,
        "fixed": None,
        "would_pass_unchanged": None,
        "formulas": ["29 = smallest n with (1 - 0.10)^n <= 0.05"],
        "warnings": [],
    }
    assert requirement(Decimal("0.1"), Decimal("0.05")).clean_reruns == 29


def test_without_a_failure_before_the_rule_fixed_cannot_be_met() -> None:
    cannot = 'The rule "fixed" cannot be met: no failure before the fix is known.'
    needs = requirement("0.10", "0.05", rule="fixed")
    assert (needs.clean_reruns, needs.fixed, needs.warnings) == (29, None, (cannot,))
    needs = requirement("0.10", "0.05", baseline=baseline(0, 20), rule="fixed")
    assert (needs.clean_reruns, needs.fixed, needs.warnings[0]) == (29, None, cannot)


@pytest.mark.parametrize(
    ("comparison", "formula"),
    [
        ("fisher", "16 = smallest m with C(10, 3) / C(10 + m, 3) <= 0.05 (Fisher)"),
        ("boschloo", "11 = smallest m from which on Boschloo's p of 3 of 10 against 0 of m is <= 0.05"),
        ("bayes", "15 = smallest m with B(a + 3, b + 7 + m) / B(a + 3, b + 7) <= 0.05 (a, b = 0.05, 0.5)"),
    ],
)
def test_each_number_comes_with_its_formula(comparison: Method, formula: str) -> None:
    needs = requirement("0.10", "0.05", baseline=baseline(3, 10), comparison=comparison)
    assert needs.formulas == ("29 = smallest n with (1 - 0.10)^n <= 0.05", formula)
    assert needs.for_comparison == int(formula.split()[0])


NOT_REPRODUCED = (
    "Not reproduced: none of the 20 trials of the baseline failed. There is nothing to improve on, only the bound "
    "may be claimed."
)
UNAFFORDABLE = (
    "Comparing with the baseline takes 3800 clean runs, more than 10 times the 29 of the bound: not affordable, "
    "claim the bound only."
)


def trigger_only(runs: int, passes: str) -> str:
    return (
        "The baseline is the trial that made the case. There is a case because it failed, so the risk of the "
        f"comparison has no limit: what fails 1 % of the time passes {runs} clean runs unchanged {passes} of the "
        "time. Count every attempt before it, or draw a fresh baseline."
    )


def test_what_the_clean_runs_do_not_show_is_said() -> None:
    needs = requirement("0.10", "0.05", baseline=baseline(1, 200))
    assert needs.warnings == (
        "If nothing had changed, 29 clean runs would still happen 86 % of the time: they bound the rate and do "
        "not show that anything changed.",
        UNAFFORDABLE,
    )
    assert requirement("0.10", "0.05", baseline=baseline(1, 200), rule="fixed").warnings == (UNAFFORDABLE,)


def test_as_likely_as_the_risk_is_not_too_likely() -> None:
    assert requirement("0.5", "0.5", baseline=baseline(1, 2)).warnings == ()  # one run: 1/2, the risk
    assert len(requirement("0.5", "0.4999", baseline=baseline(1, 3)).warnings) == 0  # two runs: 4/9
    assert len(requirement("0.5", "0.4", baseline=baseline(1, 3)).warnings) == 1


def test_ten_times_the_bound_is_affordable() -> None:
    # A single failure of n needs n times 19, the bound of 0.5 at 0.05 takes 5 runs.
    assert requirement("0.95", "0.05", baseline=baseline(10, 19)).for_rate == 1
    exactly = requirement("0.75", "0.25", baseline=baseline(1, 3), rule="fixed")
    assert (exactly.for_rate, exactly.for_comparison, exactly.warnings) == (1, 9, ())
    more = requirement("0.75", "0.25", baseline=baseline(1, 4), rule="fixed")
    assert (more.for_rate, more.for_comparison, len(more.warnings)) == (1, 12, 1)
    ten = requirement("0.75", "0.5", baseline=baseline(1, 10), rule="fixed")
    assert (ten.for_rate, ten.for_comparison, ten.warnings) == (1, 10, ())


def test_the_failure_that_made_the_case_is_a_poor_baseline() -> None:
    needs = requirement("0.10", "0.05", baseline=baseline(1, 1, "trigger-only"))
    assert (needs.for_comparison, needs.fixed) == (19, 29)
    assert needs.warnings == (trigger_only(29, "75 %"),)
    # 1 of 1 would make it impossible to pass unchanged: not an estimate of anything.
    assert needs.would_pass_unchanged is None
    assert requirement("0.10", "0.05", baseline=baseline(1, 1, "all-attempts")).warnings == ()
    standing = claim(0, 19, baseline(1, 1, "trigger-only"))
    assert (standing.kind, standing.p_value) == ("IMPROVED", "0.0500")
    assert standing.warnings == (trigger_only(19, "83 %"),)


def test_a_baseline_without_a_failure_allows_only_the_bound() -> None:
    needs = requirement("0.10", "0.05", baseline=baseline(0, 20))
    assert (needs.clean_reruns, needs.for_comparison, needs.fixed, needs.would_pass_unchanged) == (
        29,
        None,
        None,
        None,
    )
    assert needs.warnings == (NOT_REPRODUCED,)
    before = claim(0, 28, baseline(0, 20))
    assert (before.kind, before.bounded, before.improved, before.p_value) == ("NOT REPRODUCED", False, None, None)
    assert before.says == "0 of 28 failed: not shown to be below 10 %, at most 10.15 % (95 %)"
    assert before.warnings == (NOT_REPRODUCED,)
    after = claim(0, 3000, baseline(0, 20))
    assert (after.kind, after.bounded, after.improved) == ("BOUNDED", True, None)
    assert after.warnings == (NOT_REPRODUCED,)


def test_reruns_of_one_task_are_not_compared_with_a_sweep() -> None:
    sweep = baseline(20, 200, "all-attempts", "sweep")
    needs = requirement("0.10", "0.05", baseline=sweep)
    assert needs.fixed == 31
    assert needs.warnings == (
        "The baseline counts a whole sweep: only reruns drawn from that sweep are compared with it. Reruns of one "
        "task can claim the bound only.",
    )
    of_task = claim(0, 31, sweep)
    assert (of_task.kind, of_task.improved, of_task.p_value) == ("BOUNDED", None, None)
    assert of_task.says == "0 of 31 failed: failure rate below 10 % (95 %)"
    assert of_task.warnings == (
        "The baseline counts a sweep, these runs are drawn from a task: they are not compared, only the bound may "
        "be claimed.",
    )
    of_sweep = claim(0, 31, sweep, population="sweep")
    assert (of_sweep.kind, of_sweep.warnings) == ("FIXED", ())
    pooled = claim(0, 31, baseline(20, 200), population="sweep")
    assert (pooled.kind, pooled.improved) == ("BOUNDED", None)
    assert pooled.warnings == (
        "The baseline counts a task, these runs are drawn from a sweep: they are not compared, only the bound may "
        "be claimed.",
    )
    # Nothing to compare with is said once, whatever the population.
    assert requirement("0.10", "0.05", baseline=baseline(0, 20, population="sweep")).warnings == (NOT_REPRODUCED,)
    assert claim(0, 31, baseline(0, 20, population="sweep")).warnings == (NOT_REPRODUCED,)


@pytest.mark.parametrize(
    ("failures", "runs", "before", "kind", "says"),
    [
        (
            0,
            68,
            baseline(2, 20),
            "FIXED",
            "0 of 68 failed: failure rate below 10 % (95 %); fails less than before "
            "(2 of 20, Fisher's p = 0.0497)",
        ),
        (
            0,
            67,
            baseline(2, 20),
            "BOUNDED",
            "0 of 67 failed: failure rate below 10 % (95 %); "
            "not shown to fail less than before (2 of 20, Fisher's p = 0.0508)",
        ),
        (
            0,
            28,
            baseline(10, 20),
            "IMPROVED",
            "0 of 28 failed: not shown to be below 10 %, at most 10.15 % (95 %); fails less than before "
            "(10 of 20, Fisher's p = 0.0001)",
        ),
        (
            0,
            5,
            baseline(2, 20),
            "none",
            "0 of 5 failed: not shown to be below 10 %, at most 45.08 % (95 %); "
            "not shown to fail less than before (2 of 20, Fisher's p = 0.6334)",
        ),
        (1, 45, None, "none", "1 of 45 failed: not shown to be below 10 %, at most 10.12 % (95 %)"),
        (1, 46, None, "BOUNDED", "1 of 46 failed: failure rate below 10 % (95 %)"),
        (0, 0, None, "none", "0 of 0 failed: not shown to be below 10 %, at most 100 % (95 %)"),
    ],
)
def test_what_the_runs_may_claim(failures: int, runs: int, before: Baseline | None, kind: str, says: str) -> None:
    standing = claim(failures, runs, before)
    assert standing.kind == kind
    assert standing.says == says
    assert (standing.compared or "") == says.partition("; ")[2]
    assert standing.warnings == ()
    assert standing.bounded is (kind in ("BOUNDED", "FIXED"))
    assert standing.improved is (None if before is None else kind in ("IMPROVED", "FIXED"))


def test_the_defaults_are_fishers_test_and_reruns_of_the_task() -> None:
    standing = claim_of(max_rate="0.10", risk="0.05", baseline=baseline(2, 20), failures=0, runs=68)
    assert standing == claim(0, 68, baseline(2, 20), "fisher", "task")
    assert (standing.kind, standing.warnings) == ("FIXED", ())


def test_each_method_of_comparison_is_named() -> None:
    said = [claim(0, 15, baseline(3, 10), method) for method in ("fisher", "boschloo", "bayes")]
    assert [each.improved for each in said] == [False, True, True]
    assert [each.compared for each in said] == [
        "not shown to fail less than before (3 of 10, Fisher's p = 0.0522)",
        "fails less than before (3 of 10, Boschloo's p = 0.0203)",
        "fails less than before (3 of 10, chance of so few had nothing changed = 0.0447)",
    ]


def test_a_small_p_is_not_printed_as_none_and_a_tie_not_as_more() -> None:
    assert claim(0, 500, baseline(20, 20)).p_value == "0.0001"
    assert claim(0, 19, baseline(1, 1)).p_value == "0.0500"
    assert claim(5, 5, baseline(5, 5)).p_value == "1.0000"


def test_a_comparison_that_is_too_large_falls_back_on_fisher() -> None:
    needs = requirement("0.10", "0.05", baseline=baseline(1, 200), rule="fixed", comparison="boschloo")
    assert needs.for_comparison == 3800
    assert needs.formulas[1] == "3800 = smallest m with C(200, 1) / C(200 + m, 1) <= 0.05 (Fisher)"
    assert needs.warnings == (
        "Couldn't compare with the baseline: Boschloo's test of 200 and 3800 runs would take too long. Fisher's "
        "exact test is used instead.",
        UNAFFORDABLE,
    )
    standing = claim(0, 3800, baseline(1, 200), "boschloo")
    assert standing.kind == "FIXED"
    assert standing.says.endswith("; fails less than before (1 of 200, Fisher's p = 0.0500)")
    assert standing.warnings == needs.warnings[:1]


def test_what_cannot_be_asked_is_refused() -> None:
    refused: tuple[tuple[str, Callable[[], object]], ...] = (
        ("Couldn't use max_failure_rate = 0: ", lambda: requirement("0", "0.05")),
        ("Couldn't use risk = 1: ", lambda: requirement("0.10", "1")),
        ("no method 'barnard'", lambda: requirement("0.1", "0.1", baseline=baseline(1, 2), comparison=BARNARD)),
        ("no method 'barnard'", lambda: claim(0, 2, baseline(1, 2), BARNARD)),
        ("3 failures of 2 attempts cannot be", lambda: claim(3, 2)),
        ("Couldn't use max_failure_rate = 1: ", lambda: claim(0, 2, max_rate="1")),
        ("Couldn't use risk = '0,05': ", lambda: claim(0, 2, risk="0,05")),
    )
    for text, ask in refused:
        with pytest.raises(UsageRefused) as found:
            ask()
        assert text in found.value.text


def test_fewer_failures_are_shown_by_fisher_s_test_at_a_tie_as_well() -> None:
    always = Baseline(failures=1, trials=1, kind="all-attempts")
    # One failure among 20 equally likely places: it stands in the baseline with probability 1/20.
    assert fails_less(always, 0, 19, "0.05")
    assert not fails_less(always, 0, 18, "0.05")
    with pytest.raises(UsageRefused, match="no such"):
        fails_less(always, 0, 19, "0.05", cast("Method", "no such"))
    many = Baseline(failures=200_000, trials=1_000_000, kind="all-attempts")
    assert fails_less(many, 0, 30, "0.05", "boschloo"), "by Fisher's test, where Boschloo's takes too long"
