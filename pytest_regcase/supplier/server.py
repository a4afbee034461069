"""The supplier process: ``python -m pytest_regcase.supplier.server SPEC.json``.

Reads its specification, listens on the port that the parent holds, answers, and records. It talks to its parent in
JSON lines on stdout and takes ``proceed`` lines on stdin; when stdin ends, the parent is gone, and so is it.
Standard library, h11 and supplier modules only: no records, no pydantic (start-up time).
"""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import sys
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import h11

from pytest_regcase.supplier.agent_clock import AgentClock
from pytest_regcase.supplier.answer import Answer
from pytest_regcase.supplier.connection import BodyTooLarge, ClientConnection
from pytest_regcase.supplier.conversation_digest import ConversationDigests
from pytest_regcase.supplier.exchange import FaultExchange
from pytest_regcase.supplier.kept_replies import KeptReplies, as_it_came
from pytest_regcase.supplier.listening import Listening
from pytest_regcase.supplier.protocol import (
    Fault,
    HttpRequest,
    ModelRequest,
    PeerGone,
    PlainAnswer,
    Refusal,
    Reply,
    Wire,
)
from pytest_regcase.supplier.replies import Due, DueReply, ReplyBook
from pytest_regcase.supplier.routing import answering_wire, wire_of
from pytest_regcase.supplier.spec import FaultSpec, SupplierSpec
from pytest_regcase.supplier.wire_log import WireLog

if TYPE_CHECKING:
    from pytest_regcase.supplier.memory import MemoryLimit
    from pytest_regcase.supplier.passthrough import Upstream

_COUNT = re.compile("[0-9]{1,9}")


_text = attrgetter("text")


class Supplier:
    """Routes requests to replies, the fault or the upstream."""

    def __init__(self, spec: SupplierSpec) -> None:
        self._spec = spec
        self._log = WireLog(spec.wire_log, spec.t0)
        self._book = ReplyBook(spec)
        self._kept = KeptReplies()
        self._digests = ConversationDigests()
        self._wires: tuple[Wire, ...] = tuple(load_entry(each)() for each in spec.wires)
        self._fault = load_fault(spec.fault) if spec.fault is not None else None
        self._upstream = self._make_upstream()
        self._clock = AgentClock(spec.clock)
        self._listening = Listening(spec.addresses, spec.port, self._log, self._serve)
        self._requests = 0
        # Closed while the parent takes its notes at the first faulted request: nobody is answered meanwhile.
        self._gate = asyncio.Event()
        self._gate.set()
        self._control_said = False
        self._off_said = False

    def _make_upstream(self) -> "Upstream | None":
        through = self._spec.pass_through
        if through is None:
            return None
        # Here and not above: a supplier that replays starts faster without it.
        from pytest_regcase.supplier.passthrough import upstream_of

        key = os.environ.pop(through.api_key_env, None) if through.api_key_env else None
        return upstream_of(through, self._wires, key)

    # life

    async def run(self) -> None:
        """Listen until stdin ends, then record how every connection stood and leave."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        t = await self._listening.start()
        loop.add_reader(0, self._read_parent, ended)
        self.say("listening", t=t, port=self._spec.port)
        await ended.wait()
        loop.remove_reader(0)
        await self._listening.stop()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.wait(others, timeout=1) if others else None

    def say(self, what: str, **facts: Any) -> None:
        """Tell the parent, in one line."""
        line = {"say": what, "t": self._log.now(), **facts}
        # A parent that is gone closes our stdin too, which ends us.
        with contextlib.suppress(BrokenPipeError):
            os.write(1, json.dumps(line).encode() + b"\n")

    def _read_parent(self, ended: asyncio.Event) -> None:
        data = os.read(0, 4096)
        if not data:
            ended.set()
        elif b"proceed" in data:
            self._gate.set()

    async def _serve(self, connection: ClientConnection) -> None:
        try:
            while (request := await connection.read_request()) is not None:
                await self._handle(connection, request)
                if not connection.keep_alive:
                    await connection.finish()
                    break
        except PeerGone:
            pass
        except h11.RemoteProtocolError as error:
            await self._refuse_garbage(connection, Refusal(400, "bad_request", str(error)))
        except BodyTooLarge:
            await self._refuse_garbage(connection, Refusal(413, "too_large"))
        except Exception as error:
            traceback.print_exc()
            self.say("trouble", text=f"{type(error).__name__}: {error}")
        finally:
            connection.end()
            self._listening.forget(connection)

    # one request

    async def _handle(self, connection: ClientConnection, http: HttpRequest) -> None:
        self._requests += 1
        number = self._requests
        token, _, rest = http.path.lstrip("/").partition("/")
        connection.last_request = (number, None)
        if token != self._spec.token:
            # What stands there may be another supplier's token: not written down.
            self._log_request(connection, number, http, path=None)
            wire = answering_wire(self._wires, http)
            answer = self._answer(connection, wire, number, None)
            await self._refuse(answer, wire, Refusal(404, "unknown_url", "There is nothing here."))
            return
        http = HttpRequest(http.method, "/" + rest, http.query, http.headers, http.body)
        wire, parsed = self._read(http)
        if isinstance(parsed, ModelRequest):
            await self._handle_model_request(connection, number, http, wire, parsed)
            return
        answer = self._answer(connection, wire, number, None)
        self._log_request(connection, number, http, path=http.path, wire=wire.name)
        if self._upstream is not None:
            await self._upstream.forward(connection, answer, wire, http, for_reply=False)
        elif isinstance(parsed, Refusal):
            await self._refuse(answer, wire, parsed)
        else:
            await self._answer_plainly(answer, parsed)

    def _read(self, http: HttpRequest) -> tuple[Wire, ModelRequest | Refusal | PlainAnswer]:
        wire = wire_of(self._wires, http)
        if wire is None:
            refusal = Refusal(404, "unknown_url", f"Invalid URL ({http.method} {http.path})")
            return answering_wire(self._wires, http), refusal
        parsed = wire.parse(http)
        if not isinstance(parsed, ModelRequest):
            return wire, parsed
        whole = self._kept.whole(parsed)
        # The real supplier keeps its replies itself; what it does not know it refuses itself.
        return wire, as_it_came(parsed) if self._upstream is not None and isinstance(whole, Refusal) else whole

    async def _handle_model_request(
        self, connection: ClientConnection, number: int, http: HttpRequest, wire: Wire, request: ModelRequest
    ) -> None:
        conversation = self._digests.of(request.messages)
        retry = _number(http.header("x-stainless-retry-count"))
        due = self._book.decide(request, conversation, client_retry=retry)
        t = self._log_request(
            connection,
            number,
            http,
            path=http.path,
            wire=wire.name,
            step=due.step,
            streaming=request.streaming,
            conversation=conversation,
            side_call=due.side_call,
            client_retry=retry,
            phase=due.phase,
            off_prefix=list(due.off_prefix) or None,
            differs=[each._asdict() for each in due.differs] or None,
        )
        connection.last_request = (number, due.step)
        connection.open_request = (number, due.step, t)
        if due.off_prefix and not due.side_call and not self._off_said:
            self._off_said = True
            self.say("off-the-prefix", reasons=list(due.off_prefix))
        if due.faulted == 1:
            self._gate.clear()
            self.say("first-fault", t=t)
        if not self._gate.is_set():
            await self._pass_gate(connection)
        answer = self._answer(connection, wire, number, due.step)
        if due.faulted:
            # Only here, the notes being taken: what is done before must not count as hours of the agent's time.
            if (told := self._clock.start(connection, self._log)) is not None:
                self.say(**told)
            await self._inject(connection, answer, wire, request, due)
        elif due.reply is not None:
            await self._reply(answer, wire, request, due.reply)
            self._finish_healthy(due, conversation)
        elif self._upstream is not None:
            given = await self._upstream.forward(connection, answer, wire, http, for_reply=True)
            if given is not None:
                reply = DueReply("replay", given.text, given.tool_calls, given.finish)
                self._book.answered(due, conversation, reply)
                if given.id is not None:
                    self._kept.keep(given.id, request, given.text, given.tool_calls)
        if not answer.complete:
            # Nothing but the end of the connection says that no more of this answer comes.
            if not connection.gone.is_set():
                await connection.close("fin")
            raise PeerGone
        connection.open_request = None

    async def _pass_gate(self, connection: ClientConnection) -> None:
        """Wait until the parent has taken its notes; a client that lets go meanwhile gets nothing any more."""
        waiting = [asyncio.ensure_future(each.wait()) for each in (self._gate, connection.gone)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()
        # Asked of the kernel: both may have come at once, and what kills us leaves no later look.
        connection.check_peer()

    def _finish_healthy(self, due: Due, conversation: str) -> None:
        self._book.answered(due, conversation)
        if due.reaches_control and not self._control_said:
            self._control_said = True
            self.say("control-reached")

    async def _reply(self, answer: Answer, wire: Wire, request: ModelRequest, reply: DueReply) -> None:
        rendered = Reply(
            id=answer.reply_id,
            model=request.model,
            created=int(time.time()),
            text=reply.text,
            tool_calls=reply.calls,
            finish=reply.finish,
            usage_asked=request.usage_asked,
            prompt_tokens=sum(map(len, map(_text, request.messages))) // 4 + 1,
        )
        try:
            if request.streaming:
                await answer.send_events(wire.render(rendered, True))
            else:
                await answer.send_json(200, b"".join(wire.render(rendered, False)))
        finally:
            text = "" if reply.text is None and not reply.calls else reply.text
            answer.record(reply.origin, text=text, tool_calls=reply.calls)
        self._kept.keep(rendered.id, request, reply.text, reply.calls)

    async def _inject(
        self, connection: ClientConnection, answer: Answer, wire: Wire, request: ModelRequest, due: Due
    ) -> None:
        assert self._fault is not None
        # Whatever the fault answers under that id, a client may go on from it.
        self._kept.keep(answer.reply_id, request, None, ())
        exchange = FaultExchange(
            self,
            connection,
            answer,
            wire,
            request,
            clock=self._clock,
            kind=self._fault.kind,
            number=due.faulted,
            created=int(time.time()),
        )
        try:
            await self._fault.inject(exchange)
        finally:
            exchange.record()

    # what a fault does to the supplier as a whole

    def refuse_connections(self, asking: ClientConnection) -> None:
        """Close the listener and every idle connection but `asking`."""
        self._listening.refuse(asking)

    def memory_limited(self, limit: "MemoryLimit") -> None:
        """Record the limit. The parent must know the group: only it can read the counter after the end."""
        self._log.write("memory", limit=limit.by, bytes=limit.bytes)
        if limit.group is not None:
            self.say("memory-group", path=limit.group)

    def allocation_failed(self, error: str) -> None:
        """Record that an allocation failed, which no kernel kill can follow."""
        self._log.write("allocation-failed", says=error)

    # refusals and other plain answers

    async def _refuse(self, answer: Answer, wire: Wire, refusal: Refusal) -> None:
        try:
            body = wire.render_error(
                refusal.status, refusal.slug, refusal.message, request_id=answer.request_id_value
            )
            await answer.send_json(refusal.status, body)
        finally:
            answer.record("refusal")

    async def _answer_plainly(self, answer: Answer, plain: PlainAnswer) -> None:
        try:
            await answer.send_json(plain.status, plain.body)
        finally:
            answer.record("filler")

    async def _refuse_garbage(self, connection: ClientConnection, refusal: Refusal) -> None:
        self._requests += 1
        connection.keep_alive = False
        connection.last_request = (self._requests, None)
        self._log.write("request", conn=connection.number, request=self._requests, body_bytes=0)
        wire = answering_wire(self._wires)
        answer = self._answer(connection, wire, self._requests, None)
        with contextlib.suppress(PeerGone):
            await self._refuse(answer, wire, refusal)
            await connection.finish()

    def _answer(self, connection: ClientConnection, wire: Wire, number: int, step: int | None) -> Answer:
        return Answer(
            connection,
            self._log,
            request=number,
            step=step,
            reply_id=f"{wire.reply_id_prefix}regcase{number:06d}",
            request_id_header=wire.request_id_header,
        )

    def _log_request(
        self, connection: ClientConnection, number: int, http: HttpRequest, *, path: str | None, **facts: Any
    ) -> float:
        return self._log.write(
            "request",
            conn=connection.number,
            request=number,
            path=path,
            body_bytes=len(http.body),
            body_digest="sha256:" + hashlib.sha256(http.body).hexdigest(),
            **facts,
        )


def load_entry(entry: str) -> Any:
    """Return what ``module:attribute`` names.

    Raises:
        ImportError, AttributeError: there is no such thing.
    """
    module, _, attribute = entry.partition(":")
    return getattr(import_module(module), attribute)


def load_fault(spec: FaultSpec) -> Fault:
    """Return the fault that `spec` names, with its settings."""
    cls = load_entry(spec.entry)
    fault: Fault = cls(cls.settings_model(**spec.settings))
    return fault


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and _COUNT.fullmatch(text) else None


def main(arguments: Sequence[str]) -> None:
    """Run one supplier as its specification file says."""
    with open(arguments[0], encoding="utf-8") as file:
        spec = SupplierSpec.from_json(file.read())
    asyncio.new_event_loop().run_until_complete(Supplier(spec).run())
    # A name look-up of the upstream may still hang in a thread; nothing of ours is buffered.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
