"""Where a case's live runs stand: the claim, and the first recurrence. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from pytest_regcase.records.decision import Claim, ScenarioResult
from pytest_regcase.records.session import LiveRow
from pytest_regcase.records.words import InconclusiveReason
from pytest_regcase.rules.binomial import bound_text, upper_bound
from pytest_regcase.rules.gate_checks import SAYS_WHY
from pytest_regcase.rules.gate_inputs import CaseInputs
from pytest_regcase.rules.independence import symptom_is_the_suppliers
from pytest_regcase.rules.lifecycle import last_fix
from pytest_regcase.rules.rerun import risk_over_fixes, unchanged_probability
from pytest_regcase.rules.sequential import SequentialResult, decide, history_of, outcome_of, plan_for


@dataclass(frozen=True)
class LiveStanding:
    """What the live rows of the present digests show since the last claimed fix."""

    claim: Claim | None = None
    """None: no fix is claimed."""
    result: SequentialResult | None = None
    recurred_run: int | None = None
    """The lowest run number in which the symptom came back."""
    identical: bool = False
    """All clean runs (two or more) have one and the same transcript."""
    counted: Mapping[int, LiveRow] | None = None
    """Run number -> the row that counts for it, up to the run that stopped the others."""
    inconclusive_now: tuple[int, ...] = ()
    """Numbers of this session's planned live runs that proved nothing, none behind the stopping run."""
    why_inconclusive: str = ""

    @property
    def recurred(self) -> bool:
        """Say whether the symptom came back on the present digests since the last fix."""
        return self.recurred_run is not None

    @property
    def stopping_run(self) -> int | None:
        """The lowest failed run; runs with a higher number were rightly not made and change nothing."""
        return self.result.refuted_by_run if self.result is not None else None

    def stopped_before(self, run: int) -> bool:
        """Say whether a failed run with a lower number stopped this one."""
        return self.stopping_run is not None and run > self.stopping_run


def live_standing(case: CaseInputs) -> LiveStanding:
    """Return where the live runs stand, read in run order up to the first failed one."""
    fix = last_fix(case.case)
    if fix is None:
        inconclusive, why = _inconclusive_now(case, None)
        return LiveStanding(inconclusive_now=inconclusive, why_inconclusive=why)
    pass_over = case.case.expected_recovery.other_failures == "pass-over"
    rule, rows = case.rule, case.live
    plan = plan_for(case.plan, rule.max_failure_rate, rule.risk)
    result = decide(plan, history_of(rows, pass_over=pass_over))
    inconclusive, why = _inconclusive_now(case, result.refuted_by_run)
    recurred_run = min((row.run for row in rows if row.verdict == "recurred"), default=None)
    counted = _counted(rows, result.refuted_by_run or recurred_run, pass_over)
    clean = [
        row
        for row in counted.values()
        if row.verdict == "clean" and row.fresh and row.run <= (result.settled_by_run or row.run)
    ]
    digests = {row.response_digest for row in clean if row.response_digest is not None}
    identical = len(clean) > 1 and len(digests) == 1
    # Where the model's output is the symptom, one transcript repeated is one draw, not many.
    one_draw = len(clean) > 1 and len(digests) <= 1 and not symptom_is_the_suppliers(case.case)
    bounded = result.outcome == "accepted" and not one_draw
    baseline = case.case.baseline
    need = plan.bounds[0]
    claim = Claim(
        kind="BOUNDED" if bounded else "none",
        need=result.need,
        clean=result.clean,
        fresh=len(clean),
        distinct=len(digests),
        sessions=len({row.session_id for row in clean}),
        bound=bound_text(upper_bound(0, result.clean, rule.risk))
        if result.clean and result.refuted_by_run is None
        else None,
        risk=rule.risk,
        max_rate=rule.max_failure_rate,
        would_pass_unchanged=None
        if baseline is None
        else _rounded(float(unchanged_probability(baseline.failures, baseline.trials, need))),
        fix_number=fix.number,
        risk_over_fixes=_rounded(float(risk_over_fixes(rule.max_failure_rate, need, fix.number))),
        refuted_by_run=result.refuted_by_run,
        missing=result.missing,
    )
    return LiveStanding(
        claim=claim,
        result=result,
        recurred_run=recurred_run,
        identical=identical,
        counted=counted,
        inconclusive_now=inconclusive,
        why_inconclusive=why,
    )


def live_scenario(case: CaseInputs, live: LiveStanding) -> ScenarioResult | None:
    """Return the row that shows the live runs; None where there are none and none was planned."""
    planned = any(each.kind == "live" for each in case.checks)
    if live.claim is None or live.counted is None or not (live.counted or planned):
        return None
    return ScenarioResult(
        name="live",
        planned=live.claim.need,
        run=len(live.counted),
        counts=dict(sorted(Counter(row.verdict for row in live.counted.values()).items())),
        result="counted" if live.counted else "not-run",
        why=live.why_inconclusive or None,
    )


def _counted(rows: tuple[LiveRow, ...], stopped_by: int | None, pass_over: bool) -> dict[int, LiveRow]:
    """One row a number, the one that history_of counts, without what lies behind the stopping run."""
    history = history_of(rows, pass_over=pass_over)
    counted: dict[int, LiveRow] = {}
    for row in rows:
        behind = stopped_by is not None and row.run > stopped_by
        counts = outcome_of(row.verdict, fresh=row.fresh, pass_over=pass_over) == history[row.run]
        if counts and not behind:
            counted.setdefault(row.run, row)
    return dict(sorted(counted.items()))


def _inconclusive_now(case: CaseInputs, stopped_by: int | None) -> tuple[tuple[int, ...], str]:
    due = [each for each in case.checks if each.kind == "live" and (stopped_by is None or each.run < stopped_by)]
    made = [each for each in due if each.tries]
    nothing = [each for each in made if all(row.verdict == "inconclusive" for row in each.tries)]
    reasons: set[InconclusiveReason] = {
        row.reason for each in nothing for row in each.tries if row.reason is not None
    }
    return tuple(each.run for each in nothing), "; ".join(sorted(SAYS_WHY[reason] for reason in reasons))


def _rounded(value: float) -> str:
    # Upwards: a small chance is not printed as none.
    return bound_text(Decimal(repr(value)))
