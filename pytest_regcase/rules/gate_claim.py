"""The claim that a case's live runs make so far: its word, its numbers, and what the rule still lacks. Pure."""

from collections import Counter
from decimal import Decimal

from pytest_regcase.records.decision import Claim, ClaimKind
from pytest_regcase.rules.binomial import bound_text
from pytest_regcase.rules.claim_plan import ENOUGH_SESSIONS, InForce, need_from, risk_of, risk_over_fixes
from pytest_regcase.rules.claims import ClaimStanding, claim_of, passes_unchanged
from pytest_regcase.rules.exact import chance
from pytest_regcase.rules.gate_inputs import CaseInputs
from pytest_regcase.rules.independence import symptom_is_the_suppliers
from pytest_regcase.rules.plans import plan_for
from pytest_regcase.rules.pooling import kish
from pytest_regcase.rules.sequential import bound_at_this_look


def claim_so_far(case: CaseInputs, runs: InForce, fix_number: int) -> Claim:
    """Return what the runs read so far claim for fix number `fix_number`, and what the rule in force still lacks.

    A refuted claim claims nothing and lacks nothing. Runs that are one draw repeated, or may not be all
    that were made, claim nothing. A number whose run proved nothing is taken for a failed one wherever that
    matters: left out, it would speak for the fix.

    Raises:
        UsageRefused: the rule in force is none that can be decided.
    """
    settings, rule, baseline = case.claims, case.rule, case.case.baseline
    risk = risk_of(settings, rule, fix_number)
    clean, result = runs.clean, runs.result
    refuted = result.refuted_by_run is not None
    digests = {row.response_digest for row in clean if row.response_digest is not None}
    failures = result.failures - refuted
    one_draw = _one_draw(case, runs)
    tells = result.clean > 0 and not refuted and not one_draw
    compares = tells and not case.fix_is_of_another_ledger
    not_clean = failures + len(result.missing)
    shown = claim_of(
        max_rate=rule.max_failure_rate,
        risk=risk,
        baseline=baseline,
        comparison=settings.comparison,
        failures=not_clean,
        runs=result.clean + not_clean,
    )
    lacks = _lacks(case, runs, shown, risk, fix_number)
    bounded = result.outcome == "accepted" and compares
    unchanged = passes_unchanged(baseline, result.need)
    return Claim(
        kind="none" if refuted else _kind(bounded, shown, compares=compares),
        settled=bounded and not lacks,
        lacks=() if refuted else lacks,
        plan=settings.plan,
        rule=settings.rule,
        need=result.need,
        need_from=need_from(settings, rule, risk, plan_for(settings.plan, rule.max_failure_rate, risk), runs.plan),
        clean=result.clean,
        failures=failures,
        fresh=len(clean),
        distinct=len(digests),
        sessions=runs.sessions,
        bound=bound_text(bound_at_this_look(result, risk)) if tells else None,
        risk=risk,
        max_rate=rule.max_failure_rate,
        p_value=shown.p_value if compares else None,
        compared=shown.compared if compares else None,
        would_pass_unchanged=None if unchanged is None else chance(unchanged),
        fix_number=fix_number,
        risk_over_fixes=_rounded_up(risk_over_fixes(settings, rule, baseline, fix_number)),
        attempts_spend=settings.attempts_spend,
        independence=settings.independence,
        refuted_by_run=result.refuted_by_run,
        missing=result.missing,
        warnings=_warnings(case, runs, shown, bounded=bounded) if tells else (),
    )


def _kind(bounded: bool, shown: ClaimStanding, *, compares: bool) -> ClaimKind:
    if bounded:
        return "FIXED" if shown.improved else "BOUNDED"
    if shown.improved and compares:
        return "IMPROVED"
    return "NOT REPRODUCED" if shown.kind == "NOT REPRODUCED" else "none"


def _lacks(case: CaseInputs, runs: InForce, shown: ClaimStanding, risk: str, fix_number: int) -> tuple[str, ...]:
    """What the rule in force asks for beyond clean runs, and is not there."""
    lacks: list[str] = []
    settings = case.claims
    if case.fix_is_of_another_ledger:
        lacks.append(f"the ledger that fix {fix_number} was claimed on")
    if _one_draw(case, runs):
        lacks.append(f"transcripts that differ: all {len(runs.clean)} clean runs gave the same one")
    if settings.rule == "fixed" and not shown.improved:
        lacks.append(
            "a baseline of live runs of this task with a failure in it, for the comparison"
            if shown.improved is None
            else f"fewer failures than in the baseline: p = {shown.p_value}, at most {risk} is asked for"
        )
    if runs.sessions < settings.min_sessions > 1:
        lacks.append(f"clean runs from {settings.min_sessions} sessions; so far {runs.sessions}")
    return tuple(lacks)


def _warnings(case: CaseInputs, runs: InForce, shown: ClaimStanding, *, bounded: bool) -> tuple[str, ...]:
    warnings = list(shown.warnings)
    if case.claims.independence == "off":
        warnings.append(
            "UNVERIFIED: whether the clean runs are independent draws was not asked (independence = off)"
        )
    if bounded and runs.sessions < ENOUGH_SESSIONS:
        warnings.append(
            f"all clean runs come from {_many(runs.sessions, 'session')}: what a session shares (an outage, a"
            f" model snapshot) they share too; {ENOUGH_SESSIONS} or more say more"
        )
    digests = [row.response_digest for row in runs.clean if row.response_digest is not None]
    sizes = list(Counter(digests).values())
    if 1 < len(sizes) < len(runs.clean) / 2:
        warnings.append(
            f"{len(runs.clean)} clean runs gave {len(sizes)} transcripts, worth {kish(sizes):.2f} different ones:"
            " the true number of draws lies in between"
        )
    return tuple(warnings)


def one_transcript(runs: InForce) -> bool:
    """Say whether all clean runs, two or more, have one and the same transcript."""
    digests = {row.response_digest for row in runs.clean if row.response_digest is not None}
    return len(runs.clean) > 1 and len(digests) == 1


def _one_draw(case: CaseInputs, runs: InForce) -> bool:
    """Where the model's output is the symptom, one transcript repeated is one draw, not many."""
    if case.claims.independence == "off" or symptom_is_the_suppliers(case.case):
        return False
    digests = {row.response_digest for row in runs.clean if row.response_digest is not None}
    return len(runs.clean) > 1 and len(digests) <= 1


def _rounded_up(value: Decimal) -> str:
    # A small chance is not printed as none.
    return bound_text(value)


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
