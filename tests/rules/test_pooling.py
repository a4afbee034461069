from collections.abc import Sequence
from itertools import combinations, pairwise
from math import comb

import pytest

from pytest_regcase.rules.pooling import (
    OVERDISPERSED,
    clustered_se,
    icc_anova,
    kish,
    n_eff_deff,
    runs_lower_p,
    tarone_z,
)


@pytest.mark.parametrize(
    ("failures", "runs", "expected"),
    [
        ([0, 0, 8, 0, 1], [10, 10, 10, 10, 10], 9.354110207768745),
        ([2, 3, 1, 2, 2], [20, 20, 20, 20, 20], -1.2617221643503753),
        # By hand: rate 2/6; spread (2 - 2/3)^2 + (0 - 4/3)^2 = 32/9, over 2/9 is 16; (16 - 6)/sqrt(2 * 14).
        ([2, 0], [2, 4], 10 / 28**0.5),
    ],
)
def test_tarone_z(failures: list[int], runs: list[int], expected: float) -> None:
    assert tarone_z(failures, runs) == pytest.approx(expected, rel=1e-12)


def test_revisions_that_fail_at_different_rates_are_told_from_those_that_do_not() -> None:
    different, alike = tarone_z([0, 6], [30, 30]), tarone_z([3, 3], [30, 30])
    assert different is not None
    assert alike is not None
    assert alike < OVERDISPERSED < different
    assert OVERDISPERSED == 1.645


@pytest.mark.parametrize(
    ("failures", "runs"), [([0, 0], [5, 5]), ([5, 5], [5, 5]), ([1, 0, 1], [1, 1, 1]), ([], []), ([0], [0])]
)
def test_where_nothing_can_differ_there_is_no_z(failures: list[int], runs: list[int]) -> None:
    assert tarone_z(failures, runs) is None


def test_one_group_with_two_attempts_is_enough_for_a_z() -> None:
    assert tarone_z([1, 0], [2, 1]) is not None
    assert tarone_z([1, 2], [2, 2]) is not None


@pytest.mark.parametrize(("failures", "runs"), [([2], [1]), ([-1, 1], [3, 3])])
def test_counts_that_cannot_be(failures: list[int], runs: list[int]) -> None:
    with pytest.raises(
        ValueError, match=r"^a group has no more failures than attempts, and no negative number of them$"
    ):
        tarone_z(failures, runs)


@pytest.mark.parametrize(("failures", "runs"), [([1], [1, 1]), ([1, 1], [1])])
def test_every_group_has_failures_and_attempts(failures: list[int], runs: list[int]) -> None:
    with pytest.raises(ValueError, match="argument 2 is"):
        tarone_z(failures, runs)


@pytest.mark.parametrize(
    ("passes", "runs", "icc", "se"),
    [
        ([10, 10, 9, 0, 1, 8], 10, 0.7644776946522582, 0.18737959096740264),
        ([5, 5, 5, 4, 4, 5, 0], 5, 0.6808510638297872, 0.13801311186847082),
        ([3, 4, 2, 3, 4, 3, 2, 4], 8, -0.09090909090909093, 0.036881052772005145),
        ([2, 0], 2, 1.0, 0.5),
        ([1, 1], 2, -1.0, 0.0),
    ],
)
def test_tasks_that_were_run_several_times(passes: list[int], runs: int, icc: float, se: float) -> None:
    assert icc_anova(passes, runs) == pytest.approx(icc, abs=1e-9)
    assert clustered_se(passes, runs) == pytest.approx(se, abs=1e-9)


def test_where_every_run_came_out_alike_there_is_no_correlation() -> None:
    assert icc_anova([3, 3], 3) is None
    assert icc_anova([0, 0, 0], 4) is None


def test_clusters_are_worth_less_than_their_runs() -> None:
    """Pitfall 18 has no place here: runs of different tasks are never taken for independent runs of one."""
    assert clustered_se([10, 0], 10) == pytest.approx(0.5)
    naive = (0.5 * 0.5 / 20) ** 0.5
    assert clustered_se([10, 0], 10) > 4 * naive


def test_one_run_a_task_says_nothing_of_how_runs_differ() -> None:
    with pytest.raises(ValueError, match=r"^one run of a task shows nothing of how its runs differ$"):
        icc_anova([1, 0], 1)
    assert clustered_se([1, 0], 1) == pytest.approx(0.5)


@pytest.mark.parametrize(("passes", "runs"), [([3], 3), ([], 3), ([4, 1], 3), ([-1, 1], 3), ([0, 0], 0)])
def test_a_table_that_cannot_be(passes: list[int], runs: int) -> None:
    for function in (icc_anova, clustered_se):
        with pytest.raises(
            ValueError, match=r"^give two tasks or more, and no more passes of a task than its runs$"
        ):
            function(passes, runs)


@pytest.mark.parametrize(
    ("runs", "cluster", "correlation", "expected"),
    [
        (30, 30, 1, 1.0),
        (30, 30, 0.5, 1.935483870967742),
        (30, 10, 0.1, 15.789473684210527),
        (30, 1, 1, 30),
        (9, 3, 0, 9),
    ],
)
def test_effective_runs(runs: int, cluster: int, correlation: float, expected: float) -> None:
    assert n_eff_deff(runs, cluster, correlation) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("cluster", "correlation"), [(3, -0.1), (3, 1.1), (0, 0.5)])
def test_a_design_that_cannot_be(cluster: int, correlation: float) -> None:
    with pytest.raises(ValueError) as caught:
        n_eff_deff(30, cluster, correlation)
    assert str(caught.value) == f"no design effect of clusters of {cluster} with correlation {correlation}"


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([30], 1.0), ([28, 1, 1], 1.1450381679389312), ([10, 10, 10], 3.0), ([1] * 30, 30.0), ([15, 5, 5, 5], 3.0)],
)
def test_kish(sizes: list[int], expected: float) -> None:
    assert kish(sizes) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("sizes", [[], [0], [3, 0], [-1, 2]])
def test_groups_that_cannot_be(sizes: list[int]) -> None:
    with pytest.raises(ValueError, match=r"^every group needs at least one member$"):
        kish(sizes)


def runs_of(order: Sequence[bool]) -> int:
    return 1 + sum(one != other for one, other in pairwise(order))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("." * 20 + "F" * 5 + "." * 5, 0.00021051745189676224),
        ("..F...F..F..", 1.0),
        ("FFF.......", 0.016666666666666666),
        ("F.", 1.0),
    ],
)
def test_bursts(text: str, expected: float) -> None:
    assert runs_lower_p([sign == "F" for sign in text]) == pytest.approx(expected, abs=1e-9)


def test_bursts_by_counting_every_order() -> None:
    for failures, runs in ((1, 4), (2, 5), (3, 7), (4, 8), (5, 7)):
        orders = [[number in places for number in range(runs)] for places in combinations(range(runs), failures)]
        for order in orders:
            few = sum(runs_of(each) <= runs_of(order) for each in orders)
            assert runs_lower_p(order) == few / comb(runs, failures)


def test_long_histories_are_counted_in_whole_numbers() -> None:
    """Of 600 failures and 600 passes there are more orders than a float can hold."""
    assert runs_lower_p([True, False] * 600) == 1.0
    assert runs_lower_p([True] * 600 + [False] * 600) == 2 / comb(1200, 600)


def test_where_all_came_out_alike_the_order_shows_nothing() -> None:
    assert runs_lower_p([False] * 30) == runs_lower_p([True] * 5) == runs_lower_p([]) == 1.0
