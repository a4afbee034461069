"""The shapes that wires and faults are written against; a third party needs this module alone.

The child process imports it: standard library only, so the records (pydantic) are named for type checkers and
imported by a fault's `declares` when the parent calls it. What is made for every message of every request is a
named tuple: a frozen dataclass costs five times as much, to define (start-up) and to fill.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable


Headers = Iterable[tuple[str, str]]
"""Header lines to send, in order."""


class PeerGone(Exception):
    """The client is not there any more, so nothing can be sent."""


class Call(NamedTuple):
    """A tool call, the same on every wire. `arguments` is JSON text, not checked."""

    id: str | None
    name: str
    arguments: str = "{}"


class Message(NamedTuple):
    """One message of a request, the same on every wire."""

    role: str
    text: str
    tool_calls: tuple[Call, ...] = ()
    tool_call_id: str | None = None
    stands_for: str | None = None
    """Id of an earlier reply that the request names here instead of repeating what it said."""


class HttpRequest(NamedTuple):
    """A whole request as it came in, the token taken out of its path."""

    method: str
    path: str
    """Without token and query, such as ``/v1/chat/completions``."""
    query: str
    headers: tuple[tuple[str, str], ...]
    """Names in lower case."""
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the first header of that (lower case) name."""
        return next((value for key, value in self.headers if key == name), None)


class ModelRequest(NamedTuple):
    """A request for a model reply, read."""

    wire: str
    model: str
    streaming: bool
    messages: tuple[Message, ...]
    tools: tuple[str, ...] = ()
    """Names of the tools that it offers."""
    usage_asked: bool = False
    """In a stream: whether the client asked for the usage chunk."""
    continues: str | None = None
    """Id of an earlier reply whose whole conversation stands before `messages`."""
    kept: bool = False
    """Whether the API keeps the reply, so that a later request may name it."""


class Refusal(NamedTuple):
    """A request that the real API would refuse; never counted as a model request."""

    status: int
    slug: str
    message: str | None = None


class PlainAnswer(NamedTuple):
    """A request that wants no model reply (a list of models); answered with this JSON."""

    body: bytes
    status: int = 200


class Reply(NamedTuple):
    """A model reply, the same on every wire."""

    id: str
    model: str
    created: int
    text: str | None
    tool_calls: tuple[Call, ...] = ()
    """Every call has an id here."""
    finish: str | None = None
    usage_asked: bool = False
    prompt_tokens: int = 1
    """A rough count; the recorded usage is not replayed, since harnesses stop at a cost limit computed from it."""


class UpstreamReply(NamedTuple):
    """What an answer of the real supplier says, as far as it can be read."""

    id: str | None = None
    text: str | None = None
    tool_calls: tuple[Call, ...] = ()
    finish: str | None = None
    has_choice: bool = False
    error: str | None = None
    """Type or code of an error in the body; never its message, which may quote a key."""


class Wire(Protocol):
    """One model protocol: reads requests, renders replies and errors. Instantiated without arguments."""

    name: ClassVar[str]
    paths: ClassVar[tuple[str, ...]]
    """Below the token; a last ``/*`` stands for one more part."""
    marked_by: ClassVar[tuple[str, ...]]
    """Headers (lower case) of this wire's clients alone: what says whose a request is where wires share a path.

    Of the wires that share one, at most one has none; what carries no other wire's mark is its own.
    """
    reply_id_prefix: ClassVar[str]
    """What the ids of its replies begin with, such as ``chatcmpl-``."""
    request_id_header: ClassVar[str]
    """The response header that holds the request's id; the SDKs read it from there."""
    clients_add_version: ClassVar[bool]
    """Whether its clients add ``/v1`` to their base URL themselves."""

    def parse(self, request: HttpRequest) -> ModelRequest | Refusal | PlainAnswer:
        """Read a request for one of `paths`, without raising."""
        ...

    def render(self, reply: Reply, streaming: bool) -> Iterator[bytes]:
        """Yield the body: one JSON document, or the events of a stream one by one."""
        ...

    def render_unfinished(self, reply: Reply) -> Iterator[bytes]:
        """Yield the events of a stream up to the last of its content, and nothing that marks its end."""
        ...

    def render_error(
        self, status: int, slug: str, message: str | None = None, *, request_id: str | None = None
    ) -> bytes:
        """Return the JSON body of an error as the real API words it; `message` replaces its text.

        `request_id` is the one of the answer's header, for APIs that repeat it in the body.
        """
        ...

    def render_error_event(self, status: int, slug: str, message: str | None = None) -> bytes:
        """Return the frame by which the API says, inside a stream that began with 200, that it failed.

        `status` is what the error would have had outside of a stream.
        """
        ...

    def read_answer(self, body: bytes, streaming: bool) -> UpstreamReply:
        """Read what an upstream answered; half an answer too, without raising."""
        ...

    def key_headers(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return the headers that carry `key` to an upstream."""
        ...


class Exchange(Protocol):
    """One faulted request, in the hands of a fault. Every byte that goes out is recorded.

    Whatever sends raises `PeerGone` where the client is not there any more; a fault lets it pass. A fault that
    returns before a whole answer is out ends the connection with FIN.
    """

    wire: Wire
    request: ModelRequest
    number: int
    """Which faulted request this is, from 1."""

    async def hold(self) -> None:
        """Send nothing more and return once the client let go (or the supplier is stopped)."""
        ...

    async def wait(self, seconds: float) -> bool:
        """Send nothing for so long, by the agent's clock; False as soon as the client lets go."""
        ...

    def now(self) -> float:
        """Return the agent's wall clock, in seconds since the epoch, which may run faster than ours."""
        ...

    async def send(
        self, data: bytes, *, status: int | None = None, complete: bool = False, text: str | None = None
    ) -> None:
        """Send raw bytes, head included.

        `complete` claims that a whole HTTP answer is out with them; `text` is the model text in it, if any.
        """
        ...

    async def send_head(
        self,
        status: int = 200,
        headers: Headers = (),
        *,
        content_type: str | None = "application/json",
        length: int | None = None,
    ) -> None:
        """Send the head of an API's answer, the request's id in it; without a `length` the body is chunked."""
        ...

    async def send_part(self, data: bytes) -> None:
        """Send a part of the body, framed as the head said."""
        ...

    async def end_body(self) -> None:
        """Say that the body is whole; the HTTP answer is complete."""
        ...

    async def send_body(
        self,
        status: int,
        body: bytes,
        content_type: str | None = "application/json",
        headers: Headers = (),
        *,
        text: str | None = None,
    ) -> None:
        """Answer with this body, whole; `text` is the model text in it, if any."""
        ...

    async def send_error(
        self, status: int, slug: str, message: str | None = None, *, headers: Headers = ()
    ) -> None:
        """Answer with the wire's error body."""
        ...

    async def send_reply(self, text: str | None, *, finish: str = "stop") -> None:
        """Answer as a healthy server would, streaming where that was asked for."""
        ...

    def rendered(self, text: str | None, *, finish: str = "stop") -> tuple[bytes, ...]:
        """Return the body that `send_reply` sends: the events of a stream, or one JSON document."""
        ...

    async def send_unfinished(self, text: str, *, seconds_a_byte: float = 0) -> None:
        """Send an answer that has begun and nothing of its end.

        In a stream: the events with the content, and none that marks the end; the HTTP answer may still be
        completed with `end_body`. Else: the length of the whole body and half of it. With `seconds_a_byte` the
        body goes out byte by byte, and this returns early where the client lets go.
        """
        ...

    async def send_error_event(self, status: int, slug: str, message: str | None = None) -> None:
        """Send the wire's error event in a stream, after its head where none is out yet, and the end of the body.

        Both in one write: clients let go of a stream as soon as they read an error.
        """
        ...

    async def close(self, how: Literal["fin", "rst"]) -> None:
        """End the connection from our side, once the client's kernel has what was sent."""
        ...

    def refuse_connections(self) -> None:
        """Close the listener for good, and idle connections with it: from now on connects are refused.

        An answer to this request can still be sent; its connection is not kept.
        """
        ...

    def kill_process(self, *, reset: bool = False) -> None:
        """SIGKILL the supplier itself: the listener and every connection go at once. Does not return.

        `reset`: this connection ends with RST, as the kernel does it where bytes of the request were unread.
        """
        ...

    def exhaust_memory(self) -> None:
        """Allocate until memory runs out, which ends the supplier. Does not return.

        In a memory cgroup of the supplier's own, where one can be made, the kernel kills it. Elsewhere a limit of
        its address space makes an allocation fail, and it ends itself; the log says which it was.
        """
        ...


class Fault(Protocol):
    """One kind of fault. Instantiated with an instance of `settings_model`."""

    kind: ClassVar[str]
    settings_model: ClassVar[type[Any]]
    """A frozen dataclass of the standard library; the parent checks values against its annotations.

    It may raise ValueError for a value that makes no sense, naming the setting and what is allowed.
    """

    def __init__(self, settings: Any) -> None: ...

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":
        """Say what the wire log must show for this fault to count as delivered. Called by the parent only."""
        ...

    async def inject(self, exchange: Exchange) -> None:
        """Do it. Never decide whether it worked: that is read from the wire log."""
        ...


@dataclass(frozen=True)
class NoSettings:
    """The settings of a fault that has none."""


def call_from_line(line: Mapping[str, Any], fallback_id: str) -> Call:
    """Return a call of a transcript line, with an id in any case: clients cannot answer a call without one."""
    return Call(line.get("id") or fallback_id, str(line.get("name", "")), str(line.get("arguments", "{}")))
