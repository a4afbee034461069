"""The request is taken and never answered. Standard library only."""

from typing import TYPE_CHECKING, Any, ClassVar

from pytest_regcase.supplier.protocol import Exchange, NoSettings

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable


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
