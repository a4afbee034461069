"""Faults inside a stream whose HTTP answer is whole: what is wrong is in the events. Standard library only."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_regcase.supplier.faults.silences import BEGUN_TEXT, BegunSettings
from pytest_regcase.supplier.protocol import Exchange

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable


class StreamWithoutEnd:
    """A stream that ends cleanly without the event that says so: some clients return it as complete."""

    kind: ClassVar[str] = "stream_without_end"
    settings_model: ClassVar[type[Any]] = BegunSettings

    def __init__(self, settings: BegunSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a whole 200; nothing outside of a stream."""
        from pytest_regcase.records.wire import Delivery, NotApplicable

        if not streaming:
            return NotApplicable(reason="only a stream has an end of its own inside of the HTTP answer")
        return Delivery(answer="complete", status=200, then="answered", body="some")

    async def inject(self, exchange: Exchange) -> None:
        """Send the events with the content and end the body."""
        await exchange.send_unfinished(self.settings.text)
        await exchange.end_body()


@dataclass(frozen=True)
class ErrorSettings:
    """Which error comes, and how far the answer is by then."""

    text: str = BEGUN_TEXT
    """Empty: the error is the first event."""
    status: int = 529
    """What the error would have had outside of a stream. Anthropic's event has the type that goes with it (529:
    ``overloaded_error``); other frames repeat it or leave it out."""
    slug: str = "overloaded"
    """Which of the wire's error bodies."""
    message: str = ""
    """Replaces the text of the error; empty: the text of the wire."""


class MidStreamError:
    """An error event inside a stream that began with 200, then a clean end without the stream's own."""

    kind: ClassVar[str] = "mid_stream_error"
    settings_model: ClassVar[type[Any]] = ErrorSettings

    def __init__(self, settings: ErrorSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a whole 200; nothing outside of a stream."""
        from pytest_regcase.records.wire import Delivery, NotApplicable

        if not streaming:
            return NotApplicable(reason="outside of a stream there is no event (see error_in_body)")
        return Delivery(answer="complete", status=200, then="answered", body="some")

    async def inject(self, exchange: Exchange) -> None:
        """Send what the model has said so far, the error event, and the end of the body."""
        if self.settings.text:
            await exchange.send_unfinished(self.settings.text)
        await exchange.send_error_event(self.settings.status, self.settings.slug, self.settings.message or None)
