"""The gate's decision: no clock, session id or duration in it, so that equal facts give equal bytes."""

from typing import Literal

from pydantic import Field

from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.separation import Separation
from pytest_regcase.records.words import CaseState, Decision, Profile


class Reason(Record):
    """Why a decision is not simply green, or what it does not show."""

    code: str
    """A stable slug, such as ``check-broken``, ``not-run``, ``recurred``, ``invalid-case``."""
    case_id: str | None = None
    text: str
    red: bool = True
    """False: shown as a note; it does not make the decision red."""


class BrokenFinding(Record):
    """One expectation that broke, for the summary."""

    expectation: str
    code: str | None = None
    says: str


class ScenarioResult(Record):
    """How one scenario of a case came out."""

    name: str
    planned: int
    run: int
    counts: dict[str, int] = Field(default_factory=dict)
    """Attempt verdict -> number of attempts, confirm runs included."""
    result: Literal["passed", "broken", "flaky", "inconclusive", "not-run", "counted"] = "not-run"
    checked: int | None = None
    """Expectations decided (kept, broken or not-applicable) of `checked_of`, on the last attempt that decided."""
    checked_of: int = 7
    cannot_see: Many[str] = ()
    broken: Many[BrokenFinding] = ()
    flaky: bool = False
    why: str | None = None
    """Why inconclusive or not run, in words."""


ClaimKind = Literal["none", "BOUNDED", "IMPROVED", "FIXED", "NOT REPRODUCED"]
"""BOUNDED: the rate is below the stated one. IMPROVED: it fails less than its baseline. FIXED: both.
NOT REPRODUCED: nothing failed in the baseline, so only BOUNDED may ever be claimed, and it is not yet."""


class Claim(Record):
    """Where the rerun rule stands for a case."""

    kind: ClaimKind = "none"
    settled: bool = False
    """Everything that the rule in force asks for is there."""
    lacks: Many[str] = ()
    """What the rule asks for beyond clean runs and what is not there, in words."""
    plan: str = "zero"
    rule: Literal["bounded", "fixed"] = "bounded"
    need: int
    need_from: str = ""
    """How `need` was got, in one line."""
    clean: int
    failures: int = 0
    """Failed runs that the plan allows, among those that were read."""
    fresh: int
    distinct: int
    sessions: int
    bound: str | None = None
    """Exact upper bound on the recurrence rate at `risk`, as a decimal string."""
    risk: str
    """Of this claim, as a decimal string; with `attempts_spend` this fix's share of the stated risk."""
    max_rate: str
    """The rate that `need` clean runs rule out at `risk`, as a decimal string."""
    p_value: str | None = None
    """Of the comparison with the baseline, as a decimal string, rounded up; None: nothing to compare."""
    compared: str | None = None
    """What the comparison says, with the test and the counts that the p-value comes from."""
    would_pass_unchanged: str | None = None
    """How likely `need` clean runs are if the baseline's rate still holds, as a decimal string."""
    fix_number: int
    risk_over_fixes: str | None = None
    """That at least one of all fixes so far is claimed though none changed anything, as a decimal string."""
    attempts_spend: bool = False
    """Whether all fixes together spend the stated risk, instead of each the whole of it."""
    independence: Literal["fresh", "distinct", "off"] = "fresh"
    refuted_by_run: int | None = None
    missing: Many[int] = ()
    """Run numbers below the highest one (or the refuting one) that have no conclusive, fresh run."""
    warnings: Many[str] = ()
    """What the numbers do not show."""


class CaseResult(Record):
    """How one case came out."""

    case_id: str
    agent: str | None = None
    """The test function that ran it; None: the agent that the case, or `--regcase-agent`, names."""
    state: CaseState
    quarantined: bool = False
    scenarios: Many[ScenarioResult] = ()
    claim: Claim | None = None
    separation: Separation | None = None
    """Which of its simulations the agent's logs tell apart; None where there are no two to compare."""

    @property
    def label(self) -> str:
        """What a person is shown: the case, and the function where one ran it."""
        return self.case_id if self.agent is None else f"{self.case_id} by {self.agent}"


class GateDecision(Record):
    """Pass, fail or unproven, with reasons; cases sorted by id."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    decision: Decision
    profile: Profile
    policy: str = "confirm:2"
    reasons: Many[Reason] = ()
    cases: Many[CaseResult] = ()
