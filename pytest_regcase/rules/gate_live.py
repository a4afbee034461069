"""Where a case's live runs stand: the claim, and the first recurrence. Pure."""

from collections import Counter
from dataclasses import dataclass

from pytest_regcase.records.decision import Claim, ScenarioResult
from pytest_regcase.records.words import InconclusiveReason
from pytest_regcase.rules.claim_plan import InForce, claim_plan, in_force
from pytest_regcase.rules.gate_checks import SAYS_WHY
from pytest_regcase.rules.gate_claim import claim_so_far, one_transcript
from pytest_regcase.rules.gate_inputs import CaseInputs
from pytest_regcase.rules.lifecycle import is_closed, last_fix
from pytest_regcase.rules.plans import plan_for
from pytest_regcase.rules.sequential import RunOutcome, decide

CLEAN: RunOutcome = "clean"


@dataclass(frozen=True)
class LiveStanding:
    """What the live rows of the present digests show since the last claimed fix."""

    claim: Claim | None = None
    """None: no fix is claimed."""
    runs: InForce | None = None
    recurred_run: int | None = None
    """The run in which the symptom came back against the claim; not one that the plan allows."""
    recurred_elsewhere: bool = False
    """The symptom came back since the last fix on other digests, against the claim."""
    allowed_run: int | None = None
    """The first run in which the symptom came back, where the plan allows it."""
    identical: bool = False
    """All clean runs (two or more) have one and the same transcript."""
    inconclusive_now: tuple[int, ...] = ()
    """Numbers of this session's planned live runs that proved nothing, none behind the stopping run."""
    why_inconclusive: str = ""

    @property
    def recurred(self) -> bool:
        """Say whether the symptom came back since the last fix, against the claim."""
        return self.recurred_run is not None or self.recurred_elsewhere

    @property
    def stopping_run(self) -> int | None:
        """The failed run that refutes the claim; runs with a higher number were rightly not made."""
        return None if self.runs is None else self.runs.result.refuted_by_run

    def stopped_before(self, run: int) -> bool:
        """Say whether failed runs with lower numbers stopped this one."""
        return self.stopping_run is not None and run > self.stopping_run


def live_standing(case: CaseInputs) -> LiveStanding:
    """Return where the live runs stand, read in run order up to the run that settles the claim.

    Raises:
        UsageRefused: the rule in force is none that can be decided.
    """
    # Solved also where nothing is claimed: a plan that cannot be used is said before somebody relies on it.
    plan_for(case.claims.plan, case.rule.max_failure_rate, case.rule.risk)
    fix = last_fix(case.case)
    if fix is None:
        inconclusive, why = _inconclusive_now(case, None)
        return LiveStanding(inconclusive_now=inconclusive, why_inconclusive=why)
    plan = claim_plan(case.claims, case.rule, case.case.baseline, fix.number)
    pass_over = case.case.expected_recovery.other_failures == "pass-over"
    runs = in_force(case.claims, plan, case.live, pass_over=pass_over)
    closed = is_closed(case.case)
    recurred_run = _recurred_run(case, runs, closed=closed)
    came_back = [row.run for row in case.live if row.verdict == "recurred"]
    inconclusive, why = _inconclusive_now(case, runs.result.refuted_by_run)
    return LiveStanding(
        claim=claim_so_far(case, runs, fix.number),
        runs=runs,
        recurred_run=recurred_run,
        # What the plan allows it allows the fix, not each revision of the agent since.
        recurred_elsewhere=case.recurred_set_aside >= (1 if closed else max(1, runs.failures_left)),
        allowed_run=min(came_back, default=None) if recurred_run is None else None,
        identical=one_transcript(runs),
        inconclusive_now=inconclusive,
        why_inconclusive=why,
    )


def live_scenario(case: CaseInputs, live: LiveStanding) -> ScenarioResult | None:
    """Return the row that shows the live runs; None where there are none and none was planned."""
    if live.claim is None:
        return None
    assert live.runs is not None
    stopped_by = live.stopping_run or live.recurred_run
    counted = [row for row in live.runs.counted.values() if stopped_by is None or row.run <= stopped_by]
    if not counted and not any(each.kind == "live" for each in case.checks):
        return None
    return ScenarioResult(
        name="live",
        planned=live.claim.need,
        run=len(counted),
        counts=dict(sorted(Counter(row.verdict for row in counted).items())),
        result="counted" if counted else "not-run",
        why=live.why_inconclusive or None,
    )


def _recurred_run(case: CaseInputs, runs: InForce, *, closed: bool) -> int | None:
    """The lowest run that showed the symptom and that the plan does not allow.

    Runs that proved nothing are read as clean here: a recurrence that the plan does not allow even then stays red.
    """
    came_back = sorted(row.run for row in case.live if row.verdict == "recurred")
    at_best: dict[int, RunOutcome] = {**runs.history, **dict.fromkeys(runs.result.missing, CLEAN)}
    result = decide(runs.plan, at_best)
    if result.refuted_by_run is not None:
        return next((run for run in came_back if run >= result.refuted_by_run), min(came_back, default=None))
    if result.settled_by_run is not None:
        return next((run for run in came_back if run > result.settled_by_run), None)
    # Undecided, so within what the plan allows a claim. A closed case has none to spare.
    return min(came_back, default=None) if closed else None


def _inconclusive_now(case: CaseInputs, stopped_by: int | None) -> tuple[tuple[int, ...], str]:
    due = [each for each in case.checks if each.kind == "live" and (stopped_by is None or each.run < stopped_by)]
    made = [each for each in due if each.tries]
    nothing = [each for each in made if all(row.verdict == "inconclusive" for row in each.tries)]
    reasons: set[InconclusiveReason] = {
        row.reason for each in nothing for row in each.tries if row.reason is not None
    }
    return tuple(each.run for each in nothing), "; ".join(sorted(SAYS_WHY[reason] for reason in reasons))
