"""What a wire log shows: whether the fault was delivered, how often the agent retried, when it stopped.

Pure: the events go in, the facts come out. Nothing here knows what a fault intended beyond what it declares must
be seen, and a log that broke off anywhere gives fewer facts, never an error.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from pytest_regcase.records.trial import ToolCall
from pytest_regcase.records.wire import Difference, SentReply, WireEvent, WireFacts
from pytest_regcase.recovery.connects import refused_connects
from pytest_regcase.recovery.delivery import Declares, delivery
from pytest_regcase.recovery.wire_requests import Request, is_whole, number, read_requests, server_end, whole


def wire_facts(
    events: Sequence[WireEvent],
    *,
    declares: Declares | None,
    ended_by_us_at: float | None,
    last_step: int | None,
    failing_step: int | None = None,
    connects: Sequence[float] | None = None,
) -> WireFacts:
    """Return the facts of one attempt. Call it when the supplier is stopped: only then is the log complete.

    `declares` says what a delivered fault looks like on a wire, streaming or not; None: none was to be injected.
    `ended_by_us_at` is the `t` at which we began to end the agent; None: it ended by its own decision. What its
    connections do from that moment on is our doing. `last_step` is the highest step with a recorded reply, and
    `failing_step` the step at which the fault is due or the control done (default: the one after `last_step`).
    `connects` are those noted in the agent's own process, on the clock of the events; None: none was.
    """
    requests = read_requests(events)
    main = [each for each in requests if each.main]
    faulted = [each for each in main if each.faulted]
    end = server_end(events)
    first = faulted[0] if faulted else None
    open_at_end = [each for each in main if _still_open(each, ended_by_us_at, killed=end.killed is not None)]
    off = _reasons(main or requests, "off_prefix")
    failing = failing_step or (last_step or 0) + 1
    on_prefix = _before_leaving(main)
    delivered, why_not = delivery(first, main, declares, end)
    refused = refused_connects(connects, events, first.t if first else None) if end.gone else None
    tries = _retries(main, first)
    return WireFacts(
        delivered=delivered,
        why_not=why_not,
        requests=len(requests),
        faulted_requests=len(faulted),
        retries=None if end.gone and refused is None else len(tries) + len(refused or ()),
        client_retries=_by_the_client(main, tries),
        refused_connects=None if refused is None else len(refused),
        requests_a_step=_by_step(main),
        side_calls=len(requests) - len(main),
        first_fault_seconds=first.t if first else None,
        last_release_seconds=None if open_at_end else _last_release(requests, end.killed_at, refused or ()),
        open_at_end=len(open_at_end),
        healed=first is not None and any(_whole_reply_after(each, first) for each in main),
        off_prefix=off,
        differences=_differences(main),
        steps_reached=max((each.step for each in main), default=0),
        asked_for_failing_step=any(each.step == failing for each in on_prefix),
        got_last_reply=last_step is not None
        and any(each.step == last_step and _from_recording(each.healthy) for each in on_prefix),
        replies=tuple(_replies(main, first)),
        fault_texts=tuple(each["text"] for request in faulted for each in request.fault_texts if is_whole(each)),
        upstream_ids=_texts(requests, "upstream_id"),
        upstream_failures=_texts(requests, "failure"),
        server_gone=end.gone,
        memory=end.memory,
    )


# retries, stop, replies


def _whole_reply_after(request: Request, first: Request) -> bool:
    reply = request.healthy
    return request.number > first.number and is_whole(reply)


def _retries(main: Iterable[Request], first: Request | None) -> list[Request]:
    """Return the main requests after the first faulted one, up to and with the one that got a healthy answer."""
    tries: list[Request] = []
    for request in main:
        if first is not None and request.number > first.number:
            tries.append(request)
            if not request.faulted and is_whole(request.healthy):
                break
    return tries


def _by_the_client(main: Iterable[Request], tries: Iterable[Request]) -> int | None:
    """Count the tries that the client library made by itself; None where its requests do not say so."""
    if all(each.event.get("client_retry") is None for each in main):
        return None
    return sum(whole(each.event.get("client_retry")) > 0 for each in tries)


def _by_step(main: Sequence[Request]) -> tuple[int, ...]:
    """Return how many requests each step took, from step 1 on."""
    last = max((each.step for each in main), default=0)
    return tuple(sum(each.step == step for each in main) for step in range(1, last + 1))


def _still_open(request: Request, ended_by_us_at: float | None, *, killed: bool) -> bool:
    """Say whether the agent held on to this request until we ended it, or until we stopped the supplier."""
    if request.answered_at is not None or killed:
        return False
    closed = request.closed
    if closed is None:
        return True
    if closed.get("by") == "us":
        # Held until the supplier was stopped; a fault that closes by itself leaves no such mark.
        return "held_seconds" in closed and closed.get("request") == request.number
    return ended_by_us_at is not None and number(closed.get("t")) >= ended_by_us_at


def _last_release(requests: Sequence[Request], killed_at: float | None, refused: Iterable[float]) -> float | None:
    """Return when the agent let go of its last open request or sent its last one, whichever is later.

    A request that was answered is not open from then on. Side calls count: who makes one has not stopped; so do
    connects that were refused.
    """
    moments = list(refused)
    for request in requests:
        moments.append(request.t)
        if request.answered_at is not None:
            moments.append(request.answered_at)
        elif request.closed is not None:
            moments.append(number(request.closed.get("t")))
        elif killed_at is not None:
            moments.append(killed_at)
    return max(moments, default=None)


def _replies(main: Iterable[Request], first: Request | None) -> Iterable[SentReply]:
    for request in main:
        parts = [each for each in request.fault_texts if not is_whole(each)]
        for reply in [request.healthy, *parts]:
            if reply is None:
                continue
            text = reply.get("text")
            yield SentReply(
                step=request.step,
                origin=reply["from"],
                text=text if isinstance(text, str) else None,
                tool_calls=tuple(_calls(reply.get("tool_calls"))),
                after_fault=first is not None and request.number > first.number,
                unfinished=not is_whole(reply),
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


def _before_leaving(main: Sequence[Request]) -> list[Request]:
    kept: list[Request] = []
    for request in main:
        if request.event.get("off_prefix"):
            break
        kept.append(request)
    return kept


def _from_recording(sent: WireEvent | None) -> bool:
    return sent is not None and sent.get("from") in ("replay", "script") and is_whole(sent)


def _reasons(requests: Iterable[Request], key: str) -> tuple[str, ...]:
    lists = (each.event.get(key) for each in requests)
    texts = (text for each in lists if isinstance(each, list) for text in each if isinstance(text, str))
    return tuple(dict.fromkeys(texts))


def _differences(requests: Iterable[Request]) -> tuple[Difference, ...]:
    lists = (each.event.get("differs") for each in requests)
    found = (each for noted in lists if isinstance(noted, list) for each in noted if isinstance(each, dict))
    first: dict[str, Difference] = {}
    for each in found:
        first.setdefault(says := str(each.get("says")), Difference(kind=str(each.get("kind")), says=says))
    return tuple(first.values())


def _texts(requests: Iterable[Request], key: str) -> tuple[str, ...]:
    found = (event.get(key) for each in requests for event in each.sent)
    return tuple(dict.fromkeys(each for each in found if isinstance(each, str)))
