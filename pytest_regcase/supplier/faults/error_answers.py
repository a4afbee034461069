"""Faults that are one whole error answer in the words of the real API, and differ in status and wording only.

One class a kind, so that each is found by its name and registered by an entry point of its own. Knows statuses and
the slugs of the wires' error bodies; the bodies themselves are the wires'. Standard library only.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pytest_regcase.supplier.protocol import Exchange

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable

_ANTHROPIC = "anthropic-messages"


@dataclass(frozen=True)
class Settings:
    """What may be said instead of the API's own sentence."""

    message: str = ""
    """Replaces the text of the error; empty: the text of the wire."""


class ErrorAnswer:
    """The base of every kind here: a whole answer with `status_on(wire)` and the wire's error body for `slug`."""

    kind: ClassVar[str]
    settings_model: ClassVar[type[Any]] = Settings
    status: ClassVar[int]
    slug: ClassVar[str] = ""
    """Of the error body; empty: the same word as the kind."""

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    def status_on(self, wire: str) -> int:  # noqa: ARG002
        """Return the HTTP status on `wire`."""
        return self.status

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a whole answer with that status."""
        from pytest_regcase.records.wire import Delivery

        return Delivery(answer="complete", status=self.status_on(wire), then="answered")

    async def inject(self, exchange: Exchange) -> None:
        """Answer with the error, as a plain document where a stream was asked for too: real APIs do the same."""
        status = self.status_on(exchange.wire.name)
        await exchange.send_error(status, self.slug or self.kind, self.settings.message or None)


class KeyRejected(ErrorAnswer):
    """The key is unknown or revoked. No client library retries it."""

    kind = "key_rejected"
    status = 401


@dataclass(frozen=True)
class ExpiredSettings(Settings):
    """How an expired credential is told."""

    status: Literal[401, 403] = 401
    """401 as OAuth tokens are refused, 403 as cloud security tokens are (ExpiredTokenException)."""


class KeyExpired(ErrorAnswer):
    """The key worked up to the failing step and has expired since."""

    kind = "key_expired"
    settings_model = ExpiredSettings

    def status_on(self, wire: str) -> int:  # noqa: ARG002
        """Return the status that was chosen."""
        return int(self.settings.status)


class PermissionDenied(ErrorAnswer):
    """The key is known and may not use this model."""

    kind = "permission_denied"
    status = 403


class QuotaExhausted(ErrorAnswer):
    """The prepaid quota is used up. With the status of a rate limit, so client libraries retry it for nothing."""

    kind = "quota_exhausted"
    status = 429


class CreditTooLow(ErrorAnswer):
    """The credit balance is too low: a 400, easily taken for a malformed prompt. Only Anthropic tells it so."""

    kind = "credit_too_low"
    status = 400

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":
        """Say: a whole 400 on Anthropic's wire, and nothing elsewhere."""
        from pytest_regcase.records.wire import NotApplicable

        if wire != _ANTHROPIC:
            return NotApplicable(
                reason=f"only Anthropic's API tells a low credit with a 400, and the agent speaks {wire};"
                " quota_exhausted and budget_exceeded are what other APIs send"
            )
        return super().declares(wire, streaming)


@dataclass(frozen=True)
class BudgetSettings(Settings):
    """Who says that the money is used up."""

    status: Literal[402, 400, 422, 429] = 402
    """402: the provider itself wants payment. The others: a proxy's own budget, as LiteLLM proxies have told it in
    turn (400 of old, then 429, which client libraries retry, then 422)."""


class BudgetExceeded(ErrorAnswer):
    """The money is used up: a provider's 402, or the budget of a proxy in between."""

    kind = "budget_exceeded"
    settings_model = BudgetSettings

    def status_on(self, wire: str) -> int:  # noqa: ARG002
        """Return the status that was chosen."""
        return int(self.settings.status)

    async def inject(self, exchange: Exchange) -> None:
        """Answer in the words of whoever uses that status."""
        status = self.status_on(exchange.wire.name)
        slug = "payment_required" if status == 402 else "budget_exceeded"
        await exchange.send_error(status, slug, self.settings.message or None)


@dataclass(frozen=True)
class OutOfMemorySettings(Settings):
    """The text of the error, worded as PyTorch words it."""

    message: str = (
        "CUDA out of memory. Tried to allocate 50.00 MiB."
        " GPU 0 has a total capacity of 23.56 GiB of which 56.88 MiB is free."
    )


class ServerOutOfMemory(ErrorAnswer):
    """The model server says that its accelerator is out of memory, and stays up."""

    kind = "server_out_of_memory"
    settings_model = OutOfMemorySettings
    status = 500


class ModelLoading(ErrorAnswer):
    """The model server is up and still loads the model."""

    kind = "model_loading"
    status = 503
    slug = "loading"


class ServiceUnavailable(ErrorAnswer):
    """The service takes no requests for now."""

    kind = "service_unavailable"
    status = 503


class Overloaded(ErrorAnswer):
    """The provider has no capacity left: 529 on Anthropic's wire, 503 elsewhere."""

    kind = "overloaded"

    def status_on(self, wire: str) -> int:
        """Return 529 for Anthropic's wire and 503 for any other."""
        return 529 if wire == _ANTHROPIC else 503


class ContextTooLong(ErrorAnswer):
    """The conversation no longer fits the model's context. An unchanged request can never succeed."""

    kind = "context_too_long"
    status = 400
