"""A regression case: one observation, its hypotheses, the expected recovery, the handover.

The observation, the simulations and the expected recovery never collapse into one another.
"""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.expected_recovery import ExpectedRecovery
from pytest_regcase.records.occurrence import Occurrence
from pytest_regcase.records.words import (
    CauseStatus,
    Outcome,
    RaisedBy,
    SaidByPerson,
    Termination,
)

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=100)]
"""An id: letters, digits and hyphens, lower case."""
Sentence = Annotated[str, StringConstraints(min_length=1, strip_whitespace=False)]
DigestText = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Rate = Annotated[str, StringConstraints(pattern=r"^(0?\.[0-9]+|0|1|1\.0+|0\.[0-9]+)$")]
"""A rate or risk as a decimal string, so that exact arithmetic sees what was written."""


class ObservedError(Record):
    """What was raised, as the log has it."""

    type: str | None = None
    message: str | None = None
    raised_by: RaisedBy = "unknown"


class Kept(Record):
    """What looks like a secret and stayed, because a person said so."""

    what: Sentence
    """The words of `--keep`: a kind of secret, or a regular expression."""
    count: int = Field(ge=1)
    why: Sentence


class Observation(Record):
    """What happened, exactly as recorded. Sealed; amended, never edited."""

    symptom: Sentence
    source_event: Sentence
    source_revision: str | None = None
    cause_status: CauseStatus = "unknown"
    observed_at: datetime | None = None
    harness: str | None = None
    task_id: str | None = None
    attempt: int | None = None
    failing_step: int | None = Field(default=None, ge=1)
    termination: Termination | None = None
    outcome: Outcome | None = None
    outcome_from: Literal["log", "person"] | None = None
    by_person: Many[SaidByPerson] = ()
    """Which of these the log does not hold and a person has said."""
    labels: Many[str] = ()
    error: ObservedError | None = None
    conditions: dict[str, Any] = Field(default_factory=dict)
    recorded: dict[str, DigestText] = Field(default_factory=dict)
    redactions: dict[str, int] = Field(default_factory=dict)
    kept: Many[Kept] = ()
    source_digests: dict[str, DigestText] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _date_times_have_an_offset(self) -> "Observation":
        if self.observed_at is not None and self.observed_at.tzinfo is None:
            raise ValueError("observed_at has no offset; write it with Z or +hh:mm")
        return self


class Baseline(Record):
    """How often it failed before any fix."""

    failures: int = Field(ge=0)
    trials: int = Field(ge=1)
    kind: Literal["trigger-only", "all-attempts", "fresh"]
    population: Literal["task", "sweep"] = "task"
    conditions: dict[str, Any] = Field(default_factory=dict)
    """Under which it was counted, as recorded alike with each failure: concurrency, limits, time-outs."""

    @model_validator(mode="after")
    def _no_more_failures_than_trials(self) -> "Baseline":
        if self.failures > self.trials:
            raise ValueError(f"{self.failures} failures of {self.trials} trials cannot be")
        return self


class TaskSource(Record):
    """What the agent is given. Paths are relative to the case's folder and stay inside it."""

    text_file: str | None = None
    work_tree: str | None = None


class ReplySource(Record):
    """Where the supplier's answers before the fault come from."""

    source: Literal["transcript", "script", "pass-through"] = "transcript"
    file: str | None = None
    after_fault: str | None = None

    @model_validator(mode="after")
    def _a_script_has_a_file(self) -> "ReplySource":
        if self.source == "script" and self.file is None:
            raise ValueError('source = "script" needs file = "recorded/..."')
        return self


class SymptomMatch(Record):
    """Labels a failed live attempt as `recurred`. It never makes one clean."""

    termination: Many[Termination] = ()
    error_type: str | None = None
    """A regular expression, searched in the error's type."""
    no_reply: bool | None = None


class Hypothesis(Record):
    """A guess, and the simulations that test the recovery under it."""

    id: Slug
    simulations: Many[Slug] = ()
    status: Literal["hypothesized"] = "hypothesized"
    may_coincide_with: Many[Slug] = ()


class RerunRule(Record):
    """How many clean live runs close the case."""

    max_failure_rate: Rate = "0.10"
    risk: Rate = "0.05"


class Handover(Record):
    """What someone who was not there needs."""

    owner: Sentence
    next_decision: Sentence
    rerun_rule: RerunRule | None = None


class Quarantine(Record):
    """The case runs and is reported, and does not gate."""

    owner: Sentence
    reason: Sentence
    kind: Literal["flaky", "broken"]
    since: date
    expires: date

    @model_validator(mode="after")
    def _ends_and_not_too_late(self) -> "Quarantine":
        if self.expires < self.since:
            raise ValueError("expires lies before since")
        if self.kind == "broken" and (self.expires - self.since).days > 14:
            raise ValueError('a "broken" quarantine lasts at most 14 days')
        return self


class Withdrawal(Record):
    """Takes a citation back; the citation stays readable."""

    why: Sentence
    who: Sentence
    at: datetime


class Evidence(Record):
    """A cited lower-level fact from outside. What our own runs produced is never evidence."""

    id: Slug
    hypothesis: Slug
    stance: Literal["supports", "refutes"]
    file: Sentence
    lines: Sentence
    digest: DigestText
    quote: Sentence
    why: Sentence
    why_outside: Sentence | None = None
    """Why lines count that do not lie in the observation's time, or that nobody can place in time."""
    who: Sentence
    at: datetime
    withdrawn: Withdrawal | None = None


class Fix(Record):
    """A claimed fix: from here on live attempts are counted."""

    number: int = Field(ge=1)
    revision: Sentence
    ledger_id: Sentence
    rows: int = Field(ge=0)
    at: datetime
    by: Sentence
    note: str | None = None


class Closed(Record):
    """The case was closed on these numbers."""

    at: datetime
    by: Sentence
    revision: Sentence
    numbers: dict[str, Any]


class Reopened(Record):
    """A closed case failed again."""

    at: datetime
    by: Sentence
    why: Sentence


class Retired(Record):
    """The case is out of service: from here on it is listed, and neither run nor judged."""

    at: datetime
    by: Sentence
    why: Sentence


class Amendment(Record):
    """A recorded change of something sealed or guarded."""

    what: Sentence
    why: Sentence
    who: Sentence
    at: datetime
    old_digest: DigestText | None = None


class Seal(Record):
    """The digest of the observation without its cause status. It finds slips; it is not a signature."""

    observation: DigestText


_PLAIN_OBSERVATION = ("symptom", "source_event", "source_revision", "cause_status")


class RegressionCase(Record):
    """A case as its file holds it.

    In Python the plain field names are enough::

        RegressionCase(symptom=..., source_event=..., source_revision=..., cause_status="unknown",
                       simulation_id=None, expected_recovery="log failure, stop", unresolved_questions=[...])

    `id`, `title` and `handover` are asked for only when a file is written.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    id: Slug | None = None
    title: Sentence | None = None
    agent: Slug = "default"
    unresolved_questions: Many[Sentence] = ()
    observation: Observation
    baseline: Baseline | None = None
    task: TaskSource | None = None
    replies: ReplySource | None = None
    symptom_match: SymptomMatch | None = None
    hypotheses: Many[Hypothesis] = ()
    expected_recovery: ExpectedRecovery = Field(default_factory=ExpectedRecovery)
    handover: Handover | None = None
    quarantine: Quarantine | None = None
    seal: Seal | None = None
    occurrences: Many[Occurrence] = ()
    evidence: Many[Evidence] = ()
    fix: Many[Fix] = ()
    closed: Many[Closed] = ()
    reopened: Many[Reopened] = ()
    retired: Many[Retired] = ()
    amendments: Many[Amendment] = ()

    @model_validator(mode="before")
    @classmethod
    def _accept_plain_names(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        fields = dict(value)
        plain = {name: fields.pop(name) for name in _PLAIN_OBSERVATION if name in fields}
        if plain:
            if "observation" in fields:
                raise ValueError(f"{', '.join(plain)} stand beside observation; give them once")
            fields["observation"] = plain
        if "simulation_id" in fields:
            simulation_id = fields.pop("simulation_id")
            if simulation_id is not None:
                fields["hypotheses"] = [
                    *fields.get("hypotheses", ()),
                    {"id": simulation_id, "simulations": [simulation_id]},
                ]
        if isinstance(fields.get("expected_recovery"), str):
            fields["expected_recovery"] = {"summary": fields["expected_recovery"]}
        return fields

    @model_validator(mode="after")
    def _ids_are_unique(self) -> "RegressionCase":
        for what, ids in (
            ("hypothesis", [each.id for each in self.hypotheses]),
            ("evidence", [each.id for each in self.evidence]),
            ("fix number", [str(each.number) for each in self.fix]),
        ):
            twice = sorted({each for each in ids if ids.count(each) > 1})
            if twice:
                raise ValueError(f"{what} {twice[0]!r} is there twice")
        known = {each.id for each in self.hypotheses}
        for each in self.evidence:
            if each.hypothesis not in known:
                raise ValueError(
                    f"evidence {each.id!r} names the hypothesis {each.hypothesis!r}, which the case has not"
                )
        return self

    @property
    def symptom(self) -> str:
        """What was seen."""
        return self.observation.symptom

    @property
    def source_event(self) -> str:
        """Which recorded trial this is."""
        return self.observation.source_event

    @property
    def source_revision(self) -> str | None:
        """What ran, as recorded."""
        return self.observation.source_revision

    @property
    def cause_status(self) -> CauseStatus:
        """As written; `computed_cause_status` says what the evidence makes of it."""
        return self.observation.cause_status

    @property
    def passes_through(self) -> bool:
        """Whether the real supplier answers before the fault: such a run costs model calls."""
        return self.replies is not None and self.replies.source == "pass-through"

    @property
    def simulation_ids(self) -> tuple[str, ...]:
        """The ids of all simulations, in file order, each once."""
        return tuple(dict.fromkeys(each for one in self.hypotheses for each in one.simulations))

    @property
    def simulation_id(self) -> str | None:
        """The first simulation's id, or None."""
        return next(iter(self.simulation_ids), None)

    @property
    def computed_cause_status(self) -> CauseStatus:
        """`confirmed` when exactly one hypothesis has support that stands and nothing that refutes it."""
        standing = [each for each in self.evidence if each.withdrawn is None]
        supported = {each.hypothesis for each in standing if each.stance == "supports"}
        refuted = {each.hypothesis for each in standing if each.stance == "refutes"}
        return "confirmed" if len(supported - refuted) == 1 and len(supported) == 1 else "unknown"
