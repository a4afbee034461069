"""What a wire log shows: whether the fault was delivered, how often the agent retried, when it stopped.

Pure: the events go in, the facts come out. Nothing here knows what a fault intended beyond what it declares must
be seen, and a log that broke off anywhere gives fewer facts, never an error.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_regcase.records.trial import ToolCall
from pytest_regcase.records.wire import Delivery, NotApplicable, SentReply, WireEvent, WireFacts

Declares = Callable[[str, bool], Delivery | NotApplicable]
_HEALTHY = ("replay", "script", "upstream", "filler")


@dataclass(frozen=True)
class _Request:
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
        return next((_number(each.get("t")) for each in self.sent if each.get("complete") is True), None)

    @property
    def healthy(self) -> WireEvent | None:
        """The healthy reply to it, whole or not."""
        return next((each for each in self.sent if _is_healthy_reply(each)), None)


def wire_facts(
    events: Sequence[WireEvent],
    *,
    declares: Declares | None,
    ended_by_us_at: float | None,
    last_step: int | None,
    failing_step: int | None = None,
) -> WireFacts:
    """Return the facts of one attempt. Call it when the supplier is stopped: only then is the log complete.

    `declares` says what a delivered fault looks like on a wire, streaming or not; None: none was to be injected.
    `ended_by_us_at` is the `t` at which we began to end the agent; None: it ended by its own decision. What its
    connections do from that moment on is our doing. `last_step` is the highest step with a recorded reply, and
    `failing_step` the step at which the fault is due or the control done (default: the one after `last_step`).
    """
    requests = _read_requests(events)
    main = [each for each in requests if each.main]
    faulted = [each for each in main if each.faulted]
    killed = next((each for each in events if _is(each, "killed") and each.get("by") == "fault"), None)
    gone_at = _number(killed.get("t")) if killed is not None else None
    first = faulted[0] if faulted else None
    open_at_end = [each for each in main if _still_open(each, ended_by_us_at, gone_at)]
    off = _reasons(main or requests, "off_prefix")
    failing = failing_step or (last_step or 0) + 1
    on_prefix = _before_leaving(main)
    delivered, why_not = _delivered(first, main, declares, killed)
    return WireFacts(
        delivered=delivered,
        why_not=why_not,
        requests=len(requests),
        faulted_requests=len(faulted),
        retries=None if gone_at is not None else _count_retries(main, first),
        side_calls=len(requests) - len(main),
        first_fault_seconds=first.t if first else None,
        last_release_seconds=None if open_at_end else _last_release(requests, gone_at),
        open_at_end=len(open_at_end),
        healed=first is not None and any(_whole_reply_after(each, first) for each in main),
        off_prefix=off,
        differences=_reasons(main, "differs"),
        steps_reached=max((each.step for each in main), default=0),
        asked_for_failing_step=any(each.step == failing for each in on_prefix),
        got_last_reply=last_step is not None
        and any(each.step == last_step and _from_recording(each.healthy) for each in on_prefix),
        replies=tuple(_replies(main, first)),
        fault_texts=tuple(
            each["text"]
            for request in faulted
            for each in request.sent
            if each.get("from") == "fault" and each.get("bytes") and isinstance(each.get("text"), str)
        ),
        upstream_ids=_texts(requests, "upstream_id"),
        upstream_failures=_texts(requests, "failure"),
        server_gone=gone_at is not None,
    )


# reading


def _read_requests(events: Sequence[WireEvent]) -> list[_Request]:
    sent: dict[int, list[WireEvent]] = {}
    closed: dict[int, WireEvent] = {}
    last_on: dict[int, int] = {}
    for event in events:
        number, conn = _whole(event.get("request")), _whole(event.get("conn"))
        if _is(event, "sent"):
            sent.setdefault(number, []).append(event)
        elif _is(event, "closed"):
            closed.setdefault(conn, event)
        elif _is(event, "request"):
            last_on[conn] = max(number, last_on.get(conn, 0))
    return [
        _Request(
            t=_number(event.get("t")),
            number=_whole(event.get("request")),
            conn=_whole(event.get("conn")),
            step=_whole(event.get("step")),
            main=not event.get("side_call"),
            faulted=event.get("phase") == "faulted" and not event.get("side_call"),
            event=event,
            sent=tuple(sent.get(_whole(event.get("request")), ())),
            closed=closed.get(_whole(event.get("conn"))),
            followed=last_on[_whole(event.get("conn"))] > _whole(event.get("request")),
        )
        for event in events
        # Only a model request has a conversation: refusals and lists of models are none.
        if _is(event, "request") and event.get("conversation") is not None
    ]


def _is(event: WireEvent, what: str) -> bool:
    return event.get("event") == what


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _is_healthy_reply(sent: WireEvent) -> bool:
    """An upstream's failure is no reply, but a part of a model's text that it sent before it broke off is one."""
    return sent.get("from") in _HEALTHY and (sent.get("text") is not None or bool(sent.get("tool_calls")))


def _is_whole(sent: WireEvent | None) -> bool:
    return sent is not None and sent.get("complete") is True and not sent.get("unfinished")


# delivery


def _delivered(
    first: _Request | None,
    main: Sequence[_Request],
    declares: Declares | None,
    killed: WireEvent | None,
) -> tuple[bool | None, str | None]:
    if declares is None:
        return None, None
    if first is None:
        reached = max((each.step for each in main), default=0)
        got = f"the agent came as far as step {reached}" if reached else "no main request came"
        return False, f"no request met the fault: {got}"
    wire = first.event.get("wire")
    declared = declares(wire if isinstance(wire, str) else "", first.event.get("streaming") is True)
    if isinstance(declared, NotApplicable):
        return False, f"the fault has no meaning here: {declared.reason}"
    missing = _wrong_answer(first, declared) or _wrong_end(first, declared, killed)
    return missing is None, missing


def _wrong_answer(request: _Request, declared: Delivery) -> str | None:
    if declared.answer == "none":
        count = sum(_whole(each.get("bytes")) for each in request.sent)
        return f"{count} bytes of an answer were sent where none was declared" if request.sent else None
    from_fault = [each for each in request.sent if each.get("from") == "fault"]
    if not from_fault:
        return "no answer of the fault was sent"
    answer = from_fault[0]
    if declared.status is not None and answer.get("status") != declared.status:
        return f"the fault answered {answer.get('status')}, declared was {declared.status}"
    if declared.answer == "complete" and answer.get("complete") is not True:
        return "the answer of the fault broke off"
    if declared.answer == "partial" and (answer.get("complete") is True or not answer.get("bytes")):
        return "a part of an answer was declared, and a whole one or none was sent"
    return None


def _wrong_end(request: _Request, declared: Delivery, killed: WireEvent | None) -> str | None:
    if declared.then == "killed":
        return _wrong_kill(request, killed)
    closed = request.closed
    if declared.answer != "none" and request.followed:
        return None
    if closed is None:
        return "the log does not show how the connection ended"
    if declared.then == "held":
        # Closed by us counts where the supplier was stopped: until then the connection was held.
        held = _number(closed.get("held_seconds"))
        return None if held > 0 and request.number == closed.get("request") else "the connection was not held"
    unacknowledged = closed.get("unacknowledged")
    if isinstance(unacknowledged, int) and unacknowledged > 0:
        return f"{unacknowledged} bytes were not acknowledged when the connection ended"
    if unacknowledged is None and (closed.get("by") != "peer" or closed.get("how") != "fin"):
        return "nothing shows that the answer arrived"
    if declared.then == "closed" and closed.get("by") != "us":
        return "the client closed first"
    return None


def _wrong_kill(request: _Request, killed: WireEvent | None) -> str | None:
    if killed is None or _number(killed.get("t")) < request.t:
        return "the supplier's process was not killed"
    if request.closed is not None and request.closed.get("by") == "peer":
        return "the client let go before the process was killed"
    if killed.get("connect") == "accepted":
        return "the port still takes connections after the kill"
    return None


# retries, stop, replies


def _whole_reply_after(request: _Request, first: _Request) -> bool:
    reply = request.healthy
    return request.number > first.number and _is_whole(reply)


def _count_retries(main: Iterable[_Request], first: _Request | None) -> int:
    """Count main requests after the first faulted one, up to and with the one that got a healthy answer."""
    if first is None:
        return 0
    count = 0
    for request in main:
        if request.number > first.number:
            count += 1
            if not request.faulted and _is_whole(request.healthy):
                break
    return count


def _still_open(request: _Request, ended_by_us_at: float | None, gone_at: float | None) -> bool:
    """Say whether the agent held on to this request until we ended it, or until we stopped the supplier."""
    if request.answered_at is not None or gone_at is not None:
        return False
    closed = request.closed
    if closed is None:
        return True
    if closed.get("by") == "us":
        # Held until the supplier was stopped; a fault that closes by itself leaves no such mark.
        return "held_seconds" in closed and closed.get("request") == request.number
    return ended_by_us_at is not None and _number(closed.get("t")) >= ended_by_us_at


def _last_release(requests: Sequence[_Request], gone_at: float | None) -> float | None:
    """Return when the agent let go of its last open request or sent its last one, whichever is later.

    A request that was answered is not open from then on. Side calls count: who makes one has not stopped.
    """
    moments: list[float] = []
    for request in requests:
        moments.append(request.t)
        if request.answered_at is not None:
            moments.append(request.answered_at)
        elif request.closed is not None:
            moments.append(_number(request.closed.get("t")))
        elif gone_at is not None:
            moments.append(gone_at)
    return max(moments, default=None)


def _replies(main: Iterable[_Request], first: _Request | None) -> Iterable[SentReply]:
    for request in main:
        reply = request.healthy
        if reply is None:
            continue
        origin = reply["from"]
        text = reply.get("text")
        yield SentReply(
            step=request.step,
            origin=origin,
            text=text if isinstance(text, str) else None,
            tool_calls=tuple(_calls(reply.get("tool_calls"))),
            after_fault=first is not None and request.number > first.number,
            unfinished=not _is_whole(reply),
        )


def _calls(calls: Any) -> Iterable[ToolCall]:
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            call_id = call.get("id")
            yield ToolCall(
                id=call_id if isinstance(call_id, str) else None,
                name=str(call.get("name", "")),
                arguments=str(call.get("arguments", "")),
            )


def _before_leaving(main: Sequence[_Request]) -> list[_Request]:
    kept: list[_Request] = []
    for request in main:
        if request.event.get("off_prefix"):
            break
        kept.append(request)
    return kept


def _from_recording(sent: WireEvent | None) -> bool:
    return sent is not None and sent.get("from") in ("replay", "script") and _is_whole(sent)


def _reasons(requests: Iterable[_Request], key: str) -> tuple[str, ...]:
    lists = (each.event.get(key) for each in requests)
    texts = (text for each in lists if isinstance(each, list) for text in each if isinstance(text, str))
    return tuple(dict.fromkeys(texts))


def _texts(requests: Iterable[_Request], key: str) -> tuple[str, ...]:
    found = (event.get(key) for each in requests for event in each.sent)
    return tuple(dict.fromkeys(each for each in found if isinstance(each, str)))
