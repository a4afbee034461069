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
    then: Literal["answered", "held", "closed", "killed", "refused"]
    """What follows: nothing more; the connection is held in silence, or while parts of the answer trickle; it is
    closed; the process is killed; the connection ends and the port refuses further ones."""
    how: Literal["fin", "rst"] | None = None
    """How the connection ends, where we end it; None: either way."""
    body: Literal["any", "none", "some", "repeated"] = "any"
    """What of a body goes out: a head alone, at least one part, or parts again and again."""
    not_before_seconds: float | None = None
    """Before that much time after the request no byte goes out; a client that lets go earlier has met it too."""
    out_of_memory: bool = False
    """The log must show that memory ran out: a kernel kill that a cgroup counted, or an allocation that failed."""


class NotApplicable(Record):
    """The fault has no meaning on this wire or in this mode."""

    reason: str


class SentReply(Record):
    """One healthy reply that the supplier sent in the main conversation, or what a fault sent of one."""

    step: int
    origin: Literal["replay", "script", "upstream", "filler", "fault"]
    text: str | None = None
    tool_calls: Many[ToolCall] = ()
    after_fault: bool = False
    unfinished: bool = False
    """Sent in part only (cut, stalled, without its end): it may not stand as an answer. What a fault sends whole
    is no reply but one of `fault_texts`."""


class Difference(Record):
    """What is not as in the recorded trial, though the agent follows it."""

    kind: str
    """``tool-result``, ``forgotten-step``, ``tools``, ``asked-again``; or ``not-followed``, any of them after the
    first faulted request."""
    says: str


class WireFacts(Record):
    """Facts about one attempt's traffic."""

    delivered: bool | None = None
    """Whether the fault reached the wire as declared; None where no fault was to be injected."""
    why_not: str | None = None
    requests: int = 0
    """All model requests, side calls included."""
    faulted_requests: int = 0
    retries: int | None = 0
    """Further main-conversation requests after the first faulted one and before the next healthy answer, refused
    connects included. None: not observable (the supplier was gone, so connects left no trace with us)."""
    client_retries: int | None = None
    """Those of them that the client library made by itself, by its own header; the others came from a layer above.
    None: the requests do not say."""
    refused_connects: int | None = None
    """Connects after the supplier was gone, as the agent's own process noted them. None: not seen, or it was not
    gone."""
    requests_a_step: Many[int] = ()
    """How many main requests each step took, from step 1 on."""
    side_calls: int = 0
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
    differences: Many[Difference] = ()
    """Noted only, such as a tool result that differs from the recorded one; each once."""
    steps_reached: int = 0
    """The highest step that a main request asked for."""
    asked_for_failing_step: bool = False
    got_last_reply: bool = False
    """Every recorded reply was sent and the agent asked on the prefix."""
    replies: Many[SentReply] = ()
    fault_texts: Many[str] = ()
    """Whole texts that the fault itself sent (an empty answer is ""), so that provenance can account for them."""
    upstream_ids: Many[str] = ()
    upstream_failures: Many[str] = ()
    """Live: answers of the real supplier that failed (status, closed, timed out), in words."""
    server_gone: bool = False
    """The supplier process was killed, or refuses connections: later connects leave no trace with us."""
    memory: Literal["kernel-kill", "address-space"] | None = None
    """How memory ran out, where the log shows that it did: the kernel killed the supplier, as its cgroup counted;
    or an allocation failed at a limit of its address space, and no kernel kill is claimed."""


WireEvent = dict[str, Any]
"""One line of ``wire.jsonl``: ``t``, ``event``, and what INTERFACES lists for that event."""


class StopFacts(Record):
    """When the agent stopped, on the wire's clock."""

    stopped_seconds: float | None = None
    """Seconds from the first faulted request to the stop; None when it had not stopped by itself."""
    how: str = Field(default="")
