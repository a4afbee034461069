"""The supplier asks for a pause: 429 with the time to wait in a header. Standard library only."""

import math
from dataclasses import dataclass
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pytest_regcase.supplier.protocol import Exchange

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable


MOST_WAIT_SECONDS = 10 * 365 * 86400
"""Ten years: far beyond, a date cannot be written any more."""


@dataclass(frozen=True)
class Settings:
    """How long the client is asked to wait, and in which of the forms that servers use.

    The openai client obeys up to 120 s and does not retry at all above; the anthropic client obeys any value, so a
    day makes it sleep for a day.
    """

    wait_seconds: float = 2.0
    retry_after: Literal["seconds", "date", "milliseconds", "none"] = "seconds"
    message: str = ""
    """Replaces the text of the error; empty: the text of the wire."""

    def __post_init__(self) -> None:
        if not 0 <= self.wait_seconds <= MOST_WAIT_SECONDS:
            raise ValueError(f"wait_seconds = {self.wait_seconds}; allowed: 0 to {MOST_WAIT_SECONDS}")


class RateLimited:
    """A whole 429 answer with ``Retry-After`` (whole seconds or an HTTP date) or ``retry-after-ms``."""

    kind: ClassVar[str] = "rate_limited"
    settings_model: ClassVar[type[Any]] = Settings

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a whole 429."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="complete", status=429, then="answered")

    async def inject(self, exchange: Exchange) -> None:
        """Answer 429 with the header that was chosen."""
        await exchange.send_error(
            429, "rate_limited", self.settings.message or None, headers=self.headers(exchange.now())
        )

    def headers(self, now: float) -> tuple[tuple[str, str], ...]:
        """Return the header that asks for the pause, counted from `now` (seconds since the epoch).

        Whole seconds and dates are rounded up: a client that obeys never comes too early.
        """
        wait = self.settings.wait_seconds
        if self.settings.retry_after == "seconds":
            return (("Retry-After", str(math.ceil(wait))),)
        if self.settings.retry_after == "date":
            return (("Retry-After", formatdate(math.ceil(now + wait), usegmt=True)),)
        if self.settings.retry_after == "milliseconds":
            return (("retry-after-ms", str(math.ceil(wait * 1000))),)
        return ()
