"""What the supplier saw on the wire, and the facts that a pure reading makes of it.

The events are the lines of ``wire.jsonl``; `WireFacts` is computed from them after every connection ended, never
from what the fault intended. `t` counts real seconds from the moment the supplier began to listen.
"""

from typing import Any, Literal

from pydantic import Field

from pytest_regcase.records.base import Many, Record
from pytest_regcase.records.trial import ToolCall


class Delivery(Record):
    """What the wire log must show before a fault counts as delivered on one faulted request."""

    answer: Literal["none", "complete", "partial"]
    """Bytes of an answer that the fault sends: none at all, a whole HTTP answer, or a part of one."""
    status: int | None = None
    """The HTTP status of that answer."""
    then: Literal["answered", "held", "closed", "killed"]
    """What follows: nothing more; the connection is held in silence; it is closed; the process is killed."""


class NotApplicable(Record):
    """The fault has no meaning on this wire or in this mode."""

    reason: str


class SentReply(Record):
    """One complete healthy reply that the supplier sent in the main conversation."""

    step: int
    origin: Literal["replay", "script", "upstream", "filler"]
    text: str | None = None
    tool_calls: Many[ToolCall] = ()
    after_fault: bool = False
    unfinished: bool = False
    """Sent in part only (cut, stalled): it may not stand as an answer."""


class WireFacts(Record):
    """Facts about one attempt's traffic."""

    delivered: bool | None = None
    """Whether the fault reached the wire as declared; None where no fault was to be injected."""
    why_not: str | None = None
    requests: int = 0
    """All model requests, side calls included."""
    faulted_requests: int = 0
    retries: int | None = 0
    """Further main-conversation requests after the first faulted one and before the next healthy answer.
    None: not observable (the supplier was gone, so connects left no trace with us)."""
    side_calls: int = 0
    refused_connects: int | None = None
    first_fault_seconds: float | None = None
    """`t` of the first faulted request."""
    last_release_seconds: float | None = None
    """`t` at which the agent let go of its last open request or sent its last one, whichever is later.
    None: a request was still open when we ended the agent."""
    open_at_end: int = 0
    """Main requests that the agent still held open when it was ended by us."""
    healed: bool = False
    """A healthy reply followed a faulted request."""
    off_prefix: Many[str] = ()
    """Why the agent no longer followed the recorded replies; empty while it did."""
    differences: Many[str] = ()
    """Noted only, such as a tool result that differs from the recorded one."""
    steps_reached: int = 0
    """The highest step that a main request asked for."""
    asked_for_failing_step: bool = False
    got_last_reply: bool = False
    """Every recorded reply was sent and the agent asked on the prefix."""
    replies: Many[SentReply] = ()
    fault_texts: Many[str] = ()
    """Texts that the fault itself sent (an empty answer is ""), so that provenance can account for them."""
    upstream_ids: Many[str] = ()
    upstream_failures: Many[str] = ()
    """Live: answers of the real supplier that failed (status, closed, timed out), in words."""
    server_gone: bool = False
    """The supplier process was killed: later connects leave no trace with us."""


WireEvent = dict[str, Any]
"""One line of ``wire.jsonl``: ``t``, ``event``, and what INTERFACES lists for that event."""


class StopFacts(Record):
    """When the agent stopped, on the wire's clock."""

    stopped_seconds: float | None = None
    """Seconds from the first faulted request to the stop; None when it had not stopped by itself."""
    how: str = Field(default="")
