"""The model server's process is killed while the request is in flight. Standard library only."""

from typing import TYPE_CHECKING, Any, ClassVar

from pytest_regcase.supplier.protocol import Exchange, NoSettings

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable


class ProcessKilled:
    """A real SIGKILL of the supplier: open connections end with FIN, later connects are refused."""

    kind: ClassVar[str] = "process_killed"
    settings_model: ClassVar[type[Any]] = NoSettings

    def __init__(self, settings: NoSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: no answer, then killed."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="none", then="killed")

    async def inject(self, exchange: Exchange) -> None:
        """Kill ourselves; the request was read, so the kernel sends FIN and no reset."""
        exchange.kill_process()
