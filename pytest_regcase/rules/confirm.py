"""One check and its confirm runs: whether to try again, and what the tries say together (policy `confirm:2`).

Knows attempt verdicts of control and simulations only; live runs are never confirmed (rules.sequential reads
them).
"""

from collections.abc import Sequence
from typing import Literal

from pytest_regcase.records.words import AttemptVerdict

CheckResult = Literal["passed", "broken", "flaky", "inconclusive"]

CONFIRM_RUNS = 2
"""How many runs follow a failed first attempt, always all of them."""
MOST_TRIES = 2 + CONFIRM_RUNS
"""First attempt, one further try where an attempt proved nothing, and the confirm runs."""

_GOOD = frozenset[AttemptVerdict]({"recovered", "finished"})
_FAILED = frozenset[AttemptVerdict]({"not-recovered"})
_PROVED_NOTHING = frozenset[AttemptVerdict]({"inconclusive", "did-not-finish"})


def wants_another(tries: Sequence[AttemptVerdict]) -> bool:
    """Say whether the check needs a further try after these, in the order in which they were made.

    A good first attempt settles it. The first attempt that proved nothing gets one further try, which stands in
    its place. A failed one is followed by exactly two confirm runs, whatever the first of them shows. Never more
    than four tries.

    Raises:
        ValueError: a verdict of a live run.
    """
    _only_checks(tries)
    if not tries:
        return True
    if tries[-1] in _PROVED_NOTHING and _spare_is_left(tries):
        return True
    standing = _standing(tries)
    return standing[0] in _FAILED and len(standing) < 1 + CONFIRM_RUNS


def check_result(tries: Sequence[AttemptVerdict], *, crashed: bool = False) -> CheckResult:
    """Return what the tries say together.

    `broken`: the first failed and a confirm run failed again, or confirm runs are missing (not confirmed is red).
    `flaky`: it failed and both confirm runs passed. `inconclusive`: it proved nothing; a confirm run that proved
    nothing counts as neither passed nor failed. `crashed` says that one of the tries was a worker crash: no
    other try turns that green.

    Raises:
        ValueError: no try at all, or a verdict of a live run.
    """
    _only_checks(tries)
    if not tries:
        raise ValueError("a check without a try has no result; it was not run")
    first, *confirm = _standing(tries)
    if first in _GOOD:
        return "inconclusive" if crashed else "passed"
    if first in _PROVED_NOTHING:
        return "inconclusive"
    if any(each in _FAILED for each in confirm) or len(confirm) < CONFIRM_RUNS:
        return "broken"
    if crashed or any(each in _PROVED_NOTHING for each in confirm):
        return "inconclusive"
    return "flaky"


def _standing(tries: Sequence[AttemptVerdict]) -> list[AttemptVerdict]:
    """The tries without the first one that proved nothing, once a further try stands in its place."""
    standing = list(tries)
    for index, verdict in enumerate(standing[:-1]):
        if verdict in _PROVED_NOTHING:
            del standing[index]
            break
    return standing


def _spare_is_left(tries: Sequence[AttemptVerdict]) -> bool:
    return not any(each in _PROVED_NOTHING for each in tries[:-1])


def _only_checks(tries: Sequence[AttemptVerdict]) -> None:
    for each in tries:
        if each not in _GOOD | _FAILED | _PROVED_NOTHING:
            raise ValueError(f"{each!r} is the verdict of a live run; live runs are not confirmed")
