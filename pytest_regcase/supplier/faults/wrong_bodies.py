"""A 200 whose body is no reply at all: an error document, a web page, nothing, or JSON that was cut.

One class a kind. They are what a gateway or proxy makes of a failure behind it; client libraries find no status to
raise on. Standard library only.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_regcase.supplier.protocol import Exchange, NoSettings

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable

JSON = "application/json"
HTML = "text/html; charset=utf-8"
EVENT_STREAM = "text/event-stream; charset=utf-8"

_PAGE = (
    '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>Sign in</title></head>\n'
    '<body>\n<h1>Sign in</h1>\n<form method="post" action="/login"><input name="user"><button>Go</button></form>\n'
    "</body>\n</html>\n"
)


class _Whole200:
    kind: ClassVar[str]
    settings_model: ClassVar[type[Any]] = NoSettings

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a whole 200."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="complete", status=200, then="answered")


@dataclass(frozen=True)
class ErrorSettings:
    """What the error in the body says."""

    message: str = "Provider returned error"


class ErrorInBody(_Whole200):
    """An error document with status 200, also where a stream was asked for: then no event comes at all.

    The openai and anthropic clients make a reply without choices or content of it.
    """

    kind = "error_in_body"
    settings_model = ErrorSettings

    async def inject(self, exchange: Exchange) -> None:
        """Answer 200 with the wire's error body."""
        body = exchange.wire.render_error(502, "upstream_failed", self.settings.message)
        await exchange.send_body(200, body, JSON)


class HtmlInBody(_Whole200):
    """A web page with status 200, as a sign-in page or a wrong base URL gives. The clients return a plain text."""

    kind = "html_in_body"

    async def inject(self, exchange: Exchange) -> None:
        """Answer 200 with a sign-in page."""
        await exchange.send_body(200, _PAGE.encode(), HTML)


class EmptyBody(_Whole200):
    """A 200 that promises JSON (or events) and holds no byte."""

    kind = "empty_body"

    async def inject(self, exchange: Exchange) -> None:
        """Answer 200 with a length of 0."""
        await exchange.send_body(200, b"", EVENT_STREAM if exchange.request.streaming else JSON)


class TruncatedJson(_Whole200):
    """JSON cut in the middle, with a length that fits, so that HTTP sees nothing wrong; in a stream a cut event.

    It breaks off before any word of the model; the stream ends behind the cut event.
    """

    kind = "truncated_json"

    async def inject(self, exchange: Exchange) -> None:
        """Answer 200 with half a document, or with half of the first event."""
        pieces = exchange.rendered("")
        if exchange.request.streaming:
            await exchange.send_body(200, _half_event(pieces[0]), EVENT_STREAM)
        else:
            whole = b"".join(pieces)
            await exchange.send_body(200, whole[: len(whole) // 2], JSON)


def _half_event(event: bytes) -> bytes:
    """Return `event` with its data cut in the middle; the blank line that ends an event stays."""
    head, mark, data = event.rstrip(b"\n").partition(b"data: ")
    return head + mark + data[: len(data) // 2] + b"\n\n"
