"""Before and after. Expected values: the statistics page and its reference table, on which two tools agree."""

from collections.abc import Callable
from fractions import Fraction
from math import comb

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules.binomial import Prior
from pytest_regcase.rules.comparison import (
    MOST_TRIALS,
    TOO_LARGE,
    Method,
    bayes_runs,
    boschloo_p,
    boschloo_runs,
    comparison_p,
    comparison_runs,
    false_fixed_risk_first_failure,
    false_fixed_risk_fisher,
    fisher_p,
    fisher_runs,
    ppv_fixed,
    predictive_at_most,
    predictive_zero,
)

UNIFORM: Prior = ("1", "1")
JEFFREYS: Prior = ("0.5", "0.5")
LUCI: Prior = ("0.05", "0.5")


@pytest.mark.parametrize(
    ("counts", "p"),
    [
        ((2, 20, 0, 29), 0.16156462585034015),
        ((3, 10, 0, 16), 0.046153846153846156),
        ((5, 50, 1, 50), 0.10220079251549678),
        ((1, 200, 0, 598), 0.25062656641604003),
    ],
)
def test_fisher_p(counts: tuple[int, int, int, int], p: float) -> None:
    assert float(fisher_p(*counts)) == pytest.approx(p, abs=1e-12)


@pytest.mark.parametrize("counts", [(3, 7, 2, 9), (5, 7, 1, 3), (1, 9, 4, 5), (4, 4, 4, 4), (2, 3, 0, 8)])
def test_fisher_p_is_the_tail_of_the_hypergeometric_distribution(counts: tuple[int, int, int, int]) -> None:
    before, runs_before, after, runs_after = counts
    failures, runs = before + after, runs_before + runs_after
    ways = [comb(runs_before, i) * comb(runs_after, failures - i) for i in range(before, failures + 1)]
    assert fisher_p(*counts) == Fraction(sum(ways), comb(runs, failures))


def test_fisher_p_at_the_ends() -> None:
    assert fisher_p(1, 1, 0, 19) == Fraction(1, 20)
    assert fisher_p(0, 5, 0, 5) == 1
    assert fisher_p(5, 5, 5, 5) == 1
    assert fisher_p(2, 20, 0, 0) == 1
    assert fisher_p(0, 0, 0, 0) == 1
    # It is one-sided: failing more often is no evidence of failing less.
    assert fisher_p(0, 20, 9, 10) == 1


@pytest.mark.parametrize(
    ("failures", "trials", "runs"),
    [(20, 200, 31), (1, 200, 3800), (1, 1, 19), (3, 10, 16), (2, 20, 68), (10, 100, 34), (1, 10, 190), (5, 5, 2)],
)
def test_fisher_runs(failures: int, trials: int, runs: int) -> None:
    assert fisher_runs(failures, trials, "0.05") == runs


def test_fisher_runs_is_the_first_number_that_is_enough() -> None:
    for trials in range(1, 13):
        for failures in range(1, trials + 1):
            runs = fisher_runs(failures, trials, "0.05")
            assert fisher_p(failures, trials, 0, runs) <= Fraction(1, 20)
            assert fisher_p(failures, trials, 0, runs - 1) > Fraction(1, 20)


def test_fisher_runs_takes_a_tie_as_enough() -> None:
    assert fisher_runs(1, 1, "0.5") == 1
    assert fisher_runs(1, 1, "0.25") == 3
    assert fisher_runs(1, 1, "0.2499999999999999999999999999999999999999") == 4
    assert fisher_runs(2, 2, "0.1") == 3  # 1 / C(5, 2)


def test_fisher_runs_of_a_huge_baseline_are_found_at_once() -> None:
    assert fisher_runs(1, MOST_TRIALS, "0.05") == 19 * MOST_TRIALS
    assert fisher_runs(MOST_TRIALS // 10, MOST_TRIALS, "0.05") == 29


@pytest.mark.parametrize(
    ("counts", "p"),
    [
        ((1, 1, 0, 7), 0.049086987972259535),
        ((1, 1, 0, 6), 0.05665277951485222),
        ((2, 20, 0, 29), 0.10729807382069194),
        ((5, 20, 0, 20), 0.011263893039186575),
    ],
)
def test_boschloo_p(counts: tuple[int, int, int, int], p: float) -> None:
    assert boschloo_p(*counts) == pytest.approx(p, abs=1e-5)


def test_boschloo_takes_before_and_after_as_the_groups() -> None:
    # The transposed table gives 0.0425, and no error.
    assert boschloo_p(2, 20, 0, 50) == pytest.approx(0.0488, abs=5e-5)
    # Fisher's test cannot tell the two apart.
    assert fisher_p(2, 20, 0, 50) == fisher_p(2, 2, 18, 68)


def test_boschloo_p_at_the_ends() -> None:
    assert boschloo_p(0, 5, 0, 5) == 1
    assert boschloo_p(0, 5, 1, 5) == 1
    assert boschloo_p(2, 20, 0, 0) == 1
    assert boschloo_p(0, 0, 0, 0) == 1
    assert boschloo_p(5, 5, 5, 5) == 1


@pytest.mark.parametrize(("failures", "trials", "runs"), [(1, 1, 7), (3, 10, 11), (5, 5, 2), (20, 200, 27)])
def test_boschloo_runs(failures: int, trials: int, runs: int) -> None:
    assert boschloo_runs(failures, trials, "0.05") == runs


def test_boschloo_runs_are_never_lost_to_a_further_clean_run() -> None:
    assert boschloo_p(2, 20, 0, 50) <= 0.05 < boschloo_p(2, 20, 0, 51)
    assert boschloo_runs(2, 20, "0.05") == 52
    assert boschloo_runs(5, 5, "0.9") == 1
    assert boschloo_runs(1, 1, "0.25") == 1  # p (1 - p) is at most 1/4: a tie


def test_boschloo_refuses_what_would_take_minutes() -> None:
    for ask in (lambda: boschloo_p(1, 200, 0, 3800), lambda: boschloo_runs(1, 200, "0.05")):
        with pytest.raises(UsageRefused) as refused:
            ask()
        assert refused.value.slug == TOO_LARGE
        assert refused.value.text == (
            "Couldn't compare with the baseline: Boschloo's test of 200 and 3800 runs would take too long.\n"
            'Write comparison = "fisher".'
        )
    assert boschloo_p(0, 99, 0, 99) == 1
    with pytest.raises(UsageRefused):
        boschloo_p(0, 99, 0, 100)


@pytest.mark.parametrize(
    ("failures", "trials", "prior", "chance"),
    [
        (2, 20, UNIFORM, 0.06785714285714285),
        (2, 20, JEFFREYS, 0.10041396876204566),
        (1, 1, UNIFORM, 0.002150537634408602),
        (20, 200, JEFFREYS, 0.054429040350317794),
        (1, 200, JEFFREYS, 0.8159965562953978),
    ],
)
def test_predictive_zero(failures: int, trials: int, prior: Prior, chance: float) -> None:
    assert float(predictive_zero(failures, trials, 29, prior)) == pytest.approx(chance, abs=1e-9)


def test_the_default_prior_is_the_population_of_tests() -> None:
    assert predictive_zero(2, 20, 29) == predictive_zero(2, 20, 29, LUCI)
    assert predictive_at_most(2, 20, 0, 29) == predictive_zero(2, 20, 29, LUCI)
    assert bayes_runs(2, 20, "0.05") == 63


def test_predictive_at_most() -> None:
    # Under the uniform prior and no run before, every number of failures is equally likely.
    assert [predictive_at_most(0, 0, k, 3, UNIFORM) for k in range(4)] == [Fraction(k, 4) for k in range(1, 5)]
    # One failure of one run: Beta(2, 1), so P(0 of 2) = 1/6 and P(1 of 2) = 1/3.
    assert predictive_at_most(1, 1, 1, 2, UNIFORM) == Fraction(1, 2)
    assert predictive_at_most(2, 20, 0, 0) == 1
    # Beta(2, 1/2) after one failure of one run: the shapes need not have one denominator.
    assert predictive_zero(1, 1, 1, ("1", "0.5")) == Fraction(1, 5)


@pytest.mark.parametrize(
    ("failures", "trials", "prior", "runs"),
    [
        (20, 200, UNIFORM, 30),
        (20, 200, LUCI, 31),
        (1, 200, UNIFORM, 697),
        (1, 200, LUCI, 3261),
        (1, 1, UNIFORM, 5),
        (1, 1, LUCI, 9),
        (2, 20, JEFFREYS, 45),
        (7, 9, JEFFREYS, 3),
        (5, 5, UNIFORM, 2),
    ],
)
def test_bayes_runs(failures: int, trials: int, prior: Prior, runs: int) -> None:
    assert bayes_runs(failures, trials, "0.05", prior) == runs


def test_bayes_runs_takes_a_tie_as_enough() -> None:
    assert predictive_zero(1, 1, 3, UNIFORM) == Fraction(1, 10)
    assert bayes_runs(1, 1, "0.1", UNIFORM) == 3
    assert bayes_runs(1, 1, "0.0999999999999999999999999999999999999999", UNIFORM) == 4
    assert bayes_runs(1, 1, "0.9", UNIFORM) == 1


def test_more_runs_than_can_be_predicted_are_refused() -> None:
    assert predictive_zero(1, 1, 20_000, UNIFORM) == Fraction(2, 20_001 * 20_002)
    assert bayes_runs(1, 1, "0.0000000049995", UNIFORM) == 20_000
    for says, ask in (
        (
            "under the prior it takes more than 20000 clean runs",
            lambda: bayes_runs(1, 1, "0.000000004999", UNIFORM),
        ),
        ("the prior gives no prediction for more than 20000 runs", lambda: predictive_zero(1, 1, 20_001)),
    ):
        with pytest.raises(UsageRefused) as refused:
            ask()
        assert refused.value.slug == TOO_LARGE
        assert refused.value.text == (
            f'Couldn\'t compare with the baseline: {says}.\nWrite comparison = "fisher".'
        )


@pytest.mark.parametrize("prior", [("0", "1"), ("1", "-1"), ("x", "1"), ("nan", "1"), ("1", "inf"), (0.5, 0.5)])
def test_what_is_no_prior_is_refused(prior: Prior) -> None:
    wrong = next(each for each in prior if each != "1")
    with pytest.raises(UsageRefused) as refused:
        bayes_runs(1, 2, "0.05", prior)
    assert refused.value.text == (
        f"Couldn't use the prior: {wrong!r} is no shape parameter.\n"
        'Write two positive decimal strings, such as "0.05" and "0.5".'
    )


METHODS: tuple[Method, ...] = ("fisher", "boschloo", "bayes")


def test_a_method_is_chosen_by_name() -> None:
    assert [comparison_runs(method, 3, 10, "0.05") for method in METHODS] == [16, 11, 15]
    assert comparison_p("fisher", 2, 20, 1, 68) == fisher_p(2, 20, 1, 68)
    assert comparison_p("boschloo", 1, 1, 0, 7) == Fraction(boschloo_p(1, 1, 0, 7))
    assert comparison_p("bayes", 2, 20, 1, 68) == predictive_at_most(2, 20, 1, 68)
    for ask in (
        lambda: comparison_runs("barnard", 2, 20, "0.05"),
        lambda: comparison_p("barnard", 2, 20, 0, 68),  # type: ignore[arg-type]
    ):
        with pytest.raises(UsageRefused) as refused:
            ask()
        assert refused.value.text == (
            "Couldn't compare with the baseline: no method 'barnard'.\n"
            'Write one of "fisher", "boschloo", "bayes".'
        )


@pytest.mark.parametrize("method", METHODS)
def test_a_baseline_without_a_failure_has_nothing_to_improve_on(method: Method) -> None:
    with pytest.raises(UsageRefused) as refused:
        comparison_runs(method, 0, 20, "0.05")
    assert refused.value.slug == "not-reproduced"
    assert refused.value.text == (
        "Couldn't compare with the baseline: none of its 20 trials failed.\n"
        "No number of clean runs is fewer failures than none; claim a bound instead."
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("wrong", [(-1, 2), (3, 2), (1, MOST_TRIALS + 1)])
def test_counts_that_cannot_be_are_refused(method: Method, wrong: tuple[int, int]) -> None:
    text = (
        f"Couldn't compare: {wrong[1]} runs are too many.\nGive at most 10000000."
        if wrong[1] > MOST_TRIALS
        else f"Couldn't compare: {wrong[0]} failures of {wrong[1]} runs cannot be.\nGive 0 <= failures <= runs."
    )
    for ask in (
        lambda: comparison_runs(method, *wrong, "0.05"),
        lambda: comparison_p(method, *wrong, 0, 5),
        lambda: comparison_p(method, 1, 5, *wrong),
    ):
        with pytest.raises(UsageRefused) as refused:
            ask()
        assert refused.value.text == text


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("risk", ["0", "1", 0.05])
def test_a_risk_that_is_none_is_refused(method: Method, risk: str) -> None:
    with pytest.raises(UsageRefused, match="Couldn't use risk"):
        comparison_runs(method, 1, 2, risk)


@pytest.mark.parametrize(
    ("trials", "rate", "claimed"),
    [(20, "0.1", 0.025941655242612882), (10, "0.3", 0.023922988830875295), (20, "0.01", 0.012356012654886955)],
)
def test_the_risk_of_the_rule_when_nothing_changed(trials: int, rate: str, claimed: float) -> None:
    assert false_fixed_risk_fisher(trials, rate, "0.05") == pytest.approx(claimed, abs=1e-9)


@pytest.mark.parametrize(
    ("rate", "claimed"),
    [("0.001", 0.049526189510187224), ("0.05", 0.029411170831361022), ("0.2", 0.0029159220539345053)],
)
def test_the_risk_of_a_case_that_is_made_at_its_first_failure(rate: str, claimed: float) -> None:
    assert false_fixed_risk_first_failure(rate, "0.05") == pytest.approx(claimed, abs=1e-9)


def test_no_rate_pushes_the_risk_of_the_comparison_above_the_stated_one() -> None:
    for rate in ("0.000000001", "0.001", "0.02", "0.1", "0.3", "0.7", "0.99"):
        assert false_fixed_risk_first_failure(rate, "0.05") <= 0.05
        for trials in (1, 5, 20):
            assert false_fixed_risk_fisher(trials, rate, "0.05") <= 0.05


def test_a_case_with_the_failure_that_made_it_as_its_baseline_passes_far_too_often() -> None:
    # What fails 1 % of the time and has a case because it failed once passes the 19 runs 83 % of the time.
    given_that_it_failed = false_fixed_risk_fisher(1, "0.01", "0.05") / 0.01
    assert given_that_it_failed == pytest.approx(0.826, abs=5e-4)


@pytest.mark.parametrize(
    ("prior", "rate", "runs", "worked"),
    [
        ("0.1", "0.1", 29, 0.7022907967833101),
        ("0.5", "0.1", 29, 0.9550174490677509),
        ("0.3", "0.05", 59, 0.8983483837800047),
    ],
)
def test_how_far_a_claim_can_be_believed(prior: str, rate: str, runs: int, worked: float) -> None:
    assert ppv_fixed(prior, rate, runs) == pytest.approx(worked, abs=1e-9)


def test_no_run_leaves_the_prior() -> None:
    assert ppv_fixed("0.1", "0.1", 0) == pytest.approx(0.1)


def test_every_number_between_0_and_1_is_named_when_it_is_none() -> None:
    refused: tuple[tuple[str, Callable[[], float]], ...] = (
        ("rate", lambda: false_fixed_risk_fisher(5, "1", "0.05")),
        ("rate", lambda: false_fixed_risk_first_failure("1", "0.05")),
        ("risk", lambda: false_fixed_risk_first_failure("0.5", "0")),
        ("prior", lambda: ppv_fixed("0", "0.1", 29)),
        ("rate", lambda: ppv_fixed("0.1", "1", 29)),
    )
    for name, ask in refused:
        with pytest.raises(UsageRefused, match=f"Couldn't use {name} = "):
            ask()


def test_a_comparison_that_the_prior_cannot_afford_is_refused_at_once() -> None:
    with pytest.raises(UsageRefused, match="under the prior it takes more than 20000 clean runs"):
        bayes_runs(1, 1_000_000, "0.05")


def test_many_failures_after_are_compared_without_adding_up_nothing() -> None:
    assert Fraction(999, 1000) < fisher_p(3, 300, 9000, 10000) <= 1
    assert fisher_p(5, 5, 5, 5) == 1
    assert fisher_p(1, 5, 4, 5) == 1 - Fraction(1, 252)  # all ways but the one with all five after
