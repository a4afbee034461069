"""Whether the fault reached the wire as its kind declares.

Pure: read from the log after every connection ended. What a fault meant to do is not asked; what the log does not
show did not happen.
"""

from collections.abc import Callable, Sequence

from pytest_regcase.records.wire import Delivery, NotApplicable, WireEvent
from pytest_regcase.recovery.wire_requests import Request, ServerEnd, number, went_out, whole

Declares = Callable[[str, bool], Delivery | NotApplicable]
_ROUNDING_SECONDS = 0.0002
"""The log has its moments to the tenth of a millisecond: what lies between two may be that much longer."""
_LEAST_PARTS = {"some": 1, "repeated": 2}
_LET_GO_BEFORE = Delivery(answer="none", then="held")


def delivery(
    first: Request | None, main: Sequence[Request], declares: Declares | None, end: ServerEnd
) -> tuple[bool | None, str | None]:
    """Return whether the fault was delivered on the `first` faulted request, and why not.

    None where none was to be injected.
    """
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
    if declared.not_before_seconds is not None and not first.sent:
        declared = _LET_GO_BEFORE
    missing = _wrong_answer(first, declared) or _wrong_end(first, declared, end) or _wrong_memory(declared, end)
    return missing is None, missing


def _wrong_answer(request: Request, declared: Delivery) -> str | None:
    if declared.answer == "none":
        count = sum(whole(each.get("bytes")) for each in request.sent)
        return f"{count} bytes of an answer were sent where none was declared" if request.sent else None
    from_fault = [each for each in request.sent if each.get("from") == "fault"]
    if not from_fault:
        return "no answer of the fault was sent"
    answer = from_fault[0]
    if declared.status is not None and answer.get("status") != declared.status:
        return f"the fault answered {answer.get('status')}, declared was {declared.status}"
    if declared.answer == "complete" and answer.get("complete") is not True:
        return "the answer of the fault broke off"
    if declared.answer == "partial" and (answer.get("complete") is True or not went_out(answer)):
        return "a part of an answer was declared, and a whole one or none was sent"
    return _wrong_course(request, answer, declared)


def _wrong_course(request: Request, answer: WireEvent, declared: Delivery) -> str | None:
    parts = whole(answer.get("parts"))
    if declared.body == "none" and parts:
        return "a part of the body was sent where a head alone was declared"
    least = _LEAST_PARTS.get(declared.body, 0)
    if parts < least:
        return f"{parts} parts of the body were sent, declared were at least {least}"
    waited = number(answer.get("first_byte")) - request.t
    if declared.not_before_seconds is not None and waited < declared.not_before_seconds - _ROUNDING_SECONDS:
        return f"the first byte went out after {waited:.3f} s, declared: not before {declared.not_before_seconds}"
    return None


def _wrong_end(request: Request, declared: Delivery, end: ServerEnd) -> str | None:
    if declared.then == "killed":
        return _wrong_kill(request, declared, end)
    if declared.then == "refused" and (not_refused := _wrong_refusal(request, end)) is not None:
        return not_refused
    closed = request.closed
    if declared.answer != "none" and request.followed:
        return None
    if closed is None:
        return "the log does not show how the connection ended"
    if declared.then == "held":
        # Closed by us counts where the supplier was stopped: until then the connection was held.
        held = number(closed.get("held_seconds"))
        if held <= 0 or request.number != closed.get("request"):
            return "the connection was not held"
    if declared.answer != "none" or declared.then == "closed":
        unacknowledged = closed.get("unacknowledged")
        if isinstance(unacknowledged, int) and unacknowledged > _may_be_on_its_way(request, declared, closed):
            return f"{unacknowledged} bytes were not acknowledged when the connection ended"
        if unacknowledged is None and (closed.get("by") != "peer" or closed.get("how") != "fin"):
            return "nothing shows that the answer arrived"
    if declared.answer != "complete" and declared.then in ("closed", "refused"):
        return _wrong_close(closed, declared)
    return None


def _may_be_on_its_way(request: Request, declared: Delivery, closed: WireEvent) -> int:
    """Return how many bytes need no acknowledgement: of parts that come again and again, all but the least number.

    A client that lets go meanwhile has no say in what is under way just then.
    """
    if declared.body != "repeated" or closed.get("by") != "peer":
        return 0
    answer = next(each for each in request.sent if each.get("from") == "fault")
    return (whole(answer.get("parts")) - _LEAST_PARTS["repeated"]) * whole(answer.get("smallest_part"))


def _wrong_close(closed: WireEvent, declared: Delivery) -> str | None:
    if closed.get("by") != "us":
        return "the client closed first"
    return _wrong_how(closed.get("how"), declared)


def _wrong_kill(request: Request, declared: Delivery, end: ServerEnd) -> str | None:
    if end.killed is None or number(end.killed.get("t")) < request.t:
        return "the supplier's process was not killed"
    if request.closed is not None and request.closed.get("by") == "peer":
        return "the client let go before the process was killed"
    if end.killed.get("connect") != "refused":
        return _not_refused(end.killed, "after the kill")
    # A kill leaves no line of a connection's end, but for one that the kernel was told to reset.
    how = "fin" if request.closed is None else request.closed.get("how")
    return _wrong_how(how, declared)


def _wrong_refusal(request: Request, end: ServerEnd) -> str | None:
    if end.refusing is None or number(end.refusing.get("t")) < request.t:
        return "the port was not closed"
    if end.refusing.get("connect") != "refused":
        return _not_refused(end.refusing, "after it was closed")
    return None


def _not_refused(event: WireEvent, when: str) -> str:
    taken = event.get("connect") == "accepted"
    return f"the port still takes connections {when}" if taken else f"nothing shows that the port is dead {when}"


def _wrong_memory(declared: Delivery, end: ServerEnd) -> str | None:
    if declared.out_of_memory and end.memory is None:
        return "nothing shows that the supplier's memory ran out"
    return None


def _wrong_how(how: object, declared: Delivery) -> str | None:
    if declared.how is None or how == declared.how:
        return None
    return f"the connection ended with {how}, declared was {declared.how}"
