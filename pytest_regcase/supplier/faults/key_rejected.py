"""The supplier rejects the key. Standard library only."""

from typing import TYPE_CHECKING, Any, ClassVar

from pytest_regcase.supplier.protocol import Exchange, NoSettings

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable


class KeyRejected:
    """A whole 401 answer in the words of the real API."""

    kind: ClassVar[str] = "key_rejected"
    settings_model: ClassVar[type[Any]] = NoSettings

    def __init__(self, settings: NoSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a whole 401."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="complete", status=401, then="answered")

    async def inject(self, exchange: Exchange) -> None:
        """Answer 401."""
        await exchange.send_error(401, "key_rejected")
