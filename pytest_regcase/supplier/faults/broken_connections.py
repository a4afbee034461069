"""Faults by which a connection ends before a whole answer is out. The server goes on, or only its listener ends.

Standard library only.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pytest_regcase.supplier.faults.silences import BegunSettings
from pytest_regcase.supplier.protocol import Exchange, NoSettings

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable


class _EndsBeforeTheAnswer:
    """The base of those that send no byte."""

    settings_model: ClassVar[type[Any]] = NoSettings
    how: ClassVar[Literal["fin", "rst"]]

    def __init__(self, settings: NoSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: no answer, then closed in that way."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="none", then="closed", how=self.how)

    async def inject(self, exchange: Exchange) -> None:
        """Close the connection."""
        await exchange.close(self.how)


class ResetBeforeAnswer(_EndsBeforeTheAnswer):
    """The connection is reset instead of an answer (ECONNRESET)."""

    kind: ClassVar[str] = "reset_before_answer"
    how = "rst"


class ClosedWithoutAnswer(_EndsBeforeTheAnswer):
    """The connection ends in good order, without an answer."""

    kind: ClassVar[str] = "closed_without_answer"
    how = "fin"


class _EndsInTheAnswer:
    """The base of those that send the beginning of an answer."""

    settings_model: ClassVar[type[Any]] = BegunSettings
    how: ClassVar[Literal["fin", "rst"]]

    def __init__(self, settings: BegunSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a part of a 200 answer, then closed in that way."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="partial", status=200, then="closed", how=self.how, body="some")

    async def inject(self, exchange: Exchange) -> None:
        """Send an unfinished answer and close."""
        await exchange.send_unfinished(self.settings.text)
        await exchange.close(self.how)


class ResetMidStream(_EndsInTheAnswer):
    """The connection is reset in the middle of a stream, or of a body."""

    kind: ClassVar[str] = "reset_mid_stream"
    how = "rst"


class BodyTooShort(_EndsInTheAnswer):
    """The connection ends before its body does: short of its length, or in a stream without the last chunk."""

    kind: ClassVar[str] = "body_too_short"
    how = "fin"


class ConnectionRefused:
    """Nobody listens any more: the request in flight is reset, and every further connect is refused.

    The request in flight is how we know that the failing step was reached.
    """

    kind: ClassVar[str] = "connection_refused"
    settings_model: ClassVar[type[Any]] = NoSettings

    def __init__(self, settings: NoSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: no answer, reset, then refused."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="none", then="refused", how="rst")

    async def inject(self, exchange: Exchange) -> None:
        """Close the listener first, so that no retry slips in."""
        exchange.refuse_connections()
        await exchange.close("rst")
