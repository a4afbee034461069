"""The events of a wire log put together: one model request with its answers and the end of its connection.

Pure. A log with holes gives requests with less in them, never an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pytest_regcase.records.wire import WireEvent

_HEALTHY = ("replay", "script", "upstream", "filler")


@dataclass(frozen=True)
class Request:
    """One model request, with the answers to it and the end of its connection."""

    t: float
    number: int
    conn: int
    step: int
    main: bool
    faulted: bool
    event: WireEvent
    sent: tuple[WireEvent, ...]
    closed: WireEvent | None
    followed: bool
    """A later request came over the same connection, so the client had read the answer."""

    @property
    def answered_at(self) -> float | None:
        """`t` of a whole answer."""
        return next((number(each.get("t")) for each in self.sent if each.get("complete") is True), None)

    @property
    def healthy(self) -> WireEvent | None:
        """The healthy reply to it, whole or not."""
        return next((each for each in self.sent if _is_healthy_reply(each)), None)

    @property
    def fault_texts(self) -> tuple[WireEvent, ...]:
        """What a fault sent to it that holds a model's text, whole or not."""
        return tuple(
            each
            for each in self.sent
            if self.faulted
            and each.get("from") == "fault"
            and went_out(each)
            and isinstance(each.get("text"), str)
        )


@dataclass(frozen=True)
class ServerEnd:
    """What the fault did to the supplier as a whole."""

    killed: WireEvent | None
    refusing: WireEvent | None
    memory: Literal["kernel-kill", "address-space"] | None

    @property
    def killed_at(self) -> float | None:
        """`t` of the kill."""
        return None if self.killed is None else number(self.killed.get("t"))

    @property
    def gone(self) -> bool:
        """Say whether connects leave no trace with us any more."""
        return self.killed is not None or self.refusing is not None


def server_end(events: Sequence[WireEvent]) -> ServerEnd:
    """Return how the supplier's process and its listener ended, as far as a fault was the cause."""

    def first(what: str) -> WireEvent | None:
        return next((each for each in events if is_event(each, what)), None)

    killed = next((each for each in events if is_event(each, "killed") and each.get("by") == "fault"), None)
    limit = first("memory")
    memory: Literal["kernel-kill", "address-space"] | None = None
    if killed is not None and whole(killed.get("oom_kills")) > 0:
        memory = "kernel-kill"
    elif first("allocation-failed") is not None and limit is not None and limit.get("limit") == "address-space":
        memory = "address-space"
    return ServerEnd(killed, first("refusing"), memory)


def read_requests(events: Sequence[WireEvent]) -> list[Request]:
    """Return the model requests in the order in which they came."""
    sent: dict[int, list[WireEvent]] = {}
    closed: dict[int, WireEvent] = {}
    last_on: dict[int, int] = {}
    for event in events:
        request, conn = whole(event.get("request")), whole(event.get("conn"))
        if is_event(event, "sent"):
            sent.setdefault(request, []).append(event)
        elif is_event(event, "closed"):
            closed.setdefault(conn, event)
        elif is_event(event, "request"):
            last_on[conn] = max(request, last_on.get(conn, 0))
    return [
        Request(
            t=number(event.get("t")),
            number=whole(event.get("request")),
            conn=whole(event.get("conn")),
            step=whole(event.get("step")),
            main=not event.get("side_call"),
            faulted=event.get("phase") == "faulted" and not event.get("side_call"),
            event=event,
            sent=tuple(sent.get(whole(event.get("request")), ())),
            closed=closed.get(whole(event.get("conn"))),
            followed=last_on[whole(event.get("conn"))] > whole(event.get("request")),
        )
        for event in events
        # Only a model request has a conversation: refusals and lists of models are none.
        if is_event(event, "request") and event.get("conversation") is not None
    ]


def is_event(event: WireEvent, what: str) -> bool:
    """Say whether `event` is of that kind."""
    return event.get("event") == what


def went_out(sent: WireEvent) -> bool:
    """Say whether anything of an answer reached the agent: bytes, or what a callable handed to it."""
    return bool(sent.get("bytes")) or sent.get("channel") == "in-process"


def is_whole(sent: WireEvent | None) -> bool:
    """Say whether an answer went out completely and holds the end that its API gives it."""
    return sent is not None and sent.get("complete") is True and not sent.get("unfinished")


def number(value: Any) -> float:
    """Return a number; 0 where there is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def whole(value: Any) -> int:
    """Return a whole number; 0 where there is none."""
    return value if isinstance(value, int) else 0


def _is_healthy_reply(sent: WireEvent) -> bool:
    """An upstream's failure is no reply, but a part of a model's text that it sent before it broke off is one."""
    return sent.get("from") in _HEALTHY and (sent.get("text") is not None or bool(sent.get("tool_calls")))
