"""Plans walked run by run, the slow and plain way, to hold the solved numbers against."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

DEFAULTS = ("0.10", "0.05")
SHIPPED = ("zero", "allow-one", "c:0", "c:1", "c:2", "c:5", "e-process")


class Walked(NamedTuple):
    risk: Fraction
    expected_runs: Fraction


def walked(bounds: Sequence[int], rate: Fraction) -> Walked:
    """Follow every way of clean and failed runs one run at a time, in whole numbers."""
    fails, total = rate.numerator, rate.denominator
    # Chances after t runs, times total^t: how many failures so far, claimed, and runs made.
    still_open = {0: 1}
    claimed = runs = 0
    for made in range(1, bounds[-1] + 1):
        runs = (runs + sum(still_open.values())) * total
        claimed *= total
        after: dict[int, int] = {}
        for failures, chance in still_open.items():
            after[failures] = after.get(failures, 0) + chance * (total - fails)
            after[failures + 1] = after.get(failures + 1, 0) + chance * fails
        still_open = {}
        for failures, chance in after.items():
            if failures < len(bounds) and made >= bounds[failures]:
                claimed += chance
            elif failures < len(bounds):
                still_open[failures] = chance
    assert not still_open
    scale = total ** bounds[-1]
    return Walked(Fraction(claimed, scale), Fraction(runs, scale))


def at_most_failed(allowed: int, runs: int, rate: Fraction) -> Fraction:
    """P(at most `allowed` of `runs` runs fail), one run at a time."""
    chances = [Fraction(1)] + [Fraction(0)] * allowed
    for _ in range(runs):
        fewer = [Fraction(0), *chances[:-1]]
        chances = [stay * (1 - rate) + come * rate for stay, come in zip(chances, fewer, strict=True)]
    return sum(chances, start=Fraction(0))
