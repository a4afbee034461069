"""When a flaky case may stop gating, what brings it back, and how many may be out at once.

Knows first attempts, a flake budget and a risk. Proposes and checks, and writes nothing: a person decides.
Evidence is always an exact one-sided bound, never the observed share, and the way out asks for at least as much as
the way in.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import partial
from math import log
from typing import Literal, NamedTuple

from pytest_regcase.records.base import Record
from pytest_regcase.rules.binomial import bound_text, upper_bound
from pytest_regcase.rules.changepoint import bb_loglik, present_segment
from pytest_regcase.rules.exact import Exact, as_decimal, percent, proportion
from pytest_regcase.rules.flake import (
    FirstAttempt,
    FirstAttemptCounts,
    by_digests,
    first_attempt_counts,
    flake_rate,
    passing_digests,
)
from pytest_regcase.rules.pooling import OVERDISPERSED, tarone_z
from pytest_regcase.rules.rerun import clean_reruns, risk_over_fixes

FEWEST_ATTEMPTS = 20
FEWEST_FAILURES = 2
"""Below either, nothing is proposed: one failure in ten is no rate of 10 %."""
SHARE_PERCENT = 5
_MOST_RUNS = 10**18
"""More than anybody makes: where the search for the longest probation ends."""
_FIFTY_DIGITS = Context(prec=50)
_NEAR_TIE = Decimal("1e-40")
"""Chances that differ by less are compared in whole numbers."""

FAILS_NOW = 2
"""So many first attempts in a row that no pass followed, not even of a confirm run, are no flake: a check that
fails half the time does that once in 64 times, one that fails one time in ten once in a million."""
_LOOKS = {True: "and at every look it is above", False: "which is above"}
_READ_ALONE = "; its revisions fail at different rates, so the present one was read alone"

NoProposalCode = Literal["only-fails", "too-few-attempts", "too-few-failures", "within-budget"]
ExitCode = Literal["granted", "no-change", "failed-again", "too-few-clean"]


class Proposal(Record):
    """The case is flaky beyond its budget: somebody may quarantine it."""

    failures: int
    attempts: int
    unknown: int
    sessions: int
    """How many sessions the attempts were made in."""
    digests: str
    """The last digests that both failed and passed."""
    lower: str
    """Exact one-sided lower bound on the flake rate at this look, rounded down; it lies above the budget."""
    budget: str
    risk: str
    at_every_look: bool
    """The evidence also holds for somebody who looked after every attempt of the whole history. Else it holds for
    one look."""
    clean_to_leave: int
    """Clean first attempts, on changed digests, that end the quarantine."""
    says: str


class NoProposal(Record):
    """The case is not shown to be flaky beyond its budget."""

    code: NoProposalCode
    why: str


class Probation(Record):
    """Gating again on weaker evidence: red on the second failure."""

    runs: int
    """First attempts that the probation lasts."""
    red_at_budget: str
    """How likely it goes red at a flake rate that is the budget, rounded up."""
    bound: str
    """What passing it shows: the flake rate is below this, at the risk, rounded up."""
    says: str


class ExitCheck(Record):
    """Whether the quarantine may end, with the numbers."""

    code: ExitCode
    clean: int
    """Clean first attempts on changed digests, since the last failure on such digests."""
    need: int
    unknown: int
    """Attempts among them that proved nothing. They do not count as clean."""
    changes: int
    """How many changes were tried; a change on which it failed again is used up."""
    bound: str | None
    """What the clean attempts show, rounded up; None without any."""
    risk_over_changes: str | None
    """Risk that at least one of so many changes that did nothing would have been let out, rounded up."""
    probation: Probation | None = None
    """The weaker way out; None where there is none, or where nothing was changed."""
    says: str

    @property
    def granted(self) -> bool:
        """Say whether the quarantine may end."""
        return self.code == "granted"


def quarantine_min_k(attempts: int, budget: Exact, risk: Exact) -> int:
    """Return the fewest failures of `attempts` whose exact lower bound lies above the budget.

    That is the smallest k with P(X >= k) < `risk` at a rate of `budget`, in whole numbers, ties exact. Where no
    number of failures shows it, `attempts` + 1.

    Raises:
        UsageRefused: a budget or risk that is not a decimal strictly between 0 and 1.
    """
    rate, alpha = proportion(budget, "flake_budget"), proportion(risk, "risk")
    found = _min_k_in_decimals(attempts, rate, alpha)
    if found is not None:
        return found
    p, q = rate.numerator, rate.denominator
    failures = 0
    ways = (q - p) ** attempts
    more, all_ways = q**attempts - ways, q**attempts
    while more * alpha.denominator >= alpha.numerator * all_ways:
        failures += 1
        ways = ways * (attempts - failures + 1) * p // (failures * (q - p))
        more -= ways
    return failures + 1


def _min_k_in_decimals(attempts: int, budget: Fraction, risk: Fraction) -> int | None:
    """The same to 50 digits, far cheaper than in whole numbers of thousands of digits; None near a tie."""
    with localcontext(_FIFTY_DIGITS):
        rate, alpha = as_decimal(budget), as_decimal(risk)
        failures = 0
        chance = (1 - rate) ** attempts
        more = 1 - chance
        while more > alpha + _NEAR_TIE:
            failures += 1
            chance = chance * (attempts - failures + 1) * rate / (failures * (1 - rate))
            more -= chance
        return None if more > alpha - _NEAR_TIE else failures + 1


def propose(history: Sequence[FirstAttempt], *, budget: Exact, risk: Exact) -> Proposal | NoProposal:
    """Say whether the first attempts of one scenario, oldest first, show flakiness beyond the budget.

    Reads the present segment alone, and of that only the present digests where its revisions fail at different
    rates. Asks for 20 first attempts, 2 failures, a failure and a pass on the same digests, and an exact lower
    bound above the budget. A case that only fails is never flaky.

    Raises:
        UsageRefused: a budget or risk that is not a decimal strictly between 0 and 1.
    """
    proportion(risk, "risk")
    proportion(budget, "flake_budget")
    segment = history[present_segment(history) :]
    attempts, counts = _poolable(segment)
    refused = _refusal(counts, budget, risk)
    if refused is not None:
        alone = len(attempts) < len(segment)
        return refused.model_copy(update={"why": refused.why + _READ_ALONE}) if alone else refused
    fails_now = _fails_now(history)
    if fails_now is not None:
        return fails_now
    rate = flake_rate(attempts, risk=risk)
    passing = passing_digests(attempts)
    flaked = [each for each in attempts if each.failed and each.digests in passing]
    counted = [each for each in attempts if each.failed is not None and each.digests in passing]
    whole = len(attempts) == len(history)
    every_look = whole and _holds_at_every_look(rate.failures, rate.attempts, budget, risk)
    leave = clean_reruns(budget, risk)
    return Proposal(
        failures=rate.failures,
        attempts=rate.attempts,
        unknown=rate.unknown,
        sessions=len({each.session_id for each in counted}) + sum(each.times - 1 for each in counted),
        digests=flaked[-1].digests,
        lower=rate.lower,
        budget=str(budget),
        risk=str(risk),
        at_every_look=every_look,
        clean_to_leave=leave,
        says=(
            f"flaky: {rate.failures} of {rate.attempts} first attempts failed, on digests that also pass; at this"
            f" look the rate is at least {percent(rate.lower)}, {_LOOKS[every_look]} the budget of"
            f" {percent(budget)}. Out again: a change and {leave} clean first attempts"
        ),
    )


def check_exit(history: Iterable[FirstAttempt], *, entry_digests: str, budget: Exact, risk: Exact) -> ExitCheck:
    """Say whether the first attempts since a case was quarantined, oldest first, let it out.

    It takes a recorded change (digests other than `entry_digests`) and as many clean first attempts on changed
    digests as bound the rate by the budget. A failure uses up all digests since that change: only another one
    starts a new count, and the risk over all of them is said. What passes on used-up digests proves nothing new.

    Raises:
        UsageRefused: a budget or risk that is not a decimal strictly between 0 and 1.
    """
    need = clean_reruns(budget, risk)
    count = _count(history, entry_digests)
    code = _exit_code(count, need)
    # As many places as the budget has, so that a bound that meets it is not printed above it.
    places = max(4, -int(Decimal(budget).as_tuple().exponent))
    bound = bound_text(upper_bound(0, count.clean, risk), places) if count.clean else None
    way_out = probation(budget, risk) if code == "too-few-clean" else None
    return ExitCheck(
        code=code,
        clean=count.clean,
        need=need,
        unknown=count.unknown,
        changes=count.changes,
        bound=bound,
        risk_over_changes=bound_text(risk_over_fixes(budget, need, count.changes)) if count.changes else None,
        probation=way_out,
        says=_exit_says(code, count, need, bound, budget, way_out),
    )


def probation(budget: Exact, risk: Exact) -> Probation | None:
    """Return the probation of a case whose clean runs are not affordable; None where the budget allows none.

    It gates again and is red on the second failure, for as many first attempts as keep a case that is within its
    budget out of the red at `risk`.

    Raises:
        UsageRefused: a budget or risk that is not a decimal strictly between 0 and 1.
    """
    proportion(budget, "flake_budget")
    proportion(risk, "risk")
    fails_twice = partial(_fails_twice, Decimal(budget))
    runs = bisect_right(range(1, _MOST_RUNS), Decimal(risk), key=fails_twice)
    if runs == 1:
        return None
    red, bound = bound_text(fails_twice(runs)), bound_text(upper_bound(1, runs, risk))
    return Probation(
        runs=runs,
        red_at_budget=red,
        bound=bound,
        says=(
            f"probation: it gates again, red on the second failure in {runs} first attempts; at its budget that"
            f" happens in {percent(red)}, and passing shows only < {percent(bound)}"
        ),
    )


def most_quarantined(cases: int, limit: int = 3) -> int:
    """Return how many of `cases` may be quarantined at once: `limit`, or 5 % of them where that is more."""
    return max(limit, cases * SHARE_PERCENT // 100)


def _poolable(segment: Sequence[FirstAttempt]) -> tuple[Sequence[FirstAttempt], FirstAttemptCounts]:
    """The segment; where its digests fail at different rates, the part on the present digests. And its counts."""
    groups = by_digests(segment)
    pooled = [(each.failures, each.failures + each.passes) for each in groups.values() if each.can_pass]
    z = tarone_z([failures for failures, _ in pooled], [attempts for _, attempts in pooled])
    if z is None or z <= OVERDISPERSED:
        return segment, first_attempt_counts(groups.values())
    present = segment[-1].digests
    return [each for each in segment if each.digests == present], first_attempt_counts([groups[present]])


def _refusal(rate: FirstAttemptCounts, budget: Exact, risk: Exact) -> NoProposal | None:
    if rate.only_failed and not rate.failures:
        return NoProposal(
            code="only-fails",
            why=(
                f"every failure ({rate.only_failed}) was on digests on which nothing passed: a regression until"
                " shown otherwise, not a flake. Repair it, or set it aside by hand as broken, for at most 14 days"
            ),
        )
    if rate.attempts < FEWEST_ATTEMPTS:
        why = f"{rate.attempts} first attempts on digests that pass; {FEWEST_ATTEMPTS} are needed to call it flaky"
        return NoProposal(code="too-few-attempts", why=why)
    seen = f"{rate.failures} of {rate.attempts} first attempts failed"
    if rate.failures < FEWEST_FAILURES:
        why = f"{seen}; it takes {FEWEST_FAILURES} to call it flaky"
        return NoProposal(code="too-few-failures", why=why)
    fewest = quarantine_min_k(rate.attempts, budget, risk)
    if rate.failures < fewest:
        why = f"{seen}; only {fewest} would show a rate above the budget of {percent(budget)}"
        return NoProposal(code="within-budget", why=why)
    return None


def _fails_now(history: Sequence[FirstAttempt]) -> NoProposal | None:
    """Refuse a check that fails for good though nothing was changed: something around the agent broke."""
    since: str | None = None
    failures = 0
    for each in reversed(history):
        if each.failed is False or each.confirm_passed:
            break
        if each.failed:
            since = each.session_id
            failures += each.times
    if failures < FAILS_NOW:
        return None
    return NoProposal(
        code="only-fails",
        why=(
            f"it fails always since session {since} ({failures} first attempts, and no confirm run passed): a"
            " regression until shown otherwise, not a flake. Repair it, or set it aside by hand as broken, for at"
            " most 14 days"
        ),
    )


def _holds_at_every_look(failures: int, attempts: int, budget: Exact, risk: Exact) -> bool:
    """Whether a confidence sequence (Jeffreys mixture, Ville's inequality) lies above the budget too."""
    rate = float(budget)
    at_budget = failures * log(rate) + (attempts - failures) * log(1 - rate)
    return bb_loglik(failures, attempts, (0.5, 0.5)) - at_budget >= -log(float(risk))


class _Count(NamedTuple):
    """First attempts on changed digests, since the last failure on such digests."""

    clean: int
    unknown: int
    changes: int


def _count(history: Iterable[FirstAttempt], entry_digests: str) -> _Count:
    used_up, tried = {entry_digests}, set[str]()
    clean = unknown = changes = 0
    for each in history:
        if each.digests in used_up:
            continue
        if each.failed is None:
            unknown += each.times
            continue
        changes += not tried
        tried.add(each.digests)
        clean += each.times
        if each.failed:
            used_up |= tried
            tried = set()
            clean = unknown = 0
    return _Count(clean, unknown, changes)


def _exit_code(count: _Count, need: int) -> ExitCode:
    if not count.changes:
        return "no-change"
    if not count.clean:
        return "failed-again"
    return "granted" if count.clean >= need else "too-few-clean"


def _exit_says(
    code: ExitCode, count: _Count, need: int, bound: str | None, budget: Exact, way_out: Probation | None
) -> str:
    if code == "no-change":
        return "exit refused: nothing was changed since it was quarantined, and passes alone do not end it"
    if bound is None:
        return f"exit refused: it failed again after change {count.changes}; another change starts a new count"
    shows = f"{count.clean} clean shows < {percent(bound)}, budget is {percent(budget)}"
    if count.unknown:
        shows += f"; {count.unknown} unknown, not counted as clean"
    if code == "granted":
        return f"exit granted: {shows} (change {count.changes})"
    more = f"exit refused: {shows}; {need - count.clean} more clean first attempts are needed"
    return more if way_out is None else f"{more}. Or {way_out.says}"


def _fails_twice(rate: Decimal, attempts: int) -> Decimal:
    """P(X >= 2) in so many attempts, to 50 digits: exact where a tie is possible."""
    with localcontext(_FIFTY_DIGITS):
        return 1 - (1 - rate) ** (attempts - 1) * (1 + (attempts - 1) * rate)
