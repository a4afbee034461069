"""What was observed of one attempt: the judge's whole input besides the expectations."""

from typing import Literal

from pydantic import Field

from pytest_regcase.records.attempt import Exit
from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.trial import Trial
from pytest_regcase.records.wire import WireFacts
from pytest_regcase.records.words import Expectation, ScenarioKind


class WorkTreeNotes(Record):
    """The work tree at one moment."""

    diff: str
    """Against the one commit that we made; new files included. "" when nothing changed."""
    head: str
    """The commit that HEAD names."""
    committed_diff: str = ""
    """What commits of the agent hold, against our commit."""


class FaultNotes(Record):
    """Noted when the first faulted request came in, before the fault was sent."""

    t: float
    work_tree: WorkTreeNotes | None = None
    """None: the case has no work tree."""
    sizes_bytes: dict[str, int] = Field(default_factory=dict)
    """Size of ``stdout``, ``stderr`` and each output file by name at that moment."""


class Declared(Record):
    """What `[tool.regcase.agents.NAME]` pointers found in the agent's output (absent: nothing is declared)."""

    submission: str | None = None
    submission_declared: bool = False
    answer: str | None = None
    answer_declared: bool = False
    status: str | None = None
    status_declared: bool = False


class Observed(Record):
    """Everything the judge may look at."""

    kind: ScenarioKind
    wire: WireFacts
    exit: Exit
    ended_seconds: float
    """When the agent's process ended, on the wire's clock (`t`)."""
    deadline_seconds: float | None = None
    notes: FaultNotes | None = None
    work_tree: WorkTreeNotes | None = None
    """At the end."""
    artefact: Trial | None = None
    """The agent's own output, read by an importer."""
    artefact_missing: str | None = None
    """Why there is none."""
    declared: Declared = Field(default_factory=Declared)
    can_show: Many[Expectation] = ()
    """What the artefact's format, or the declared places, can show."""
    written_after: dict[str, str] = Field(default_factory=dict)
    """Text that was written after the first faulted request, by file name (``stdout``, ``stderr``, ...)."""
    task_text: str | None = None
    recorded_failing_step: int | None = None
    fault_heals: bool = False
    submits_by: Literal["file", "commit", "score", "answer"] | None = None
    in_process: bool = False
    """The agent was a function of the test process: what it prints is not read, and `exit` stands for its end, 0
    where it returned and 1 where it raised."""
    raised: str | None = None
    """Type and message of what such a function raised."""
