"""The plan that a claimed fix is held to: the configured one, tightened by what else the rule in force asks for.

Pure. Knows plans, the baseline, the number of the fix and the sessions of the runs; which rows count is handed in.
Everything here can only ask for more runs than the plan alone, so its risk stays at most the stated one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext

from pytest_regcase.records.base import Record
from pytest_regcase.records.case import Baseline, RerunRule
from pytest_regcase.records.session import LiveRow
from pytest_regcase.rules.binomial import bound_text
from pytest_regcase.rules.claims import Rule, fails_less, requirement
from pytest_regcase.rules.comparison import Method
from pytest_regcase.rules.exact import percent
from pytest_regcase.rules.independence import Independence, counting_draws, run_order
from pytest_regcase.rules.operating import claim_probabilities
from pytest_regcase.rules.plans import plan_for
from pytest_regcase.rules.sequential import (
    Plan,
    RunOutcome,
    SequentialResult,
    decide,
    history_of,
    outcome_of,
    wanted_runs,
)
from pytest_regcase.rules.solving import smallest_runs
from pytest_regcase.rules.spending import spent_risk

ENOUGH_SESSIONS = 3
"""A claim from fewer sessions is warned about: runs of one session share its outages and its model snapshot."""

_DIGITS = 50
_LONGEST_SHOWN = 6


class ClaimSettings(Record):
    """What a project asks of a claim beside rate and risk; the defaults are those of the design."""

    plan: str = "zero"
    rule: Rule = "bounded"
    """`fixed`: the comparison with the baseline is compulsory beside the bound."""
    comparison: Method = "fisher"
    min_sessions: int = 1
    attempts_spend: bool = False
    """All fixes together spend the stated risk, instead of each the whole of it."""
    independence: Independence = "fresh"


@dataclass(frozen=True)
class InForce:
    """A claim's plan, and where its runs stand under it."""

    plan: Plan
    history: Mapping[int, RunOutcome]
    result: SequentialResult
    counted: Mapping[int, LiveRow]
    """Run number -> the row that counts for it, in number order."""

    @property
    def clean(self) -> tuple[LiveRow, ...]:
        """The clean rows that carry the claim: those that were read until it was settled or refuted."""
        rows = [row for row in self.counted.values() if row.verdict == "clean" and row.fresh]
        return tuple(rows[: self.result.clean])

    @property
    def sessions(self) -> int:
        """How many sessions these clean rows come from."""
        return len({row.session_id for row in self.clean})

    @property
    def failures_left(self) -> int:
        """How many further failed runs refute the claim; 0 where it is refuted."""
        return len(self.plan.bounds) - self.result.failures


def risk_of(settings: ClaimSettings, rule: RerunRule, fix_number: int) -> str:
    """Return the risk of the claim of that fix, as a decimal string: the stated one, or its share of it.

    Raises:
        UsageRefused: a risk that is not strictly between 0 and 1.
    """
    return f"{spent_risk(rule.risk, fix_number):f}" if settings.attempts_spend else rule.risk


def shown_risk(risk: str) -> str:
    """Return `risk` as it was written; a share of the stated one, which has many digits, rounded up to four."""
    return risk if len(risk) <= _LONGEST_SHOWN else bound_text(Decimal(risk))


def claim_plan(settings: ClaimSettings, rule: RerunRule, baseline: Baseline | None, fix_number: int = 1) -> Plan:
    """Return how many runs claim fix number `fix_number`, by the number of failures among them.

    Under the rule `fixed` each bound is at least the number of runs from which on the comparison with the baseline
    holds too (2 of 20 at the defaults: 68 clean runs). Without a failure in the baseline there is nothing to
    compare with, and the bounds stay those of the rate.

    Raises:
        UsageRefused: no such plan or comparison, a rate or risk out of range.
    """
    risk = risk_of(settings, rule, fix_number)
    plan = plan_for(settings.plan, rule.max_failure_rate, risk)
    if settings.rule != "fixed" or baseline is None or not baseline.failures or baseline.population != "task":
        return plan
    bounds = tuple(
        _compared(settings, rule, baseline, risk, failures, bound) for failures, bound in enumerate(plan.bounds)
    )
    return plan.model_copy(update={"bounds": bounds})


def risk_over_fixes(settings: ClaimSettings, rule: RerunRule, baseline: Baseline | None, fixes: int) -> Decimal:
    """Return the chance that at least one of `fixes` fixes that change nothing is claimed, at the rate exactly.

    1 - product of (1 - risk of that fix's plan), fixes taken as independent; to 50 digits. It never exceeds the
    stated risk where all fixes together spend it, and grows with every fix where they do not.

    Raises:
        UsageRefused: as `claim_plan`.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        if not settings.attempts_spend:  # then every fix has the same plan
            return 1 - (1 - _claimed(claim_plan(settings, rule, baseline), rule)) ** fixes
        none_claimed = Decimal(1)
        for number in range(1, fixes + 1):
            none_claimed *= 1 - _claimed(claim_plan(settings, rule, baseline, number), rule)
        return 1 - none_claimed


def in_force(settings: ClaimSettings, plan: Plan, rows: Sequence[LiveRow], *, pass_over: bool) -> InForce:
    """Return where `rows` stand, read in run order until the plan settles them and enough sessions took part.

    A plan that is settled by runs of too few sessions asks for one more run for each session that is missing: the
    result depends on a prefix of the runs only, and a failure among the further ones counts.
    """
    drawn = counting_draws(rows, settings.independence)
    history = history_of(drawn, pass_over=pass_over)
    counted = _counted(drawn, history, pass_over)
    more = _further_runs(settings.min_sessions, plan, history, counted)
    plan = plan.model_copy(update={"bounds": tuple(bound + more for bound in plan.bounds)})
    return InForce(plan, history, decide(plan, history), counted)


def _further_runs(
    min_sessions: int, plan: Plan, history: Mapping[int, RunOutcome], counted: Mapping[int, LiveRow]
) -> int:
    """How many runs more than `plan` asks for are needed, since those before came from too few sessions."""
    further = decided = failures = 0
    sessions: set[str] = set()
    for number, (run, outcome) in enumerate(history.items(), 1):
        if run != number or outcome == "unknown":
            break  # undecided, whatever comes behind
        decided += outcome != "passed-over"
        failures += outcome == "failed"
        if outcome == "clean":
            sessions.add(counted[run].session_id)
        if failures == len(plan.bounds):
            break
        if decided == plan.bounds[failures] + further:
            further += max(0, min_sessions - len(sessions))
    return further


def next_runs(settings: ClaimSettings, standing: InForce, at_most: int) -> tuple[int, ...]:
    """Return the numbers of the runs that the next session makes, lowest first, at most `at_most`.

    Where several sessions are asked for, what is still to be made is spread over those that are missing.
    """
    plan = standing.plan
    left = len(wanted_runs(plan, standing.history, plan.bounds[-1]))
    sessions = max(1, settings.min_sessions - standing.sessions)
    return wanted_runs(plan, standing.history, min(at_most, -(-left // sessions)))


def need_from(settings: ClaimSettings, rule: RerunRule, risk: str, base: Plan, plan: Plan) -> str:
    """Return how the number of clean runs was got, in one line.

    `base` is the configured plan, `plan` what the rest of the rule made of it.
    """
    rate, shown = percent(Decimal(rule.max_failure_rate)), percent(Decimal(shown_risk(risk)))
    left = 1 - Decimal(rule.max_failure_rate)
    if base.name == "zero":
        (need,) = base.bounds
        text = f"{need} rule out a {rate} rate at {shown} risk: {left}^{need} = {left**need:.4f}"
    else:
        chance = _claimed(base, rule)
        text = f"plan {base.name}: {_bounds(base)} rule out a {rate} rate at {shown} risk: exact risk {chance:.4f}"
    if plan.bounds == base.bounds:
        return text
    why = ["the comparison with the baseline"] if settings.rule == "fixed" else []
    why += [f"{settings.min_sessions} sessions"] if settings.min_sessions > 1 else []
    return f"{text}; {_bounds(plan)} with {' and '.join(why)}"


def _bounds(plan: Plan) -> str:
    first, *others = plan.bounds
    if others and set(others) == {first}:
        return f"{first} runs with at most {len(others)} failed"
    return " or ".join([f"{first} clean runs", *(f"{each} with {k} failed" for k, each in enumerate(others, 1))])


def _claimed(plan: Plan, rule: RerunRule) -> Decimal:
    """The exact risk of `plan`, to 50 digits."""
    with localcontext() as context:
        context.prec = _DIGITS
        return Decimal(sum(claim_probabilities(plan.bounds, Decimal(rule.max_failure_rate))))


def _compared(
    settings: ClaimSettings, rule: RerunRule, baseline: Baseline, risk: str, failures: int, bound: int
) -> int:
    """The smallest number of runs, at least `bound`, from which on the comparison holds with so many failures."""
    rate, method = rule.max_failure_rate, settings.comparison
    if failures == 0:
        clean = requirement(rate, risk, baseline=baseline, comparison=method).fixed
        assert clean is not None
        return max(bound, clean)
    if method == "boschloo":
        # Its p-value may rise with one more clean run. Fisher's does not, and is never below it.
        method = "fisher"

    def improved(runs: int) -> bool:
        return fails_less(baseline, failures, runs, risk, method)

    return smallest_runs(bound, improved)


def _counted(rows: Sequence[LiveRow], history: Mapping[int, RunOutcome], pass_over: bool) -> dict[int, LiveRow]:
    """One row a number, of those that show what `history` says of it: the same whichever was made first."""
    counted: dict[int, LiveRow] = {}
    for row in sorted(rows, key=run_order):
        if outcome_of(row.verdict, fresh=row.fresh, pass_over=pass_over) == history[row.run]:
            counted.setdefault(row.run, row)
    return counted
