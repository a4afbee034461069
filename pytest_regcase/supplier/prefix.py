"""Whether a request still follows the replies that it was given.

Pure functions over canonical requests. A departure puts the agent off the prefix; a difference is noted only.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from pytest_regcase.supplier.protocol import Call, ModelRequest


class RecordedResult(NamedTuple):
    """A tool result as the recorded trial had it."""

    call_id: str | None
    texts: tuple[str, ...]
    """What may stand in the request in its place: the raw output and the harness's rendering, where recorded."""


class Difference(NamedTuple):
    """What is not as in the recorded trial, though the agent follows it."""

    kind: Literal["tool-result", "forgotten-step", "tools", "asked-again", "not-followed"]
    """``not-followed``: any of them after the first faulted request, where nothing is a departure any more."""
    says: str


class GivenReply(NamedTuple):
    """A reply that was sent, and what the recorded trial's tools answered to its calls."""

    step: int
    calls: tuple[Call, ...]
    results: tuple[RecordedResult, ...] = ()


def missing_tools(request: ModelRequest, step: int, needed: Iterable[str]) -> tuple[str, ...]:
    """Return one sentence a tool that the reply of `step` calls and the request does not offer."""
    offers = ", ".join(request.tools) or "none"
    return tuple(
        f"the recorded reply of step {step} calls {name}, which the request does not offer (it offers {offers})"
        for name in sorted(set(needed) - set(request.tools))
    )


def departures(request: ModelRequest, given: Sequence[GivenReply]) -> tuple[str, ...]:
    """Return why the request does not follow the last given reply that has calls; empty when it does.

    Only the last one must be there: agents trim old messages (see `differences`).
    """
    last = next((each for each in reversed(given) if each.calls), None)
    if last is None:
        return ()
    echoed: dict[str, int] = {}
    last_with_calls: frozenset[str | None] = frozenset()
    for position, message in enumerate(request.messages):
        if message.role == "assistant" and message.tool_calls:
            last_with_calls = frozenset(call.id for call in message.tool_calls)
            echoed |= {call.id: position for call in message.tool_calls if call.id is not None}
    ids = [call.id or "" for call in last.calls]
    absent = [each for each in ids if each not in echoed]
    if absent or not last_with_calls & frozenset(ids):
        # Where ids are reused from step to step, an old call of the same id would stand in for the new one.
        shown = ", ".join(absent or ids)
        return (f"the request does not echo the calls of step {last.step} ({shown})",)
    answered = {
        message.tool_call_id
        for position, message in enumerate(request.messages)
        if message.role == "tool" and position > echoed.get(message.tool_call_id or "", len(request.messages))
    }
    return tuple(
        f"the request holds no result for call {each} of step {last.step}" for each in ids if each not in answered
    )


def other_tools(request: ModelRequest, recorded: Sequence[str]) -> tuple[Difference, ...]:
    """Return the tools that came or went since the trial was recorded; nothing where it recorded none."""
    if not recorded:
        return ()
    more = [each for each in request.tools if each not in recorded]
    gone = [each for each in recorded if each not in request.tools]
    parts = [
        f"offers {', '.join(more)}, which the recorded one did not" if more else "",
        f"no longer offers {', '.join(gone)}" if gone else "",
    ]
    told = ", and ".join(filter(None, parts))
    return (Difference("tools", f"the agent {told}"),) if told else ()


def differences(request: ModelRequest, given: Sequence[GivenReply]) -> tuple[Difference, ...]:
    """Return what differs from the recorded trial without leaving the prefix.

    Old calls that are no longer there, and results of the last given reply with another text. A recorded raw
    output counts as equal wherever it is contained, also inside a JSON string: harnesses put it into a template.
    """
    with_calls = [each for each in given if each.calls]
    if not with_calls:
        return ()
    echoed = {call.id for message in request.messages for call in message.tool_calls}
    notes = [
        Difference("forgotten-step", f"the request no longer shows the calls of step {each.step}")
        for each in with_calls[:-1]
        if not {call.id for call in each.calls} <= echoed
    ]
    last = with_calls[-1]
    ids = [call.id for call in last.calls]
    for position, recorded in enumerate(last.results):
        call_id = recorded.call_id if recorded.call_id in ids else ids[position] if position < len(ids) else None
        sent = next(
            (
                each.text
                for each in reversed(request.messages)
                if each.role == "tool" and each.tool_call_id == call_id
            ),
            None,
        )
        if sent is not None and recorded.texts and not any(_stands_in(each, sent) for each in recorded.texts):
            says = f"the result of call {call_id} (step {last.step}) differs from the recorded one"
            notes.append(Difference("tool-result", says))
    return tuple(notes)


def _stands_in(recorded: str, sent: str) -> bool:
    wanted = recorded.strip()
    return (
        wanted in sent or json.dumps(wanted)[1:-1] in sent or json.dumps(wanted, ensure_ascii=False)[1:-1] in sent
    )
