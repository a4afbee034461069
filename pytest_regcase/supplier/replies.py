"""Which answer is due: a recorded reply, the fault, the closing reply, a side call's fixed text, the upstream's.

Knows canonical requests and the specification; no sockets, no clock, no wire. Its state only moves when a request
is placed (`decide`) and when a healthy answer is completely out (`answered`).
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from pytest_regcase.supplier.conversation import MainConversation
from pytest_regcase.supplier.prefix import (
    Difference,
    GivenReply,
    RecordedResult,
    departures,
    forgotten_steps,
    missing_tools,
    no_longer_shown,
    other_results,
    other_tools,
)
from pytest_regcase.supplier.protocol import Call, ModelRequest, call_from_line
from pytest_regcase.supplier.spec import Line, SupplierSpec

SIDE_TEXT = "OK"
"""What every side call is answered with."""

Phase = Literal["before", "faulted", "after"]


class DueReply(NamedTuple):
    """A reply as recorded, or the closing one."""

    origin: Literal["replay", "script", "filler"]
    text: str | None
    calls: tuple[Call, ...] = ()
    finish: str | None = None
    results: tuple[RecordedResult, ...] = ()
    offered: tuple[str, ...] = ()
    """The tools that the recorded request offered, where that is recorded."""


class Due(NamedTuple):
    """What one request gets, and what is to be noted about it."""

    step: int
    phase: Phase
    reply: DueReply | None = None
    """None: the fault or the upstream answers."""
    faulted: int = 0
    """Which faulted request it is, from 1; 0: none."""
    side_call: bool = False
    off_prefix: tuple[str, ...] = ()
    differs: tuple[Difference, ...] = ()
    reaches_control: bool = False
    """Once answered: the agent has come as far as a healthy run is followed."""
    from_after_fault: bool = False


class ReplyBook:
    """Decides, request by request. Step = complete replies given in the main conversation + 1."""

    def __init__(self, spec: SupplierSpec) -> None:
        self._spec = spec
        self._live = spec.pass_through is not None
        self._recorded = read_replies(spec.lines, "replay" if spec.lines_from == "replay" else "script", "call")
        self._after = read_replies(spec.after_fault, "script", "call_after")
        closing = spec.closing_reply
        self._closing = DueReply(
            "filler",
            closing.text,
            tuple(call_from_line(each, f"call_closing_{n}") for n, each in enumerate(closing.tool_calls)),
        )
        self._failing = resolve_failing_step(spec.failing_step, len(self._recorded), live=self._live)
        tools = frozenset(call.name for each in self._recorded for call in each.calls)
        self._main = MainConversation(tools, spec.task_text, recorded_only=not self._live)
        self._tools = tools
        self._given: list[GivenReply] = []
        self._steps_given = 0
        self._after_given = 0
        self._main_requests = 0
        self._faulted = 0
        self._healed = False
        self._off: tuple[str, ...] = ()
        self._last_answer: tuple[str, Due] | None = None

    @property
    def phase(self) -> Phase:
        """Say how the next main request that is not faulted would be labelled."""
        return "before" if self._faulted == 0 else "after"

    def decide(self, request: ModelRequest, conversation: str, *, client_retry: int | None = None) -> Due:
        """Place one request. `conversation` is the digest of its messages."""
        step = self._steps_given + 1
        needed = self._needed(step)
        alone = self._spec.one_conversation
        place = "main" if alone else self._main.place(request, needed, faulted=self._faulted > 0)
        if place == "side":
            # A recorded tool that nobody offers is seen only here; `wire_facts` counts it where none is main.
            off = missing_tools(request, step, needed or self._tools) if self._unfound else ()
            reply = None if self._live else DueReply("filler", SIDE_TEXT)
            return Due(step, self.phase, reply, side_call=True, off_prefix=off)
        if place == "new-main" and self._faulted == 0:
            self._given, self._steps_given, step = [], 0, 1
            needed = self._needed(step)
        self._main_requests += 1
        repeated = self._repeats(conversation, client_retry)
        if repeated is not None:
            return repeated
        off, differs = self._check(request, step, needed)
        if self._fault_is_due(step) and not off:
            self._faulted += 1
            return Due(step, "faulted", faulted=self._faulted, differs=differs)
        reply, after_fault = (None, False) if self._live else self._reply_at(step, off)
        reached = reply is not None and not off and self._reaches_control(step)
        return Due(step, self.phase, reply, 0, False, off, differs, reached, after_fault)

    def answered(self, due: Due, conversation: str, reply: DueReply | None = None) -> None:
        """Note that a healthy answer is completely out. `reply` is the upstream's, where it gave one."""
        given = reply or due.reply
        if due.side_call or given is None:
            return
        if due.step > self._steps_given:
            self._steps_given = due.step
            if given.calls:
                self._given.append(GivenReply(due.step, given.calls, given.results))
            self._after_given += due.from_after_fault
        self._last_answer = (conversation, due)

    @property
    def _unfound(self) -> bool:
        return not self._live and not self._main.found

    def _needed(self, step: int) -> frozenset[str]:
        if self._live or step > len(self._recorded):
            return frozenset()
        return frozenset(call.name for call in self._recorded[step - 1].calls)

    def _repeats(self, conversation: str, client_retry: int | None) -> Due | None:
        """Return the answer again that the client lost: a retry stays on its step."""
        if self._last_answer is None or self._live:
            return None
        digest, due = self._last_answer
        must_echo = due.reply is not None and due.reply.calls
        if digest == conversation and (client_retry or must_echo):
            again = Difference("asked-again", f"step {due.step} was asked for again")
            return due._replace(phase=self.phase, differs=(*due.differs, again))
        return None

    def _check(
        self, request: ModelRequest, step: int, needed: frozenset[str]
    ) -> tuple[tuple[str, ...], tuple[Difference, ...]]:
        """Return what puts the agent off the prefix, and what only differs.

        Once off, always off. After the first faulted request nothing is a departure any more: how an agent picks
        up again is what the judge looks at. Nor is it behind the last step that is followed at all.
        """
        if self._live:
            return (), ()
        if self._off or step > max(self._failing, len(self._recorded) + 1):
            return self._off, ()
        found = missing_tools(request, step, needed) + departures(request, self._given)
        offered = self._recorded[step - 1].offered if step <= len(self._recorded) else ()
        gone = frozenset(forgotten_steps(request, self._given))
        # Told once: where an agent shows the end of a long conversation only, it would be told by every request.
        self._given = [each for each in self._given if each.step not in gone]
        forgotten = tuple(no_longer_shown(each) for each in sorted(gone))
        differs = other_tools(request, offered) + forgotten + other_results(request, self._given)
        if self._faulted:
            says = (*found, *(each.says for each in differs))
            return (), tuple(Difference("not-followed", each) for each in says)
        self._off = found
        return found, differs

    def _fault_is_due(self, step: int) -> bool:
        fault = self._spec.fault
        if fault is None or self._healed:
            return False
        reached = (fault.at_step is not None and step >= fault.at_step) or (
            fault.at_request is not None and self._main_requests >= fault.at_request
        )
        if reached and fault.lasts is not None and self._faulted >= fault.lasts:
            self._healed = True
            return False
        return reached

    def _reply_at(self, step: int, off: tuple[str, ...]) -> tuple[DueReply, bool]:
        """Return the healthy reply that is due, and whether it is one of those that follow the fault."""
        if off:
            return self._closing, False
        if self._healed and self._after:
            more = self._after_given < len(self._after)
            return (self._after[self._after_given], True) if more else (self._closing, False)
        return (self._recorded[step - 1] if step <= len(self._recorded) else self._closing), False

    def _reaches_control(self, step: int) -> bool:
        last = len(self._recorded)
        reached = step >= self._failing if step > last else step == last and self._failing <= last
        return reached and self._spec.fault is None


def resolve_failing_step(failing_step: int | None, recorded_replies: int, *, live: bool = False) -> int:
    """Return the step at which a fault "at the failing step" is injected, and at which a control is done.

    The recorded one; else the first without a recorded reply. Where nothing is recorded and nothing is passed
    through, the first request is met, whatever the trial's own count was.
    """
    if recorded_replies == 0 and not live:
        return 1
    return failing_step if failing_step is not None else recorded_replies + 1


def steps_followed(spec: SupplierSpec) -> tuple[int | None, int]:
    """Return the highest step with a recorded reply (None: nothing is recorded) and the failing step.

    What `wire_facts` takes as `last_step` and `failing_step`.
    """
    count = count_replies(spec.lines)
    return count or None, resolve_failing_step(spec.failing_step, count, live=spec.pass_through is not None)


def count_replies(lines: Sequence[Line]) -> int:
    """Return how many complete replies `lines` hold; a failed model call is none."""
    return sum(1 for line in lines if _is_reply(line))


def read_replies(lines: Sequence[Line], origin: Literal["replay", "script"], id_stem: str) -> tuple[DueReply, ...]:
    """Return the complete replies in order, each with the tool results that follow it.

    A call without a recorded id gets one: clients cannot answer a call that has none.
    """
    replies: list[DueReply] = []
    for line in lines:
        if _is_reply(line):
            step = len(replies) + 1
            calls = tuple(
                call_from_line(each, f"{id_stem}_{step}_{n}")
                for n, each in enumerate(line.get("tool_calls") or ())
            )
            offered = tuple(line.get("offered_tools") or ())
            replies.append(DueReply(origin, line.get("text"), calls, line.get("finish"), offered=offered))
        elif line.get("role") == "tool" and replies:
            texts = tuple(each for each in (line.get("raw_output"), line.get("text")) if each)
            result = RecordedResult(line.get("tool_call_id"), texts)
            replies[-1] = replies[-1]._replace(results=(*replies[-1].results, result))
    return tuple(replies)


def _is_reply(line: Line) -> bool:
    return line.get("role") == "assistant" and line.get("error") is None and line.get("step") != 0
