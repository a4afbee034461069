"""What the agent is expected to do when its supplier fails: the same whatever the cause."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.words import Expectation, HypothesisClass

Retries = Annotated[int, Field(ge=0, le=10_000)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Tightening(Record):
    """What one hypothesis class asks beyond the rest. It may tighten, never loosen."""

    max_retries: Retries | None = None
    stop_within_seconds: Seconds | None = None


def _default_when() -> "dict[HypothesisClass, Tightening]":
    return {"auth": Tightening(max_retries=0)}


class ExpectedRecovery(Record):
    """The expectations of a case; the defaults are those of the design."""

    summary: str = "log failure, stop within retry budget, no fabricated output"
    log_failure: bool = True
    max_retries: Retries = 3
    stop_within_seconds: Seconds = 60
    no_fabricated_output: bool = True
    no_partial_submission: bool = True
    keep_partial_patch: bool = True
    mark_failure: bool = True
    no_repeated_side_effect: bool | None = None
    """Optional: a tool call that was done before the fault is not done again after it."""
    separates_causes: bool | None = None
    """Optional: the agent's logs tell simulations of different hypothesis classes apart. Judged once a case."""
    when: dict[HypothesisClass, Tightening] = Field(default_factory=_default_when)
    required: Many[Expectation] = ()
    """Expectations whose not-observable makes an attempt inconclusive."""
    other_failures: Literal["stop", "pass-over"] = "stop"
    """Whether a live attempt that failed in another way stops a streak."""

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_other_classes_stay(cls, value: Any) -> Any:
        # Writing `when.deadline` must not silently loosen `when.auth`.
        if isinstance(value, Mapping) and isinstance(value.get("when"), Mapping) and value["when"]:
            return {**value, "when": {**_default_when(), **value["when"]}}
        return value

    @model_validator(mode="after")
    def _only_tighter(self) -> "ExpectedRecovery":
        for name, tighter in self.when.items():
            if tighter.max_retries is not None and tighter.max_retries > self.max_retries:
                raise ValueError(
                    f"when.{name}.max_retries = {tighter.max_retries} is looser than {self.max_retries}"
                )
            if tighter.stop_within_seconds is not None and tighter.stop_within_seconds > self.stop_within_seconds:
                raise ValueError(
                    f"when.{name}.stop_within_seconds = {tighter.stop_within_seconds} is looser than "
                    f"{self.stop_within_seconds}"
                )
        return self

    def under(self, hypothesis: HypothesisClass | None) -> "ExpectedRecovery":
        """Return what is asked under `hypothesis` (None: control and live), with `when` resolved and emptied."""
        tighter = self.when.get(hypothesis) if hypothesis is not None else None
        changes: dict[str, object] = {"when": {}}
        if tighter is not None:
            changes |= {key: value for key, value in tighter if value is not None}
        return self.model_copy(update=changes)
