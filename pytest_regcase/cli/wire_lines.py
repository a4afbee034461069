"""One readable line for each event of a wire log. Knows the events' keys, and nothing of what they prove."""

from collections.abc import Iterator, Mapping
from typing import Any

_ORIGINS = {
    "replay": "recorded reply",
    "script": "scripted reply",
    "upstream": "the real supplier's answer",
    "filler": "fixed answer",
    "refusal": "refused",
}


def line_of(event: Mapping[str, Any]) -> str | None:
    """Return what happened in words; None for an event that no reader waits for."""
    what = event.get("event")
    about = f"request {event['request']}: " if "request" in event else ""
    if what == "request":
        return about + ", ".join(_request(event))
    if what == "sent":
        return about + ", ".join(_sent(event))
    if what == "closed":
        return about + ", ".join(_closed(event)) if about else None
    if what == "refusing":
        return f"the port takes no more connections (a connect now: {event.get('connect')})"
    if what == "killed":
        return f"the supplier's process was killed (a connect now: {event.get('connect')})"
    if what == "memory":
        return f"memory is limited to {event.get('bytes')} bytes more ({event.get('limit')})"
    if what == "allocation-failed":
        return f"memory ran out: {event.get('says')}"
    return None


def _request(event: Mapping[str, Any]) -> Iterator[str]:
    if event.get("conversation") is None:
        yield str(event.get("path") or "not for us: the path does not begin as the base URL does")
        return
    mode = "streaming" if event.get("streaming") else "not streaming"
    yield f"{event.get('wire')}, {mode}"
    yield "side call" if event.get("side_call") else f"step {event.get('step')}"
    if event.get("client_retry"):
        yield f"the client's own retry {event['client_retry']}"
    if event.get("phase") == "faulted":
        yield "meets the fault"
    yield from (f"OFF THE RECORDED REPLIES: {each}" for each in event.get("off_prefix") or ())
    yield from (f"differs: {each.get('says')}" for each in event.get("differs") or ())


def _sent(event: Mapping[str, Any]) -> Iterator[str]:
    origin = str(event.get("from"))
    yield f"fault {event.get('fault_kind')}" if origin == "fault" else _ORIGINS.get(origin, origin)
    status = event.get("status")
    whole = "whole" if event.get("complete") else "in part"
    yield f"{f'status {status}, ' if status is not None else ''}{event.get('bytes', 0)} bytes, {whole}"
    calls = [str(each.get("name")) for each in event.get("tool_calls") or ()]
    if calls:
        yield f"calls {', '.join(calls)}"
    if event.get("failure"):
        yield str(event["failure"])


def _closed(event: Mapping[str, Any]) -> Iterator[str]:
    by = "by the client" if event.get("by") == "peer" else "by us"
    how = f" ({event['how']})" if event.get("how") else ""
    yield f"connection closed {by}{how}"
    if event.get("held_seconds"):
        yield f"held for {event['held_seconds']:.1f} s without a whole answer"
    if event.get("unacknowledged"):
        yield f"{event['unacknowledged']} bytes did not arrive"
