"""How a fault looks to whoever calls a supplier in the same process: a wait, an exception, an end, nothing.

Knows the kinds of faults by name; no callable, no clock. What a caller gets where bytes are broken is made by its
client library, so only the user can name it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pytest_regcase.records.simulation import Simulation
from pytest_regcase.records.wire import Delivery, NotApplicable

ErrorSource = type[BaseException] | BaseException | Callable[[], BaseException]
"""An exception to raise: its class, an instance, or what makes one (for those that want a response)."""
NOT_GIVEN: Final = object()

_BYTES = "a callable hands over no bytes; deadline-no-answer-v1 shows a supplier that hangs"
_NEVER = {
    "byte_trickle": _BYTES,
    "keep_alive_only": _BYTES,
    "process_killed": "there is no process to kill; connection-refused-v1 shows what a caller sees",
    "memory_exhausted": "there is no process whose memory runs out; oom-server-error-v1 shows what a caller sees",
    "engine_dead": "there is no process that ends; oom-server-error-v1 shows what a caller sees",
}
_IN_STREAMS = ("mid_stream_stall", "stream_without_end", "mid_stream_error")
_BROKEN = ("mid_stream_error", "reset_mid_stream", "body_too_short")
_HANGS = ("no_answer", "headers_then_silence", "mid_stream_stall")
_BY_CLIENT = ("error_in_body", "html_in_body", "empty_body", "truncated_json", "empty_choices")
_ERRORS = (
    *("reset_before_answer", "closed_without_answer", "connection_refused", "gateway_timeout"),
    *("key_rejected", "key_expired", "permission_denied", "content_filtered"),
    *("quota_exhausted", "credit_too_low", "budget_exceeded", "rate_limited"),
    *("server_out_of_memory", "model_loading", "service_unavailable", "overloaded", "context_too_long"),
)


@dataclass(frozen=True)
class Means:
    """What the user gave to show faults with."""

    errors: Mapping[str, ErrorSource]
    """By fault kind, or by hypothesis class."""
    deadline_seconds: float | None
    empty: Any


@dataclass(frozen=True)
class Way:
    """What one faulted call does, in this order."""

    begins: bool = False
    """The supplier's own stream comes first, up to the first part that says something."""
    wait_seconds: float = 0.0
    then: Literal["raise", "end", "empty", "answer"] = "raise"
    """`end`: the stream is over. `answer`: the supplier's own answer, late."""
    error: ErrorSource | None = None
    late_seconds: float | None = None
    """After which an answer was to come, whether the caller waits for it or not."""

    @property
    def is_empty(self) -> bool:
        """Whether a stream ends before its first part."""
        return self.then == "end" and not self.begins

    def exception(self) -> BaseException:
        """Return the exception to raise."""
        assert self.error is not None
        made = self.error if isinstance(self.error, BaseException) else self.error()
        return made.with_traceback(None)

    @property
    def delivery(self) -> Delivery:
        """What the wire log must show for it."""
        if self.late_seconds is not None:
            return Delivery(answer="complete", then="answered", not_before_seconds=self.late_seconds)
        if self.then in ("end", "empty"):
            return Delivery(answer="complete", then="answered", body="some" if self.begins else "any")
        if self.begins:
            return Delivery(answer="partial", then="held" if self.wait_seconds else "closed", body="some")
        return Delivery(answer="none", then="held" if self.wait_seconds else "closed")


def way_of(simulation: Simulation, means: Means, *, streaming: bool) -> Way | NotApplicable:
    """Return how the fault of `simulation` is shown in a call, streaming or not, or why it cannot be."""
    kind = simulation.fault.kind
    if kind in _NEVER:
        return NotApplicable(reason=_NEVER[kind])
    if kind in _IN_STREAMS and not streaming:
        return NotApplicable(reason="only a stream can break off in the middle")
    if kind == "stream_without_end":
        return Way(begins=True, then="end")
    if kind in _HANGS or kind == "slow_answer":
        return _waiting(simulation, means, begins=kind == "mid_stream_stall")
    if _is_empty(simulation):
        return _empty(means, streaming=streaming)
    own, by_class = means.errors.get(kind), means.errors.get(simulation.hypothesis)
    known = kind in _ERRORS or kind in _BROKEN
    error = own if own is not None else by_class if known else None
    if error is not None:
        return Way(begins=streaming and kind in _BROKEN, error=error)
    if known:
        return NotApplicable(
            reason=f'errors names no exception for "{kind}", nor for its class "{simulation.hypothesis}"'
        )
    if kind in _BY_CLIENT:
        return NotApplicable(
            reason=f'a client library decides what a caller sees of it; name its exception in errors, as "{kind}"'
        )
    return NotApplicable(reason=f'nothing says how it looks to a caller; name an exception in errors, as "{kind}"')


def _waiting(simulation: Simulation, means: Means, *, begins: bool) -> Way | NotApplicable:
    kind, deadline = simulation.fault.kind, means.deadline_seconds
    if deadline is None:
        return NotApplicable(reason="it takes deadline_seconds, after which a caller gives up waiting")
    error = means.errors.get(kind) or means.errors.get(simulation.hypothesis) or TimeoutError
    late = float(simulation.fault.settings.get("seconds", 120.0)) if kind == "slow_answer" else None
    if late is not None and late < deadline:
        return Way(wait_seconds=late, then="answer", late_seconds=late)
    return Way(begins=begins, wait_seconds=deadline, error=error, late_seconds=late)


def _is_empty(simulation: Simulation) -> bool:
    fault = simulation.fault
    return fault.kind == "empty_answer" or (
        fault.kind == "content_filtered" and fault.settings.get("blocks") == "answer"
    )


def _empty(means: Means, *, streaming: bool) -> Way | NotApplicable:
    if streaming:
        return Way(then="end")
    if means.empty is NOT_GIVEN:
        return NotApplicable(reason="it takes empty, which is what an empty answer of this supplier looks like")
    return Way(then="empty")
