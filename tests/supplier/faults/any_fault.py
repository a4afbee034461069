"""A fault that is whichever fault a request asks for, so that one supplier process serves many tests.

The supplier's child process imports it: standard library and supplier modules only. A request names entry,
settings and a note of its own in its model name, as JSON.
"""

import json
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_regcase.supplier.protocol import Exchange, NoSettings
from pytest_regcase.supplier.server import load_entry

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable

ENTRY = "tests.supplier.faults.any_fault:AnyFault"


def model_for(entry: str, settings: dict[str, Any], note: str = "") -> str:
    """The model name with which a request asks for a fault; `note` makes it one of its own."""
    return json.dumps([entry, settings, note])


class AnyFault:
    """Injects the fault that the model name asks for."""

    kind: ClassVar[str] = "any_fault"
    settings_model: ClassVar[type[Any]] = NoSettings

    def __init__(self, settings: NoSettings) -> None: ...

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":
        raise NotImplementedError("what is declared differs by request")

    async def inject(self, exchange: Exchange) -> None:
        entry, settings, _ = json.loads(exchange.request.model)
        cls = load_entry(entry)
        await cls(cls.settings_model(**settings)).inject(exchange)
