"""Whether counts of several groups (revisions, sessions, tasks) may be read as one, and what they are worth if so.

Knows counts only. Formulas: Tarone 1979 (overdispersion), one-way analysis of variance (intraclass correlation),
design effect, Kish's effective size, Wald and Wolfowitz (runs). A number that is None has nothing to be got from.
"""

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from math import comb, sqrt
from statistics import mean, stdev

OVERDISPERSED = 1.645
"""Above this Z, at a risk of 5 %, the groups fail at different rates and are not pooled."""


def tarone_z(failures: Sequence[int], attempts: Sequence[int]) -> float | None:
    """Return how much more the groups' failure rates differ than one common rate explains, as a standard score.

    None where nothing differs or could differ: all failed, none did, or no group has two attempts.

    Raises:
        ValueError: counts that cannot be, or not one of each a group.
    """
    groups = list(zip(failures, attempts, strict=True))
    if not all(0 <= x <= n for x, n in groups):
        raise ValueError("a group has no more failures than attempts, and no negative number of them")
    total = sum(attempts)
    pairs = sum(n * (n - 1) for n in attempts)
    if not 0 < sum(failures) < total or not pairs:
        return None
    rate = sum(failures) / total
    spread = sum((x - n * rate) ** 2 for x, n in groups) / (rate * (1 - rate))
    return (spread - total) / sqrt(2 * pairs)


def icc_anova(passes: Sequence[int], runs: int) -> float | None:
    """Return the intraclass correlation of tasks that were run `runs` times each, from their passes.

    (MSB - MSW) / (MSB + (m - 1) MSW); below zero where tasks differ less than chance. None where every run of
    every task came out alike.

    Raises:
        ValueError: fewer than two tasks or runs, or counts that cannot be.
    """
    _check_table(passes, runs)
    if runs < 2:
        raise ValueError("one run of a task shows nothing of how its runs differ")
    shares = [each / runs for each in passes]
    overall = mean(shares)
    between = runs * sum((each - overall) ** 2 for each in shares) / (len(passes) - 1)
    within = sum(x * (runs - x) for x in passes) / runs / (len(passes) * (runs - 1))
    if between == within == 0:
        return None
    return (between - within) / (between + (runs - 1) * within)


def clustered_se(passes: Sequence[int], runs: int) -> float:
    """Return the standard error of the mean pass rate over tasks: sd(rates of tasks) / sqrt(tasks).

    Further runs of the same tasks cannot bring it below what the tasks differ by.

    Raises:
        ValueError: fewer than two tasks, or counts that cannot be.
    """
    _check_table(passes, runs)
    return stdev([each / runs for each in passes]) / sqrt(len(passes))


def n_eff_deff(attempts: int, cluster: int, correlation: float) -> float:
    """Return how many independent attempts the `attempts`, made in clusters of `cluster`, are worth.

    n / (1 + (m - 1) rho): with a correlation of 1, each cluster is one attempt.

    Raises:
        ValueError: a correlation outside 0 to 1, or a cluster without an attempt.
    """
    if not 0 <= correlation <= 1 or cluster < 1:
        raise ValueError(f"no design effect of clusters of {cluster} with correlation {correlation}")
    return attempts / (1 + (cluster - 1) * correlation)


def kish(sizes: Sequence[int]) -> float:
    """Return the effective number of groups: (sum of sizes)^2 / sum of squared sizes.

    30 transcripts of which 28 are equal are worth 1.15 different ones.

    Raises:
        ValueError: no group, or one without a member.
    """
    if not sizes or min(sizes) < 1:
        raise ValueError("every group needs at least one member")
    return sum(sizes) ** 2 / sum(each**2 for each in sizes)


def runs_lower_p(failed: Sequence[bool]) -> float:
    """Return how likely as few runs of equal outcomes as seen are, had the order been by chance.

    Exact, given the number of failures. Small: failures come in bursts, so attempts are not independent. 1 where
    all came out alike: the order then shows nothing.
    """
    failures = sum(map(bool, failed))
    passes = len(failed) - failures
    if not failures or not passes:
        return 1.0
    seen = 1 + sum(bool(one) != bool(other) for one, other in pairwise(failed))
    return sum(islice(_arrangements(failures, passes), seen - 1)) / comb(len(failed), failures)


def _arrangements(failures: int, passes: int) -> Iterator[int]:
    """How many orders have 2, 3, 4, ... runs."""
    # Ways to cut the failures and the passes into j parts each: C(x - 1, j - 1), kept up by recurrence.
    cut_failures = cut_passes = parts = 1
    while True:
        more_failures = cut_failures * (failures - parts) // parts
        more_passes = cut_passes * (passes - parts) // parts
        yield 2 * cut_failures * cut_passes
        yield more_failures * cut_passes + cut_failures * more_passes
        cut_failures, cut_passes, parts = more_failures, more_passes, parts + 1


def _check_table(passes: Sequence[int], runs: int) -> None:
    if len(passes) < 2 or not all(0 <= each <= runs for each in passes) or runs < 1:
        raise ValueError("give two tasks or more, and no more passes of a task than its runs")
