"""Faults that end the server: nothing heals them, since nobody answers any more. Standard library only."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_regcase.supplier.faults.silences import BEGUN_TEXT
from pytest_regcase.supplier.protocol import Exchange, NoSettings

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable


@dataclass(frozen=True)
class KillSettings:
    """How the kernel ends the connection of a killed process."""

    request_unread: bool = False
    """True: with RST, as where bytes of the request were not read yet; False: with FIN."""


class ProcessKilled:
    """A real SIGKILL of the supplier: open connections end, later connects are refused."""

    kind: ClassVar[str] = "process_killed"
    settings_model: ClassVar[type[Any]] = KillSettings

    def __init__(self, settings: KillSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: no answer, then killed."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="none", then="killed", how="rst" if self.settings.request_unread else "fin")

    async def inject(self, exchange: Exchange) -> None:
        """Kill ourselves."""
        exchange.kill_process(reset=self.settings.request_unread)


class MemoryExhausted:
    """The supplier runs out of memory for real: killed by the kernel, where its memory can be limited so.

    Elsewhere an allocation fails and it ends itself; the wire log says which, and no kernel kill is claimed.
    """

    kind: ClassVar[str] = "memory_exhausted"
    settings_model: ClassVar[type[Any]] = NoSettings

    def __init__(self, settings: NoSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: no answer, then killed, and memory that is seen to have run out."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="none", then="killed", how="fin", out_of_memory=True)

    async def inject(self, exchange: Exchange) -> None:
        """Allocate until it ends."""
        exchange.exhaust_memory()


class EngineDead:
    """The inference engine died behind the API: the request in flight fails, then the API's process ends too.

    As vLLM does it: a 500 with an empty body; in a stream 200, some content and an error event. Seconds later its
    watchdog ends the API server; here at once, so that the first retry meets a refused connect.
    """

    kind: ClassVar[str] = "engine_dead"
    settings_model: ClassVar[type[Any]] = NoSettings

    def __init__(self, settings: NoSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a whole 500 (200 in a stream), then refused."""
        from pytest_regcase.records.wire import Delivery

        if streaming:
            return Delivery(answer="complete", status=200, then="refused", body="some")
        return Delivery(answer="complete", status=500, then="refused", body="none")

    async def inject(self, exchange: Exchange) -> None:
        """Close the listener first, so that no retry slips in, then fail the request."""
        exchange.refuse_connections()
        if exchange.request.streaming:
            await exchange.send_unfinished(BEGUN_TEXT)
            await exchange.send_error_event(500, "engine_dead")
        else:
            await exchange.send_body(500, b"", None)
