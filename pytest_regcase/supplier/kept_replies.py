"""The replies that an API keeps, so that a later request may go on from one by its id.

OpenAI responses: ``previous_response_id`` stands for a whole conversation, an ``item_reference`` for one reply.
Knows canonical requests only, so that the rules about the main conversation and the prefix see every message.
Standard library only, since the supplier's child process imports it.
"""

from collections.abc import Iterator
from operator import attrgetter

from pytest_regcase.supplier.protocol import Call, Message, ModelRequest, Refusal

_KEPT = 64
"""Of the latest replies: a long run must not hold all its conversations in memory."""


_stands_for = attrgetter("stands_for")


class KeptReplies:
    """Remembers the latest replies of requests whose API keeps them."""

    def __init__(self) -> None:
        self._conversations: dict[str, tuple[Message, ...]] = {}
        """By reply id: the messages of its request, and last the reply."""

    def keep(self, reply_id: str, request: ModelRequest, text: str | None, calls: tuple[Call, ...]) -> None:
        """Remember a reply to a request that is `whole`."""
        if not request.kept:
            return
        self._conversations[reply_id] = (*request.messages, Message("assistant", text or "", calls))
        while len(self._conversations) > _KEPT:
            del self._conversations[next(iter(self._conversations))]

    def whole(self, request: ModelRequest) -> ModelRequest | Refusal:
        """Return the request with everything in it that it only names; a refusal where we have it not."""
        if request.continues is None and not any(map(_stands_for, request.messages)):
            return request
        earlier: tuple[Message, ...] = ()
        if request.continues is not None:
            if request.continues not in self._conversations:
                return Refusal(
                    400, "previous_not_found", f"Previous response with id '{request.continues}' not found."
                )
            earlier = self._conversations[request.continues]
        missing = [each.stands_for for each in request.messages if not self._knows(each)]
        if missing:
            return Refusal(404, "item_not_found", f"Item of response '{missing[0]}' not found.")
        system, new = _without_system(tuple(self._spelt_out(request.messages)))
        _, old = _without_system(earlier)
        # What a system prompt said is not taken over by the API; where it is not said again, ours stays, so that
        # a conversation is known by its beginning.
        head = system or earlier[: len(earlier) - len(old)]
        return request._replace(messages=(*head, *old, *new), continues=None)

    def _knows(self, message: Message) -> bool:
        return message.stands_for is None or message.stands_for in self._conversations

    def _spelt_out(self, messages: tuple[Message, ...]) -> Iterator[Message]:
        for message in messages:
            yield message if message.stands_for is None else self._conversations[message.stands_for][-1]


def as_it_came(request: ModelRequest) -> ModelRequest:
    """Return the request without what it only names: what can be known of it where somebody else keeps replies."""
    return request._replace(messages=tuple(each for each in request.messages if each.stands_for is None))


def _without_system(messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Return the system messages at the beginning, and the rest."""
    count = next((n for n, each in enumerate(messages) if each.role not in ("system", "developer")), len(messages))
    return messages[:count], messages[count:]
