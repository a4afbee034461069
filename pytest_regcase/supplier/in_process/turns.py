"""One call of a supplier after the other, recorded as a wire log records requests: no bytes, the same facts.

Knows the book that decides which answer is due, and the events; nothing of callables, streams or exceptions.
"""

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pytest_regcase.records.wire import WireEvent
from pytest_regcase.supplier.conversation_digest import ConversationDigests
from pytest_regcase.supplier.protocol import ModelRequest, UpstreamReply
from pytest_regcase.supplier.replies import Due, DueReply, ReplyBook
from pytest_regcase.supplier.spec import SupplierSpec
from pytest_regcase.supplier.wire_log import WireLog

CHANNEL = "in-process"


class Turns:
    """All calls of one supplier. Calls may come from several threads."""

    def __init__(self, spec: SupplierSpec, wire_log: Path | None) -> None:
        self._book = ReplyBook(spec)
        self._fault_kind = spec.fault.kind if spec.fault is not None else None
        self._t0 = time.monotonic()
        self._file = WireLog(wire_log, self._t0) if wire_log is not None else None
        self._events: list[WireEvent] = []
        self._calls = 0
        self._digests = ConversationDigests()
        self._lock = threading.Lock()

    @property
    def events(self) -> tuple[WireEvent, ...]:
        """What happened so far."""
        with self._lock:
            return tuple(self._events)

    def now(self) -> float:
        """Return the seconds since the first of all."""
        return round(time.monotonic() - self._t0, 4)

    def begin(self, request: ModelRequest, *, streaming: bool) -> "Turn":
        """Place one call, and record it."""
        with self._lock:
            conversation = self._digests.of(request.messages)
            due = self._book.decide(request, conversation)
            self._calls += 1
            number = self._calls
            turn = Turn(self, number, due, conversation)
            turn.t = self._write(
                "request",
                conn=number,
                request=number,
                step=due.step,
                wire=request.wire,
                streaming=streaming,
                conversation=conversation,
                side_call=due.side_call,
                phase=due.phase,
            )
        return turn

    def write(self, event: str, **facts: Any) -> None:
        """Record one event."""
        with self._lock:
            self._write(event, **facts)

    def answered(self, turn: "Turn", said: UpstreamReply) -> None:
        """Count a whole reply of the supplier's own: the next step begins."""
        with self._lock:
            reply = DueReply("replay", said.text, said.tool_calls, said.finish)
            self._book.answered(turn.due, turn.conversation, reply)

    @property
    def fault_kind(self) -> str | None:
        """The kind of the fault that is injected."""
        return self._fault_kind

    def _write(self, event: str, **facts: Any) -> float:
        known = {key: value for key, value in facts.items() if value is not None}
        t = self.now()
        self._events.append({"t": t, "event": event, "channel": CHANNEL, **known})
        if self._file is not None:
            self._file.write(event, t=t, channel=CHANNEL, **known)
        return t


class Turn:
    """One call, from the request to its end. Each of the methods that end it is called at most once."""

    def __init__(self, turns: Turns, number: int, due: Due, conversation: str) -> None:
        self.due = due
        self.conversation = conversation
        self.t = 0.0
        self._turns = turns
        self._about = {"conn": number, "request": number, "step": due.step}
        self._first: float | None = None

    def hands_over(self) -> None:
        """Note that a part is handed over now."""
        self._first = self._first if self._first is not None else self._turns.now()

    def answered(self, said: UpstreamReply, *, parts: int = 1, late: bool = False) -> None:
        """Record a whole answer of the supplier's own; a `late` one is what the fault made of it, and no reply."""
        self._sent("fault" if late else "upstream", said, complete=True, parts=parts)
        if not late:
            self._turns.answered(self, said)
        self._closed("us")

    def broke_off(self, said: UpstreamReply, *, parts: int = 0, failure: str | None = None) -> None:
        """Record an answer of the supplier's own that failed, or that the caller did not take to its end."""
        if parts or failure is not None:
            self._sent("upstream", said, complete=False, parts=parts, failure=failure)
        self._closed("peer" if failure is None else "us")

    def faulted(
        self,
        said: UpstreamReply | None,
        *,
        complete: bool = False,
        parts: int = 0,
        by: Literal["peer", "us"] = "us",
    ) -> None:
        """Record what the fault handed over, if anything, and who let go."""
        if said is not None and (complete or parts):
            self._sent("fault", said, complete=complete, parts=parts, unfinished=bool(parts) or None)
        self._closed(by)

    def _sent(
        self,
        origin: str,
        said: UpstreamReply,
        *,
        complete: bool,
        parts: int,
        failure: str | None = None,
        unfinished: bool | None = None,
    ) -> None:
        calls: Sequence[dict[str, Any]] = [
            {"id": each.id, "name": each.name, "arguments": each.arguments} for each in said.tool_calls
        ]
        self._turns.write(
            "sent",
            **self._about,
            **{"from": origin},
            fault_kind=self._turns.fault_kind if origin == "fault" else None,
            complete=complete,
            unfinished=unfinished,
            parts=parts,
            first_byte=self._first if self._first is not None else self._turns.now(),
            text=said.text,
            tool_calls=calls or None,
            failure=failure,
        )

    def _closed(self, by: Literal["peer", "us"]) -> None:
        held = round(self._turns.now() - self.t, 4) if by == "peer" else None
        # Nothing can be lost on the way: what was handed over has arrived.
        self._turns.write("closed", **self._about, by=by, held_seconds=held, unacknowledged=0)
