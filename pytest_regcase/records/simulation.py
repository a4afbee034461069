"""A simulation: a fixture that injects one hypothesised cause. It says nothing about any recorded trial."""

from typing import Annotated, Any, Literal

from pydantic import Field

from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.case import Sentence, Slug
from pytest_regcase.records.words import HypothesisClass


class FaultSettings(Record):
    """The `[fault]` table of a simulation: what is injected, where, for how long."""

    kind: str
    at: Literal["failing-step"] | int | dict[Literal["request"], int] = "failing-step"
    lasts: Literal["for-ever"] | Annotated[int, Field(ge=1)] = "for-ever"
    settings: dict[str, Any] = Field(default_factory=dict)

    @property
    def heals(self) -> bool:
        """Say whether the supplier answers again after a while, so that the agent is expected to resume."""
        return self.lasts != "for-ever"


class Fingerprint(Record):
    """What lower-level evidence would show if this hypothesis were true."""

    supports: Many[Sentence] = ()
    refutes: Many[Sentence] = ()


class Simulation(Record):
    """A fixture file: one hypothesised cause, injected. It says nothing about any recorded trial."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    id: Slug
    hypothesis: HypothesisClass
    title: Sentence
    cause_status: Literal["hypothesized"] = "hypothesized"
    source_event: Literal["fixture-run"] = "fixture-run"
    unresolved_questions: Many[Sentence] = ("this fixture tests one hypothesis only",)
    sources: Many[Sentence] = ()
    fault: FaultSettings
    fingerprint: Fingerprint = Field(default_factory=Fingerprint)
