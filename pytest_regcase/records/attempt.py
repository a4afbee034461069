"""One execution of one scenario: its plan, and the record that stands on a report and in the ledger."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.words import (
    AttemptVerdict,
    EndedBy,
    Expectation,
    FindingStatus,
    HypothesisClass,
    InconclusiveReason,
    Outcome,
    ScenarioKind,
    Termination,
)


class AttemptKey(Record):
    """What an attempt is an attempt of; the session completes it to the ledger's key."""

    case_id: str
    agent: str
    scenario: str
    """``control``, ``live`` or a simulation's id."""
    run: int = Field(default=1, ge=1)
    """Number within the scenario; counts over sessions for live attempts, always 1 elsewhere."""

    def __str__(self) -> str:
        return f"{self.case_id}::{self.scenario}::{self.item_name}"

    @property
    def item_name(self) -> str:
        """The name of the pytest item: ``run-001`` for live attempts, ``check`` elsewhere."""
        return f"run-{self.run:03d}" if self.scenario == "live" else "check"


class AttemptPlan(Record):
    """What is to be run. The same in every process that plans from the same case file and ledger counts."""

    key: AttemptKey
    kind: ScenarioKind
    hypothesis: HypothesisClass | None = None
    planned_total: int = Field(default=1, ge=1)
    """How many attempts of this scenario the session plans (live: how many the rule needs in all)."""
    stopped_by_failures: int = Field(default=1, ge=1)
    """Live: so many failed runs of this session with lower numbers refute the claim, and this one is not made."""


class Digests(Record):
    """What a count belongs to."""

    case: str
    simulation: str | None = None
    agent: str
    model: str | None = None


class Exit(Record):
    """How the agent's process ended."""

    code: int | None = None
    signal: int | None = None
    ended_by: EndedBy | None = None
    """None: the agent ended by its own decision."""
    stragglers: int = 0
    """Processes of the agent that outlived it and were ended by us."""


class WireSummary(Record):
    """The part of the wire facts that an attempt record keeps."""

    delivered: bool | None = None
    why_not: str | None = None
    requests: int = 0
    faulted_requests: int = 0
    retries: int | None = 0
    client_retries: int | None = None
    refused_connects: int | None = None
    requests_a_step: Many[int] = ()
    side_calls: int = 0
    differences: Many[str] = ()
    """What the agent does otherwise than the recorded one, one sentence a kind; it decides nothing."""
    first_fault_seconds: float | None = None
    stopped_seconds: float | None = None
    time_scale: float = 1
    """How many times as fast as real time the agent's clock ran, from the fault on; all seconds here are the
    agent's. `AttemptRecord.duration_seconds` is real time."""


class TrialSummary(Record):
    """How the agent's own record says it ended."""

    termination: Termination | None = None
    outcome: Outcome = "undetermined"
    error: str | None = None


class Finding(Record):
    """One expectation judged on one attempt."""

    expectation: Expectation
    status: FindingStatus
    code: str | None = None
    """A stable word for the way it broke, such as ``made_up``."""
    says: str
    """One sentence for a person."""
    facts: dict[str, Any] = Field(default_factory=dict)


class Draw(Record):
    """Whether a live attempt is an independent draw."""

    fresh: bool
    seed: int | None = None
    response_digest: str | None = None
    upstream_ids: Many[str] = ()
    source: Literal["ours", "sweep"] = "ours"


class Said(Record):
    """What the agent wrote of a failure, as digests: equal ones say the same.

    What differs from run to run (paths, ports, times, ids) is taken out before.
    """

    message: str
    """Without stack traces and the causes that they name."""
    whole: str
    artefact: str
    """Of the agent's own record alone, stack traces included."""
    counted: Many[str] = ()
    """Where something stood: ``artefact``, ``stderr``, ``stdout``, ``log``, ``files``."""


class AttemptRecord(Record):
    """What one attempt showed. Plain JSON of this stands on a report, and nothing else of ours."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    attempt_id: str
    session_id: str
    case_id: str
    agent: str
    scenario: str
    run: int = Field(default=1, ge=1)
    try_number: int = Field(default=0, ge=0, alias="try")
    """0 is the first attempt; confirm runs follow."""
    planned_total: int = Field(default=1, ge=1)
    digests: Digests
    started_at: datetime
    duration_seconds: float = 0.0
    exit: Exit = Exit()
    wire: WireSummary = WireSummary()
    trial: TrialSummary = TrialSummary()
    findings: Many[Finding] = ()
    verdict: AttemptVerdict
    reason: InconclusiveReason | None = None
    """Why inconclusive; None for every other verdict."""
    says: str | None = None
    """What makes the verdict, in words for a person."""
    said: Said | None = None
    """Simulations whose fault was delivered: what separation of causes compares."""
    draw: Draw | None = None
    conditions: dict[str, Any] = Field(default_factory=dict)
    folder: str | None = None

    @property
    def key(self) -> AttemptKey:
        """Which planned attempt this is one try of."""
        return AttemptKey(case_id=self.case_id, agent=self.agent, scenario=self.scenario, run=self.run)

    @property
    def case_label(self) -> str:
        """The label of the case result that it belongs to, see `CaseResult.label`; a function has colons."""
        return f"{self.case_id} by {self.agent}" if "::" in self.agent else self.case_id

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The findings that broke."""
        return tuple(each for each in self.findings if each.status == "broken")
