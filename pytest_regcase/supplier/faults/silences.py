"""Faults by which an answer does not come, or never comes to its end, while the connection stays up.

Standard library only.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_regcase.supplier.protocol import Exchange, NoSettings

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable

BEGUN_TEXT = "The failing test points at the way the second argument is handled, so I will"
"""What a model has said when its answer breaks off. Long enough to be known again in an agent's output."""
_EVENT_STREAM = "text/event-stream; charset=utf-8"
_PROMISED_BYTES = 1024


@dataclass(frozen=True)
class BegunSettings:
    """How far an answer comes before it breaks off."""

    text: str = BEGUN_TEXT


class NoAnswer:
    """No byte, and the connection stays up until the client lets go."""

    kind: ClassVar[str] = "no_answer"
    settings_model: ClassVar[type[Any]] = NoSettings

    def __init__(self, settings: NoSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: no answer, then held."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="none", then="held")

    async def inject(self, exchange: Exchange) -> None:
        """Hold the connection in silence."""
        await exchange.hold()


class HeadersThenSilence:
    """Status line and headers of a good answer, and no byte of its body."""

    kind: ClassVar[str] = "headers_then_silence"
    settings_model: ClassVar[type[Any]] = NoSettings

    def __init__(self, settings: NoSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a 200 head alone, then held."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="partial", status=200, then="held", body="none")

    async def inject(self, exchange: Exchange) -> None:
        """Send the head that goes with what was asked for, and hold."""
        if exchange.request.streaming:
            await exchange.send_head(content_type=_EVENT_STREAM)
        else:
            await exchange.send_head(length=_PROMISED_BYTES)
        await exchange.hold()


class MidStreamStall:
    """The beginning of an answer, then silence. Client libraries do not retry once headers are accepted."""

    kind: ClassVar[str] = "mid_stream_stall"
    settings_model: ClassVar[type[Any]] = BegunSettings

    def __init__(self, settings: BegunSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a part of a 200 answer, then held."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="partial", status=200, then="held", body="some")

    async def inject(self, exchange: Exchange) -> None:
        """Send an unfinished answer and hold."""
        await exchange.send_unfinished(self.settings.text)
        await exchange.hold()


@dataclass(frozen=True)
class KeepAliveSettings:
    """How often the server says that it is still there."""

    every_seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.every_seconds <= 0:
            raise ValueError(f"every_seconds = {self.every_seconds}; allowed: more than 0")


class KeepAliveOnly:
    """A stream of comments or pings and no content: read time-outs never fire, since something is always read."""

    kind: ClassVar[str] = "keep_alive_only"
    settings_model: ClassVar[type[Any]] = KeepAliveSettings

    def __init__(self, settings: KeepAliveSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: parts of a 200 stream again and again, held; nothing outside of a stream."""
        from pytest_regcase.records.wire import Delivery, NotApplicable

        if not streaming:
            return NotApplicable(reason="only an event stream has comments and pings to be kept alive with")
        return Delivery(answer="partial", status=200, then="held", body="repeated")

    async def inject(self, exchange: Exchange) -> None:
        """Send pings until the client lets go: the events of Messages, comments elsewhere."""
        has_pings = exchange.wire.name == "anthropic-messages"
        ping = b'event: ping\ndata: {"type": "ping"}\n\n' if has_pings else b": keep-alive\n\n"
        await exchange.send_head(headers=[("Cache-Control", "no-cache")], content_type=_EVENT_STREAM)
        await exchange.send_part(ping)
        while await exchange.wait(self.settings.every_seconds):
            await exchange.send_part(ping)


@dataclass(frozen=True)
class TrickleSettings:
    """How slowly an answer comes."""

    seconds_a_byte: float = 0.5
    text: str = BEGUN_TEXT

    def __post_init__(self) -> None:
        if self.seconds_a_byte <= 0:
            raise ValueError(f"seconds_a_byte = {self.seconds_a_byte}; allowed: more than 0")


class ByteTrickle:
    """An answer that comes byte by byte and never to its end: each read succeeds, the whole does not."""

    kind: ClassVar[str] = "byte_trickle"
    settings_model: ClassVar[type[Any]] = TrickleSettings

    def __init__(self, settings: TrickleSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: parts of a 200 answer again and again, held."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="partial", status=200, then="held", body="repeated")

    async def inject(self, exchange: Exchange) -> None:
        """Send an unfinished answer byte by byte; whoever is still there behind its last byte is held."""
        await exchange.send_unfinished(self.settings.text, seconds_a_byte=self.settings.seconds_a_byte)
        await exchange.hold()


@dataclass(frozen=True)
class SlowSettings:
    """How late an answer comes, and what it says."""

    seconds: float = 120.0
    """Past whatever deadline the agent has; one that lets go before has met the fault as well."""
    text: str = "Sorry for the delay."

    def __post_init__(self) -> None:
        if self.seconds <= 0:
            raise ValueError(f"seconds = {self.seconds}; allowed: more than 0")


class SlowAnswer:
    """A whole, good answer that comes too late."""

    kind: ClassVar[str] = "slow_answer"
    settings_model: ClassVar[type[Any]] = SlowSettings

    def __init__(self, settings: SlowSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a whole 200 that does not begin before its time."""
        from pytest_regcase.records.wire import Delivery

        seconds = self.settings.seconds
        return Delivery(answer="complete", status=200, then="answered", not_before_seconds=seconds)

    async def inject(self, exchange: Exchange) -> None:
        """Wait, then answer whoever is still there."""
        if await exchange.wait(self.settings.seconds):
            await exchange.send_reply(self.settings.text)
