"""One check and its confirm runs: whether to try again, and what the tries say together (policy `confirm:m`).

Knows attempt verdicts of control and simulations only; live runs are never confirmed (rules.sequential reads
them). The other policies are in rules.policies.
"""

from collections.abc import Sequence
from typing import Literal

from pytest_regcase.records.words import AttemptVerdict

CheckResult = Literal["passed", "broken", "flaky", "inconclusive"]

CONFIRM_RUNS = 2
"""How many runs follow a failed first attempt where nothing else is configured, always all of them."""

GOOD = frozenset[AttemptVerdict]({"recovered", "finished"})
FAILED = frozenset[AttemptVerdict]({"not-recovered"})
PROVED_NOTHING = frozenset[AttemptVerdict]({"inconclusive", "did-not-finish"})


def most_tries(confirm_runs: int = CONFIRM_RUNS) -> int:
    """Return how many tries a check has at most.

    The first attempt, one further try where an attempt proved nothing, and the confirm runs.
    """
    return 2 + confirm_runs


def wants_another(tries: Sequence[AttemptVerdict], confirm_runs: int = CONFIRM_RUNS) -> bool:
    """Say whether the check needs a further try after these, in the order in which they were made.

    A good first attempt settles it. The first attempt that proved nothing gets one further try, which stands in
    its place. A failed one is followed by exactly `confirm_runs` further ones, whatever the first of them shows.

    Raises:
        ValueError: a verdict of a live run.
    """
    only_checks(tries)
    if not tries or spare_is_due(tries):
        return True
    standing = standing_tries(tries)
    return standing[0] in FAILED and len(standing) < 1 + confirm_runs


def check_result(
    tries: Sequence[AttemptVerdict], *, crashed: bool = False, confirm_runs: int = CONFIRM_RUNS
) -> CheckResult:
    """Return what the tries say together.

    `broken`: the first failed and a confirm run failed again, or confirm runs are missing (not confirmed is red).
    `flaky`: it failed and all confirm runs passed. `inconclusive`: it proved nothing; a confirm run that proved
    nothing counts as neither passed nor failed. `crashed` says that one of the tries was a worker crash: no
    other try turns that green.

    Raises:
        ValueError: no try at all, or a verdict of a live run.
    """
    only_checks(tries)
    if not tries:
        raise ValueError("a check without a try has no result; it was not run")
    first, *confirm = standing_tries(tries)
    if first in GOOD:
        return "inconclusive" if crashed else "passed"
    if first in PROVED_NOTHING:
        return "inconclusive"
    if any(each in FAILED for each in confirm) or len(confirm) < confirm_runs:
        return "broken"
    if crashed or any(each in PROVED_NOTHING for each in confirm):
        return "inconclusive"
    return "flaky"


def standing_tries(tries: Sequence[AttemptVerdict]) -> list[AttemptVerdict]:
    """Return the tries without the first one that proved nothing, once a further try stands in its place."""
    standing = list(tries)
    for index, verdict in enumerate(standing[:-1]):
        if verdict in PROVED_NOTHING:
            del standing[index]
            break
    return standing


def spare_is_due(tries: Sequence[AttemptVerdict]) -> bool:
    """Say whether the last try proved nothing and is the first that did: one more stands in its place."""
    return tries[-1] in PROVED_NOTHING and not any(each in PROVED_NOTHING for each in tries[:-1])


def only_checks(tries: Sequence[AttemptVerdict]) -> None:
    """Refuse verdicts of live runs.

    Raises:
        ValueError: there is one.
    """
    for each in tries:
        if each not in GOOD | FAILED | PROVED_NOTHING:
            raise ValueError(f"{each!r} is the verdict of a live run; live runs are not confirmed")
