"""The model server answers that its accelerator is out of memory. Standard library only."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_regcase.supplier.protocol import Exchange

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable


@dataclass(frozen=True)
class Settings:
    """The text of the error, worded as PyTorch words it."""

    message: str = (
        "CUDA out of memory. Tried to allocate 50.00 MiB."
        " GPU 0 has a total capacity of 23.56 GiB of which 56.88 MiB is free."
    )


class ServerOutOfMemory:
    """A whole 500 answer whose error says CUDA out of memory; the server stays up."""

    kind: ClassVar[str] = "server_out_of_memory"
    settings_model: ClassVar[type[Any]] = Settings

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a whole 500."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="complete", status=500, then="answered")

    async def inject(self, exchange: Exchange) -> None:
        """Answer 500."""
        await exchange.send_error(500, "server_out_of_memory", self.settings.message)
