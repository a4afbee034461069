"""The supplier answers 200 with nothing in it: a rejection hidden by whoever stands in between.

Standard library only.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_regcase.supplier.protocol import Exchange

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable


@dataclass(frozen=True)
class Settings:
    """How the empty answer says that it ended."""

    finish: str = "stop"


class EmptyAnswer:
    """A whole, healthy-looking answer with empty content and no call."""

    kind: ClassVar[str] = "empty_answer"
    settings_model: ClassVar[type[Any]] = Settings

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a whole 200."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="complete", status=200, then="answered")

    async def inject(self, exchange: Exchange) -> None:
        """Answer 200 with empty content."""
        await exchange.send_reply("", finish=self.settings.finish)
