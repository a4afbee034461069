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
    missing = sorted(set(needed).difference(request.tools))
    if not missing:
        return ()
    offers = ", ".join(request.tools) or "none"
    return tuple(
        f"the recorded reply of step {step} calls {name}, which the request does not offer (it offers {offers})"
        for name in missing
    )


def departures(request: ModelRequest, given: Sequence[GivenReply]) -> tuple[str, ...]:
    """Return why the request does not follow the last given reply that has calls; empty when it does.

    Only the last one must be there: agents trim old messages (see `forgotten_steps`).
    """
    last = next((each for each in reversed(given) if each.calls), None)
    if last is None:
        return ()
    messages = request.messages
    ids = [call.id or "" for call in last.calls]
    distinct = len(frozenset(ids))
    echoed: dict[str, int] = {}
    newest: frozenset[str | None] | None = None
    # From the end, where they are to be found: this is asked of every request, however long the conversation is.
    position = len(messages)
    while position and len(echoed) < distinct:
        position -= 1
        message = messages[position]
        if message.role == "assistant" and message.tool_calls:
            found = frozenset(call.id for call in message.tool_calls)
            newest = found if newest is None else newest
            for each in found.intersection(ids):
                echoed.setdefault(each or "", position)
    absent = [each for each in ids if each not in echoed]
    if absent or not newest or newest.isdisjoint(ids):
        # Where ids are reused from step to step, an old call of the same id would stand in for the new one.
        shown = ", ".join(absent or ids)
        return (f"the request does not echo the calls of step {last.step} ({shown})",)
    answered = {
        message.tool_call_id
        for position, message in enumerate(messages[position:], start=position)
        if message.role == "tool" and position > echoed.get(message.tool_call_id or "", len(messages))
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


def forgotten_steps(request: ModelRequest, given: Sequence[GivenReply]) -> tuple[int, ...]:
    """Return the steps before the last whose calls the request no longer shows: agents trim old messages."""
    echoed = {call.id for message in request.messages for call in message.tool_calls}
    gone = {call.id for each in given[:-1] for call in each.calls} - echoed
    return tuple(each.step for each in given[:-1] if any(call.id in gone for call in each.calls)) if gone else ()


def no_longer_shown(step: int) -> Difference:
    """Return what is noted of a forgotten step."""
    return Difference("forgotten-step", f"the request no longer shows the calls of step {step}")


def other_results(request: ModelRequest, given: Sequence[GivenReply]) -> tuple[Difference, ...]:
    """Return the results of the last given reply that has calls whose text is not the recorded one.

    A recorded raw output counts as equal wherever it is contained, also inside a JSON string: harnesses put it
    into a template.
    """
    last = next((each for each in reversed(given) if each.calls), None)
    if last is None:
        return ()
    notes: list[Difference] = []
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
