"""Gate policies: how many tries a check gets, what they say together, and how likely a failure turns red.

One interface for all: `wants_another`, `check_result`, `most_tries` and `red_probability` of a `Policy`. Pure;
knows verdicts of control and simulations only. Whatever the policy, the first attempt that proved nothing gets one
further try in its place, a later one leaves the check inconclusive, and no try turns a worker crash green.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from math import comb
from typing import Literal

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.base import Record
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.rules import confirm
from pytest_regcase.rules.confirm import FAILED, GOOD, CheckResult
from pytest_regcase.rules.exact import Exact, proportion

DEFAULT_POLICY = f"confirm:{confirm.CONFIRM_RUNS}"

_CONFIRM = re.compile(r"confirm:([1-9][0-9]*)")
_FIXED = re.compile(r"fixed:([1-9][0-9]*),(0|[1-9][0-9]*)")
_ANY_PASS = re.compile(r"any-pass(?::([1-9][0-9]*))?")


class Policy(Record):
    """When a check is red."""

    kind: Literal["first", "confirm", "fixed", "any-pass"]
    """`first` is `fixed` with one attempt of which none may fail."""
    further: int = 0
    """Tries after the first one: confirm runs, the other repetitions, or reruns."""
    allowed: int = 0
    """`fixed` only: how many failures are not red."""

    @property
    def name(self) -> str:
        """As `policy_for` reads it."""
        if self.kind == "first":
            return "first"
        if self.kind == "fixed":
            return f"fixed:{self.further + 1},{self.allowed}"
        if self.kind == "any-pass" and self.further == confirm.CONFIRM_RUNS:
            return "any-pass"
        return f"{self.kind}:{self.further}"


def policy_for(name: str) -> Policy:
    """Return the policy of that name.

    ``first``: the first attempt decides. ``confirm:m``: after a failed one exactly m more, red if any of them
    fails again. ``fixed:n,c``: always n attempts, red with more than c failures. ``any-pass`` (``any-pass:r``; r
    is 2): up to r reruns until one passes, red when all failed.

    Raises:
        UsageRefused: no such policy; the text names those that there are.
    """
    if name == "first":
        return Policy(kind="first")
    if found := _CONFIRM.fullmatch(name):
        return Policy(kind="confirm", further=int(found[1]))
    if (found := _FIXED.fullmatch(name)) and int(found[2]) < int(found[1]):
        return Policy(kind="fixed", further=int(found[1]) - 1, allowed=int(found[2]))
    if found := _ANY_PASS.fullmatch(name):
        return Policy(kind="any-pass", further=int(found[1] or confirm.CONFIRM_RUNS))
    raise UsageRefused(
        f"Couldn't use the gate policy {name!r}: there is none of that name.\n"
        "Allowed: first, confirm:m (m runs after a failed one), fixed:n,c (n attempts, at most c of them failed; c"
        " below n), any-pass or any-pass:r (r reruns)."
    )


def most_tries(policy: Policy) -> int:
    """Return how many tries a check has at most, the one in place of an attempt that proved nothing included."""
    return confirm.most_tries(policy.further)


def wants_another(policy: Policy, tries: Sequence[AttemptVerdict]) -> bool:
    """Say whether the check needs a further try after these, in the order in which they were made.

    Raises:
        ValueError: a verdict of a live run.
    """
    if policy.kind == "confirm":
        return confirm.wants_another(tries, policy.further)
    confirm.only_checks(tries)
    if not tries or confirm.spare_is_due(tries):
        return True
    standing = confirm.standing_tries(tries)
    if len(standing) > policy.further:
        return False
    if policy.kind == "any-pass":
        return not any(each in GOOD for each in standing)
    return _failures(standing) <= policy.allowed


def check_result(policy: Policy, tries: Sequence[AttemptVerdict], *, crashed: bool = False) -> CheckResult:
    """Return what the tries say together; tries that the policy wanted and that are missing are never a pass.

    `flaky`: at least one failed, and the policy does not call that red. `crashed` says that one of the tries was a
    worker crash.

    Raises:
        ValueError: no try at all, or a verdict of a live run.
    """
    if policy.kind == "confirm":
        return confirm.check_result(tries, crashed=crashed, confirm_runs=policy.further)
    confirm.only_checks(tries)
    if not tries:
        raise ValueError("a check without a try has no result; it was not run")
    standing = confirm.standing_tries(tries)
    failed, good = _failures(standing), sum(each in GOOD for each in standing)
    if policy.kind == "any-pass":
        if failed == len(standing):
            return "broken"
        settled = good > 0
    else:
        if failed > policy.allowed:
            return "broken"
        settled = failed + good > policy.further
    if crashed or not settled:
        return "inconclusive"
    return "flaky" if failed else "passed"


def red_probability(policy: Policy, rate: Exact) -> Fraction:
    """Return how likely a check that fails with probability `rate`, each attempt by itself, is red in a session.

    Exact. ``first``: f; ``confirm:m``: f (1 - (1 - f)^m); ``fixed:n,c``: P(Bin(n, f) > c); ``any-pass:r``:
    f^(r+1) (statistics page, section 5). Attempts that share an outage or a prompt cache are not independent.

    Raises:
        UsageRefused: a rate that is not a decimal number strictly between 0 and 1.
    """
    fails = proportion(rate, "rate")
    attempts = policy.further + 1
    if policy.kind == "confirm":
        return fails * (1 - (1 - fails) ** policy.further)
    if policy.kind == "any-pass":
        return fails**attempts
    few = range(policy.allowed + 1)
    return Fraction(1 - sum(comb(attempts, k) * fails**k * (1 - fails) ** (attempts - k) for k in few))


def what_it_hides(policy: Policy) -> str | None:
    """Return the sentence that has to stand beside a decision under this policy; None where there is none."""
    if policy.kind != "any-pass":
        return None
    attempts = policy.further + 1
    tenth, third, half = (f"{float(red_probability(policy, rate)) * 100:.3g} %" for rate in ("0.1", "0.3", "0.5"))
    return (
        f"{policy.name} is red only when all {attempts} attempts of a check fail, P(red) = f^{attempts}: one that"
        f" fails 10 % of the time is red in {tenth} of the sessions, 30 % in {third}, 50 % in {half}"
    )


def _failures(standing: Sequence[AttemptVerdict]) -> int:
    return sum(each in FAILED for each in standing)
