"""A content filter blocks the request, or the answer to it. Standard library only."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pytest_regcase.supplier.protocol import Exchange

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable


@dataclass(frozen=True)
class Settings:
    """Where the filter struck."""

    blocks: Literal["request", "answer"] = "request"
    """``request``: 400. ``answer``: 200 without any text, and only the finish reason tells why."""


class ContentFiltered:
    """A whole 400 that names the filter, or a whole 200 whose finish reason does."""

    kind: ClassVar[str] = "content_filtered"
    settings_model: ClassVar[type[Any]] = Settings

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a whole 400, or a whole 200."""
        from pytest_regcase.records.wire import Delivery

        status = 400 if self.settings.blocks == "request" else 200
        return Delivery(answer="complete", status=status, then="answered")

    async def inject(self, exchange: Exchange) -> None:
        """Refuse the request, or answer with nothing."""
        if self.settings.blocks == "request":
            await exchange.send_error(400, "content_filtered")
        else:
            await exchange.send_reply("", finish="content_filter")
