"""What the gate decides from: frozen records that the session fills from case files, plan and ledger."""

from datetime import date
from typing import Literal

from pydantic import Field, SkipValidation

from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.case import Rate, RegressionCase, RerunRule
from pytest_regcase.records.decision import Reason
from pytest_regcase.records.separation import Separation
from pytest_regcase.records.session import LiveRow
from pytest_regcase.records.words import Profile, ScenarioKind
from pytest_regcase.rules.claim_plan import ClaimSettings
from pytest_regcase.rules.flake import FirstAttempt
from pytest_regcase.rules.policies import DEFAULT_POLICY


class PlannedCheck(Record):
    """One planned key of the session and the attempts that were made of it."""

    scenario: str
    kind: ScenarioKind
    run: int = Field(default=1, ge=1)
    tries: Many[AttemptRecord] = ()
    """This session's rows of the present digests, in try order; empty: not run."""


class CaseInputs(Record):
    """One case, what was planned of it, and what the ledger holds of it."""

    case_id: str
    agent: str | None = None
    """The test function whose attempts these are; None: they are those of the case's own agent."""
    case: RegressionCase
    rule: RerunRule
    claims: ClaimSettings = Field(default_factory=ClaimSettings)
    checks: Many[PlannedCheck] = ()
    """In plan order: control, simulations in file order, live runs."""
    live: Many[LiveRow] = ()
    """Of the present digests, since the last fix, in ledger order; empty without a fix."""
    live_set_aside: int = Field(default=0, ge=0)
    """Live rows since the last fix that have other digests: of another agent revision, case or model."""
    recurred_set_aside: int = Field(default=0, ge=0)
    """How many of these show the symptom: a new revision is no new fix."""
    fix_is_of_another_ledger: bool = False
    """The ledger that the last fix was claimed on is not at hand, or lost rows since: live runs that were counted
    there may not be here."""
    first_attempts: dict[str, SkipValidation[tuple[FirstAttempt, ...]]] = Field(default_factory=dict)
    """Control or simulation -> its first attempts by the case's present agent, over all sessions, oldest first."""
    separation: Separation | None = None
    """What the logs of its simulations tell apart; None where there are no two to compare."""
    costs_model_calls: bool = False
    """Its replies are passed through and this session may make no such calls: nothing planned is right then."""
    out_of_time: bool = False
    """It did not fit into the minutes that the session was given: nothing planned is right then."""
    attempted_before: bool = False
    """Every check of it was made in an earlier session, on the case and the simulations as they are."""

    @property
    def left_out(self) -> bool:
        """Say whether nothing of it was planned, and rightly."""
        return not self.checks and (self.costs_model_calls or self.out_of_time)


class GateInputs(Record):
    """Everything that a decision depends on."""

    profile: Profile
    today: date
    policy: str = DEFAULT_POLICY
    cases: Many[CaseInputs] = ()
    invalid: dict[str, str] = Field(default_factory=dict)
    """Case id (or path, where no id can be read) -> what is wrong with the file."""
    lost: Many[str] = ()
    """Ids of cases with planned keys that are not among the cases at the end."""
    claim_days: int = 14
    max_quarantined: int = 3
    flake_budget: Rate = "0.01"
    quarantine: Literal["manual", "auto"] = "manual"
    """Changes the hint on a proposal only: neither writes a case file."""
    found: Many[Reason] = ()
    """What the session found that no attempt shows: a shard that left nothing, live runs that cannot be made."""
    interrupted: bool = False
