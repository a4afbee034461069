"""Where a row of live runs stands: accepted, refuted or undecided, read in run order.

Knows plans and run numbers only. Run numbers are given when runs are planned, so reading them in order makes the
result independent of which run ended first. Only the plan `zero` is here; others differ in `bounds` alone.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.session import LiveRow
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.rules.exact import Exact
from pytest_regcase.rules.rerun import clean_reruns

RunOutcome = Literal["clean", "failed", "unknown", "passed-over"]
"""`unknown` proves nothing (inconclusive, not an independent draw); `passed-over` is skipped without harm, where
the case says that failing in another way does not stop a streak."""

_STRENGTH: Mapping[RunOutcome, int] = {"unknown": 0, "passed-over": 1, "clean": 2, "failed": 3}


class Plan(Record):
    """How many runs claim, by the number of failures among them."""

    name: str
    bounds: Many[int]
    """``bounds[k]``: with k failures, this many decided runs are a claim. More failures than entries refute."""


class SequentialResult(Record):
    """Where the runs stand under the plan."""

    outcome: Literal["accepted", "refuted", "undecided"]
    clean: int
    """Clean runs, in run order, below the refuting one."""
    need: int
    """Clean runs that claim under the plan if no (further) run fails."""
    refuted_by_run: int | None = None
    """The first failed run, also when an unknown run below it leaves the result undecided."""
    settled_by_run: int | None = None
    """The run at which the plan is settled, where no unknown one lies below; None: undecided."""
    missing: Many[int] = ()
    """Numbers without a conclusive run below the run that settles it, or below the highest one made."""


def plan_for(name: str, max_rate: Exact, risk: Exact) -> Plan:
    """Return the plan of that name for a rate and a risk.

    Raises:
        UsageRefused: no such plan; a rate or risk out of range.
    """
    if name != "zero":
        raise UsageRefused(f'Couldn\'t use the plan {name!r}: this version has only "zero".\nWrite plan = "zero".')
    return Plan(name="zero", bounds=(clean_reruns(max_rate, risk),))


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
        before = history.get(row.run)
        if before is None or _STRENGTH[found] > _STRENGTH[before]:
            history[row.run] = found
    return dict(sorted(history.items()))


def decide(plan: Plan, history: Mapping[int, RunOutcome]) -> SequentialResult:
    """Read the runs in number order until the plan settles them.

    A missing or unknown number below the settling run makes it undecided: that run may still turn out either
    way, and leaving it out would count whatever is easiest to finish. What lies behind the settling run changes
    nothing.
    """
    clean = failures = decided = 0
    first_failure: int | None = None
    missing: list[int] = []
    for number in range(1, max(history, default=0) + 1):
        outcome = history.get(number, "unknown")
        if outcome == "unknown":
            missing.append(number)
            continue
        if outcome == "passed-over":
            continue
        decided += 1
        if outcome == "failed":
            failures += 1
            first_failure = first_failure or number
            if failures >= len(plan.bounds):
                return _settled("refuted", plan, clean, failures, first_failure, number, missing)
        else:
            clean += 1
        if decided >= plan.bounds[failures]:
            return _settled("accepted", plan, clean, failures, first_failure, number, missing)
    return SequentialResult(
        outcome="undecided",
        clean=clean,
        need=_need(plan, failures),
        refuted_by_run=first_failure,
        missing=tuple(missing),
    )


def wanted_runs(plan: Plan, history: Mapping[int, RunOutcome], at_most: int) -> tuple[int, ...]:
    """Return the numbers of the runs to make next, lowest first, at most `at_most`.

    Without a limit, and if all of them come out clean, the plan is settled: a number whose run proved nothing is
    made again under the same number, and clean runs behind such a hole do not spare it. None where the plan is
    refuted: nothing further can make the claim true.
    """
    if list(history.values()).count("failed") >= len(plan.bounds):
        return ()
    wanted: list[int] = []
    failures = decided = number = 0
    while len(wanted) < at_most and decided < plan.bounds[failures]:
        number += 1
        outcome = history.get(number, "unknown")
        if outcome == "unknown":
            wanted.append(number)
        decided += outcome != "passed-over"
        failures += outcome == "failed"
    return tuple(wanted)


def _settled(
    outcome: Literal["accepted", "refuted"],
    plan: Plan,
    clean: int,
    failures: int,
    failure: int | None,
    number: int,
    missing: list[int],
) -> SequentialResult:
    return SequentialResult(
        outcome="undecided" if missing else outcome,
        clean=clean,
        need=_need(plan, failures),
        refuted_by_run=failure,
        settled_by_run=None if missing else number,
        missing=tuple(missing),
    )


def _need(plan: Plan, failures: int) -> int:
    allowed = min(failures, len(plan.bounds) - 1)
    return plan.bounds[allowed] - allowed
