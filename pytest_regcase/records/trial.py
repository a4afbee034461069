"""A trial: one execution of an agent on a task, as some harness recorded it.

Outcome, termination and error are three facts; none is derived from another. An absent value is absent.
"""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.words import Expectation, Outcome, RaisedBy, SaidByPerson, Termination


class ToolCall(Record):
    """One call that a reply asked for. `arguments` is the JSON text as the model wrote it."""

    id: str | None = None
    name: str
    arguments: str = "{}"


class TranscriptLine(Record):
    """One line of ``transcript.jsonl``.

    Step 0 comes before the first reply; a reply opens the next step; a tool result has the step of its call.
    A failed model call is a line with `error` and is never a reply.
    """

    step: int = Field(ge=0)
    role: Literal["system", "user", "assistant", "tool"]
    text: str | None = None
    tool_calls: Many[ToolCall] = ()
    tool_call_id: str | None = None
    raw_output: str | None = None
    """A tool's output before the harness put it into its own template."""
    finish: str | None = None
    usage: dict[str, Any] | None = None
    model: str | None = None
    offered_tools: Many[str] = ()
    """Names of the tools that the request of this reply offered, where recorded."""
    error: str | None = None
    at: datetime | None = None
    response_id: str | None = None
    """The supplier's own id of this reply, where the harness kept it: it tells two draws from one answer given
    twice. A case's transcript does not hold it."""
    origin: str | None = Field(default=None, alias="from")
    """Where in the foreign log it stood, such as ``messages[4]``."""

    @property
    def is_reply(self) -> bool:
        """Say whether this line is a complete model reply."""
        return self.role == "assistant" and self.error is None


class ErrorLink(Record):
    """One link of an exception chain, outermost first; what a client library's error object says where it does."""

    type: str | None = None
    message: str | None = None
    status_code: int | None = None
    code: str | None = None
    error_type: str | None = None
    body: Any = None
    request_id: str | None = None


class TrialError(Record):
    """What was raised, in the harness's own words. A label, not a cause."""

    type: str | None = None
    message: str | None = None
    traceback: str | None = None
    raised_by: RaisedBy = "unknown"
    chain: Many[ErrorLink] = ()


class Submission(Record):
    """What was handed in as the agent's work: a patch, or a text."""

    patch: str | None = None
    text: str | None = None
    by: Literal["agent", "harness"] = "agent"
    mark: str | None = None
    """A mark that says it is no healthy submission, such as ``agent_error``."""


class Trial(Record):
    """A trial read from a foreign log. What the log does not hold is absent and may be listed in `missing`."""

    format: str
    harness: str | None = None
    """Name and version, such as ``mini-swe-agent 2.4.6``."""
    run_id: str | None = None
    task_id: str | None = None
    attempt: int | None = None
    event_id: str
    event_id_from: Literal["recorded", "digest"]
    revision: str | None = None
    model: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    task_text: str | None = None
    steps: Many[TranscriptLine] = ()
    failing_step: int | None = Field(default=None, ge=1)
    termination: Termination | None = None
    outcome: Outcome = "undetermined"
    outcome_from: Literal["log", "person"] | None = None
    error: TrialError | None = None
    retried: Many[TrialError] = ()
    """Earlier attempts of this very trial that failed, so that the harness made it again: what each raised."""
    labels: Many[str] = ()
    conditions: dict[str, Any] = Field(default_factory=dict)
    submission: Submission | None = None
    partial_patch: str | None = None
    final_text: str | None = None
    """The answer that the agent handed out at its end, where the format has a place for one."""
    model_requests: int | None = None
    can_show: Many[Expectation] = ()
    """Expectations that this format can show when an agent under test writes it."""
    source_digests: dict[str, str] = Field(default_factory=dict)
    missing: Many[str] = ()
    """Sentences: what was looked for and not found, or found broken."""
    redactions: dict[str, int] = Field(default_factory=dict)
    by_person: Many[SaidByPerson] = ()
    """Which of these facts the log does not hold and a person has said."""

    @property
    def no_reply(self) -> bool:
        """Say whether the failing step is one whose reply failed or never came."""
        if self.failing_step is None or self.termination not in ("error", "cut-off", "cancelled"):
            return False
        return self.failing_step > max((line.step for line in self.replies), default=0)

    @property
    def replies(self) -> tuple[TranscriptLine, ...]:
        """The complete model replies, in order."""
        return tuple(line for line in self.steps if line.is_reply)


class TrialRef(Record):
    """Names one trial inside a source, without its content."""

    key: str
    """What `--trial` takes, unique within the source."""
    task_id: str | None = None
    attempt: int | None = None
    termination: Termination | None = None
    outcome: Outcome = "undetermined"
    error_type: str | None = None
    failed: bool = False
    """Shows a sign of failure: a failed outcome, an error, a limit, or it never ended."""
    why_not: str | None = None
    """Why it is no failed trial of its own (passed; cancelled because a sibling failed; never ran)."""
    refusal: str | None = None
    """The slug that goes with `why_not`: passed, no-sign-of-failure, cancelled-sibling, never-ran, ..."""
    sample: str | None = None
    """The id by which a person names it within the source (`--sample`), where the format has one."""
    joins_by: str | None = None
    """Set only by formats that hold no conversation (reports, predictions): the task id of the trajectory that
    they are about. A trajectory of that id in the same sweep is then read together with this record, as one trial:
    its steps, this record's outcome and labels. The trajectory's importer sets nothing; its `task_id` counts."""
