"""Where a row of live runs stands: accepted, refuted or undecided, read in run order.

Knows plans and run numbers only. Run numbers are given when runs are planned, so reading them in order makes the
result independent of which run ended first. A plan is nothing but its bounds, so one reading serves every plan.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import chain, islice, pairwise
from typing import Literal

from pydantic import field_validator

from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.session import LiveRow
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.rules.binomial import upper_bound
from pytest_regcase.rules.exact import Exact

RunOutcome = Literal["clean", "failed", "unknown", "passed-over"]
"""`unknown` proves nothing (inconclusive, not an independent draw); `passed-over` is skipped without harm, where
the case says that failing in another way does not stop a streak."""

_STRENGTH: Mapping[RunOutcome, int] = {"unknown": 0, "passed-over": 1, "clean": 2, "failed": 3}


class Plan(Record):
    """How many runs claim, by the number of failures among them."""

    name: str
    bounds: Many[int]
    """``bounds[k]``: with k failures, this many decided runs are a claim. As many failures as entries refute."""

    @field_validator("bounds")
    @classmethod
    def _never_decrease(cls, bounds: tuple[int, ...]) -> tuple[int, ...]:
        if not bounds or bounds[0] < 1 or any(later < earlier for earlier, later in pairwise(bounds)):
            raise ValueError("a plan needs bounds of at least 1 run that never decrease with the failures")
        return bounds


class SequentialResult(Record):
    """Where the runs stand under the plan."""

    outcome: Literal["accepted", "refuted", "undecided"]
    clean: int
    """Clean runs, in run order, up to the run that settles or would settle the plan."""
    failures: int
    """Failed runs among the same."""
    need: int
    """Clean runs that claim under the plan if no (further) run fails."""
    refuted_by_run: int | None = None
    """The failed run that is one more than the plan allows, also when an unknown run below it leaves the result
    undecided."""
    settled_by_run: int | None = None
    """The run at which the plan is settled, where no unknown one lies below; None: undecided."""
    missing: Many[int] = ()
    """Numbers without a conclusive run below the run that settles it, or below the highest one made."""


def outcome_of(verdict: AttemptVerdict, *, fresh: bool, pass_over: bool) -> RunOutcome:
    """Return what one live attempt says about the claim.

    A clean attempt that is no fresh draw is `unknown`: it repeats evidence. A failed one fails whatever drew it.
    """
    if verdict == "recurred":
        return "failed"
    if verdict == "failed-otherwise":
        return "passed-over" if pass_over else "failed"
    if verdict == "clean":
        return "clean" if fresh else "unknown"
    return "unknown"


def history_of(rows: Sequence[LiveRow], *, pass_over: bool) -> dict[int, RunOutcome]:
    """Return run number -> outcome, in run order.

    A number that was run again (after an inconclusive attempt, or by two sessions at once) counts once: a failure
    outweighs a clean run, and a clean run one that proved nothing.
    """
    history: dict[int, RunOutcome] = {}
    for row in rows:
        found = outcome_of(row.verdict, fresh=row.fresh, pass_over=pass_over)
        history[row.run] = max(history.get(row.run, "unknown"), found, key=_STRENGTH.__getitem__)
    return dict(sorted(history.items()))


def decide(plan: Plan, history: Mapping[int, RunOutcome]) -> SequentialResult:
    """Read the runs in number order until the plan settles them.

    A missing or unknown number below the settling run makes it undecided: that run may still turn out either
    way, and leaving it out would count whatever is easiest to finish. What lies behind the settling run changes
    nothing.
    """
    clean = failures = 0
    missing: list[int] = []
    settles: Literal["accepted", "refuted", "undecided"] = "undecided"
    settled_by: int | None = None
    for number in range(1, max(history, default=0) + 1):
        outcome = history.get(number, "unknown")
        if outcome == "unknown":
            missing.append(number)
        clean += outcome == "clean"
        failures += outcome == "failed"
        if failures == len(plan.bounds):
            settles, settled_by = "refuted", number
            break
        if clean + failures == plan.bounds[failures]:
            settles, settled_by = "accepted", number
            break
    allowed = min(failures, len(plan.bounds) - 1)
    return SequentialResult(
        outcome="undecided" if missing else settles,
        clean=clean,
        failures=failures,
        need=plan.bounds[allowed] - allowed,
        refuted_by_run=settled_by if settles == "refuted" else None,
        settled_by_run=None if missing else settled_by,
        missing=tuple(missing),
    )


def wanted_runs(plan: Plan, history: Mapping[int, RunOutcome], at_most: int) -> tuple[int, ...]:
    """Return the numbers of the runs to make next, lowest first, at most `at_most`.

    Without a limit, and if all of them come out clean, the plan is settled: a number whose run proved nothing is
    made again under the same number, and clean runs behind such a hole do not spare it. None where even then the
    plan is refuted, or where it is settled already.
    """
    holes: list[int] = []
    last = max(history, default=0)
    failures = decided = 0
    for number in range(1, last + 1):
        if decided == plan.bounds[failures]:
            break
        outcome = history.get(number, "unknown")
        if outcome == "unknown":
            holes.append(number)
        decided += outcome != "passed-over"
        failures += outcome == "failed"
        if failures == len(plan.bounds):
            return ()
    further = range(last + 1, last + 1 + plan.bounds[failures] - decided)
    return tuple(islice(chain(holes, further), at_most))


def bound_at_this_look(result: SequentialResult, risk: Exact) -> Decimal:
    """Return the upper bound on the failure rate that the runs read so far give, at this look only.

    For display beside an undecided plan: read after each run until one reading is low enough, such bounds hold
    less often than 1 - `risk`. A missing run is taken for a failed one: left out, it would speak for the fix.

    Raises:
        UsageRefused: a risk that is not strictly between 0 and 1.
    """
    failures = result.failures + len(result.missing)
    return upper_bound(failures, failures + result.clean, risk)
