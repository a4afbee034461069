"""Which rule and which expectations hold for a case: its own, the project's, and the project's floors."""

from decimal import Decimal

from pytest_regcase.config import Project
from pytest_regcase.records.case import RegressionCase, RerunRule
from pytest_regcase.records.expected_recovery import ExpectedRecovery
from pytest_regcase.records.words import HypothesisClass
from pytest_regcase.rules.claim_plan import ClaimSettings, claim_plan
from pytest_regcase.rules.policies import Policy, policy_for
from pytest_regcase.rules.sequential import Plan


def rerun_rule(project: Project, case: RegressionCase) -> RerunRule:
    """Return the rerun rule of `case`: its own wins over the configuration, limits win over both."""
    own = case.handover.rerun_rule if case.handover is not None else None
    return project_rule(project) if own is None else _limited(project, own.max_failure_rate, own.risk)


def project_rule(project: Project) -> RerunRule:
    """Return the rerun rule of cases that have none of their own."""
    return _limited(project, project.config.max_failure_rate, project.config.risk)


def _limited(project: Project, rate: str, risk: str) -> RerunRule:
    limits = project.config.limits
    return RerunRule(max_failure_rate=_stricter(rate, limits.max_failure_rate), risk=_stricter(risk, limits.risk))


def claim_settings(project: Project) -> ClaimSettings:
    """Return what the project asks of every claim beside the rate and the risk."""
    config = project.config
    return ClaimSettings(
        plan=config.plan,
        rule=config.rule,
        comparison=config.comparison,
        min_sessions=config.min_sessions,
        attempts_spend=config.attempts_spend,
        independence=config.independence,
    )


def plan_in_force(project: Project, case: RegressionCase, fix_number: int) -> Plan:
    """Return how many live runs claim fix number `fix_number` of `case`.

    Raises:
        UsageRefused: the rule is none that can be decided.
    """
    return claim_plan(claim_settings(project), rerun_rule(project, case), case.baseline, fix_number)


def gate_policy(project: Project) -> Policy:
    """Return how many tries a check gets, and what makes it red."""
    return policy_for(f"confirm:{project.config.confirm}")


def expected_recovery(
    project: Project, case: RegressionCase, hypothesis: HypothesisClass | None
) -> ExpectedRecovery:
    """Return what is asked of the agent under `hypothesis`; the project's limits can only tighten it."""
    asked = case.expected_recovery.under(hypothesis)
    limits = project.config.limits
    changes: dict[str, object] = {}
    if limits.max_retries is not None:
        changes["max_retries"] = min(asked.max_retries, limits.max_retries)
    if limits.stop_within_seconds is not None:
        changes["stop_within_seconds"] = min(asked.stop_within_seconds, limits.stop_within_seconds)
    return asked.model_copy(update=changes)


def _stricter(own: str, limit: str | None) -> str:
    # Decimal strings stay as they were written; only the comparison needs numbers.
    return own if limit is None or Decimal(own) <= Decimal(limit) else limit
