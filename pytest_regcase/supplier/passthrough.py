"""Hand a request on to the real supplier and its answer back, uncut, noting what failed in words.

Knows HTTP clients (asyncio streams, h11). The key comes from this process's own environment, replaces whatever the
agent sent, and is neither logged nor handed back. Standard library and h11 only.
"""

import asyncio
import errno
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import h11

from pytest_regcase.supplier.answer import Answer
from pytest_regcase.supplier.connection import ClientConnection
from pytest_regcase.supplier.protocol import Call, HttpRequest, PeerGone, UpstreamReply, Wire
from pytest_regcase.supplier.spec import PassThrough

_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding")
) | {"upgrade", "content-length", "host", "expect", "accept-encoding"}
_KEYS = frozenset(("authorization", "x-api-key", "api-key", "openai-organization", "openai-project", "cookie"))
_MAX_READ_BACK_BYTES = 32 * 1024 * 1024
"""Of an answer, so much is kept to read text and calls from; all of it is handed on."""


@dataclass
class _Outcome:
    """What came back, as far as it came."""

    status: int | None = None
    streaming: bool = False
    body: bytearray = field(default_factory=bytearray)
    ended: bool = False
    failure: str | None = None


class Upstream:
    """The real supplier. One connection a request, so that one failure never spoils the next request."""

    def __init__(self, base_url: str, key_headers: tuple[tuple[str, str], ...]) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"the upstream's base_url {base_url!r} is no http or https URL")
        self._tls = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or (443 if self._tls else 80)
        self._netloc = parts.netloc.rpartition("@")[2]
        self._path = parts.path.rstrip("/")
        self._key_headers = key_headers

    async def forward(
        self, connection: ClientConnection, answer: Answer, wire: Wire, request: HttpRequest, *, for_reply: bool
    ) -> UpstreamReply | None:
        """Pass one request through; return the model reply when a complete, healthy one went out.

        `for_reply`: whether it asks for one at all; a list of models fails no trial.

        A stall is left to the agent's own time-out: we wait as long as the agent does. A failure to reach the
        upstream is answered with 502, since the agent has to see something.
        """
        outcome = _Outcome()
        pending = asyncio.ensure_future(self._pass_on(answer, request, outcome))
        gone = asyncio.ensure_future(connection.gone.wait())
        await asyncio.wait((pending, gone), return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        if not pending.done():
            pending.cancel()
            what = "had not answered" if outcome.status is None else "had not finished its answer"
            outcome.failure = f"the upstream {what} when the agent let go"
        try:
            await pending
        except asyncio.CancelledError:
            pass
        except PeerGone:
            outcome.failure = "the agent let go while the upstream answered"
        except (OSError, ssl.SSLError, h11.RemoteProtocolError, asyncio.IncompleteReadError) as error:
            outcome.failure = _in_words(error, outcome)
            if answer.bytes_sent == 0:
                body = wire.render_error(502, "upstream_failed", outcome.failure)
                await answer.send_json(502, body)
        if not for_reply:
            answer.record("upstream")
            return None
        return _record(answer, wire, outcome)

    async def _pass_on(self, answer: Answer, request: HttpRequest, outcome: _Outcome) -> None:
        context = ssl.create_default_context() if self._tls else None
        reader, writer = await asyncio.open_connection(
            self._host, self._port, ssl=context, server_hostname=self._host if self._tls else None
        )
        try:
            client = h11.Connection(h11.CLIENT)
            writer.write(client.send(self._head(request)) or b"")
            if request.body:
                writer.write(client.send(h11.Data(data=request.body)) or b"")
            writer.write(client.send(h11.EndOfMessage()) or b"")
            await writer.drain()
            while not outcome.ended:
                await self._take(client, reader, answer, outcome)
        finally:
            writer.close()

    def _head(self, request: HttpRequest) -> h11.Request:
        # Our base URL ends in /v1 and stands for the upstream's whole base URL.
        path = self._path + request.path.removeprefix("/v1")
        target = f"{path}?{request.query}" if request.query else path
        kept = [(name, value) for name, value in request.headers if name not in _HOP_BY_HOP | _KEYS]
        # Nothing compressed: the text that is recorded must be read without further libraries.
        own = [
            ("host", self._netloc),
            ("connection", "close"),
            ("accept-encoding", "identity"),
            *self._key_headers,
        ]
        if request.body or request.method in ("POST", "PUT", "PATCH"):
            own.append(("content-length", str(len(request.body))))
        return h11.Request(method=request.method, target=target, headers=own + kept)

    def _holds_key(self, value: str) -> bool:
        # "Bearer KEY" on some wires, the key alone on others.
        return any(header.rpartition(" ")[2] in value for _, header in self._key_headers)

    async def _take(
        self, client: h11.Connection, reader: asyncio.StreamReader, answer: Answer, outcome: _Outcome
    ) -> None:
        event = client.next_event()
        if event is h11.NEED_DATA:
            client.receive_data(await reader.read(65536))
        elif isinstance(event, h11.Response):
            outcome.status = event.status_code
            headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers]
            types = [value for name, value in headers if name == "content-type"]
            lengths = [int(value) for name, value in headers if name == "content-length"]
            outcome.streaming = any(each.startswith("text/event-stream") for each in types)
            kept = [
                (name, value)
                for name, value in headers
                if name not in _HOP_BY_HOP | {"content-type", "set-cookie"} and not self._holds_key(value)
            ]
            await answer.start(
                event.status_code, next(iter(types), None), length=next(iter(lengths), None), headers=kept
            )
        elif isinstance(event, h11.Data):
            if len(outcome.body) < _MAX_READ_BACK_BYTES:
                outcome.body += event.data
            await answer.piece(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage):
            await answer.finish()
            outcome.ended = True
        elif isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
            raise h11.RemoteProtocolError("the connection ended before an answer")


def upstream_of(through: PassThrough, wires: Sequence[Wire], key: str | None) -> Upstream:
    """Return the upstream that is configured.

    Its base URL is written as that API's clients take it, so with ``/v1`` or without; ours ends in it.

    Raises:
        ValueError: none of `wires` is the upstream's.
    """
    wire = next((each for each in wires if each.name == through.wire), None)
    if wire is None:
        spoken = ", ".join(each.name for each in wires)
        raise ValueError(f"nothing here speaks the upstream's wire {through.wire!r} (spoken: {spoken})")
    base_url = through.base_url.rstrip("/")
    if wire.clients_add_version and not base_url.endswith("/v1"):
        base_url += "/v1"
    return Upstream(base_url, wire.key_headers(key) if key else ())


def _record(answer: Answer, wire: Wire, outcome: _Outcome) -> UpstreamReply | None:
    reply = wire.read_answer(bytes(outcome.body), outcome.streaming)
    failure = outcome.failure
    if failure is None and outcome.status is not None and outcome.status >= 400:
        failure = f"the upstream answered {outcome.status}" + (f" ({reply.error})" if reply.error else "")
    elif failure is None and reply.error:
        failure = f"the upstream answered {outcome.status} with an error in it ({reply.error})"
    elif failure is None and not reply.has_choice:
        failure = f"the upstream answered {outcome.status} without a choice"
    elif failure is None and outcome.streaming and reply.finish is None:
        failure = "the upstream's stream ended without a finish reason"
    calls: tuple[Call, ...] = reply.tool_calls
    if failure is not None and not reply.has_choice:
        answer.record("upstream", upstream_id=reply.id, failure=failure)
        return None
    text = "" if reply.text is None and not calls else reply.text
    unfinished = True if failure is not None else None
    answer.record(
        "upstream", text=text, tool_calls=calls, upstream_id=reply.id, failure=failure, unfinished=unfinished
    )
    return None if failure is not None else reply


def _in_words(error: Exception, outcome: _Outcome) -> str:
    if isinstance(error, ssl.SSLError):
        return f"the upstream's TLS failed ({error.reason or type(error).__name__})"
    # A name with several addresses: asyncio joins what each of them said into one text.
    if isinstance(error, ConnectionRefusedError) or f"[Errno {errno.ECONNREFUSED}]" in str(error):
        return "the upstream refused the connection"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "the upstream reset the connection"
    if isinstance(error, h11.RemoteProtocolError):
        where = "before it answered" if outcome.status is None else "in the middle of its answer"
        return f"the upstream closed the connection {where}"
    if isinstance(error, TimeoutError):
        return "the connection to the upstream timed out"
    return f"the upstream could not be reached ({type(error).__name__})"
