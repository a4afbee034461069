"""The shapes that wires and faults are written against; a third party needs this module alone.

The child process imports it: standard library only, so the records (pydantic) are named for type checkers and
imported by a fault's `declares` when the parent calls it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable


@dataclass(frozen=True)
class Call:
    """A tool call, the same on every wire. `arguments` is JSON text, not checked."""

    id: str | None
    name: str
    arguments: str = "{}"


@dataclass(frozen=True)
class Message:
    """One message of a request, the same on every wire."""

    role: str
    text: str
    tool_calls: tuple[Call, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True)
class HttpRequest:
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


@dataclass(frozen=True)
class ModelRequest:
    """A request for a model reply, read."""

    wire: str
    model: str
    streaming: bool
    messages: tuple[Message, ...]
    tools: tuple[str, ...] = ()
    """Names of the tools that it offers."""
    usage_asked: bool = False
    """In a stream: whether the client asked for the usage chunk."""


@dataclass(frozen=True)
class Refusal:
    """A request that the real API would refuse; never counted as a model request."""

    status: int
    slug: str
    message: str | None = None


@dataclass(frozen=True)
class PlainAnswer:
    """A request that wants no model reply (a list of models); answered with this JSON."""

    body: bytes
    status: int = 200


@dataclass(frozen=True)
class Reply:
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


@dataclass(frozen=True)
class UpstreamReply:
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

    def parse(self, request: HttpRequest) -> ModelRequest | Refusal | PlainAnswer:
        """Read a request for one of `paths`, without raising."""
        ...

    def render(self, reply: Reply, streaming: bool) -> Iterator[bytes]:
        """Yield the body: one JSON document, or the events of a stream one by one."""
        ...

    def render_error(self, status: int, slug: str, message: str | None = None) -> bytes:
        """Return the JSON body of an error as the real API words it; `message` replaces its text."""
        ...

    def read_answer(self, body: bytes, streaming: bool) -> UpstreamReply:
        """Read what an upstream answered; half an answer too, without raising."""
        ...

    def key_headers(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return the headers that carry `key` to an upstream."""
        ...


class Exchange(Protocol):
    """One faulted request, in the hands of a fault. Every byte that goes out is recorded."""

    wire: Wire
    request: ModelRequest
    number: int
    """Which faulted request this is, from 1."""

    async def hold(self) -> None:
        """Send nothing and return once the client let go (or the supplier is stopped)."""
        ...

    async def send(
        self, data: bytes, *, status: int | None = None, complete: bool = False, text: str | None = None
    ) -> None:
        """Send raw bytes.

        `complete` claims that a whole HTTP answer is out with them; `text` is the model text in it, if any.
        """
        ...

    async def send_error(self, status: int, slug: str, message: str | None = None) -> None:
        """Answer with the wire's error body."""
        ...

    async def send_reply(self, text: str | None, *, finish: str = "stop") -> None:
        """Answer as a healthy server would, streaming where that was asked for."""
        ...

    def close(self, how: Literal["fin", "rst"]) -> None:
        """End the connection from our side."""
        ...

    def kill_process(self) -> None:
        """SIGKILL the supplier itself: the listener and every connection go at once. Does not return."""
        ...


class Fault(Protocol):
    """One kind of fault. Instantiated with an instance of `settings_model`."""

    kind: ClassVar[str]
    settings_model: ClassVar[type[Any]]
    """A frozen dataclass of the standard library; the parent checks values against its annotations."""

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
