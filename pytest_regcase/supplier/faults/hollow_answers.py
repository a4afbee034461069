"""A healthy-looking 200 with nothing in it: an empty or null text, or no choice at all.

What is sent is the wire's own rendering of an empty reply, changed where the API's list of answers or its text
stands. Standard library only.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pytest_regcase.supplier.protocol import Exchange, NoSettings

if TYPE_CHECKING:
    from pytest_regcase.records.wire import Delivery, NotApplicable

_CHAT = "openai-chat"
_LISTS = {_CHAT: "choices", "openai-responses": "output", "anthropic-messages": "content"}
"""Where each wire keeps the list of its answers."""
_PARTS = ("content_block_", "response.output_", "response.content_part")
"""How the types of the stream events begin that belong to one entry of that list."""

Change = Callable[[dict[str, Any]], dict[str, Any] | None]


@dataclass(frozen=True)
class Settings:
    """How the empty answer says that it ended, and what stands where the text should be."""

    finish: str = "stop"
    content: Literal["empty", "null"] = "empty"


class EmptyAnswer:
    """A whole, healthy-looking answer with empty content and no call."""

    kind: ClassVar[str] = "empty_answer"
    settings_model: ClassVar[type[Any]] = Settings

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a whole 200."""
        from pytest_regcase.records.wire import Delivery, NotApplicable

        if self.settings.content == "null" and wire != _CHAT:
            return NotApplicable(reason=f"only chat completions have a text that can be null, not {wire}")
        return Delivery(answer="complete", status=200, then="answered")

    async def inject(self, exchange: Exchange) -> None:
        """Answer 200 with empty (or null) content."""
        if self.settings.content == "null":
            await send_changed(exchange, _null_content, finish=self.settings.finish)
        else:
            await exchange.send_reply("", finish=self.settings.finish)


class EmptyChoices:
    """A whole, healthy-looking answer whose list of answers is empty.

    ``choices: []`` in chat completions, ``output: []`` in responses, ``content: []`` in messages; a stream begins
    and ends without any part of an answer.
    """

    kind: ClassVar[str] = "empty_choices"
    settings_model: ClassVar[type[Any]] = NoSettings

    def __init__(self, settings: NoSettings) -> None:
        self.settings = settings

    def declares(self, wire: str, streaming: bool) -> "Delivery | NotApplicable":  # noqa: ARG002
        """Say: a whole 200, on the wires whose list of answers is known."""
        from pytest_regcase.records.wire import Delivery, NotApplicable

        if wire not in _LISTS:
            return NotApplicable(reason=f"where {wire} keeps its list of answers is not known")
        return Delivery(answer="complete", status=200, then="answered")

    async def inject(self, exchange: Exchange) -> None:
        """Answer 200 with an empty list."""
        key = _LISTS[exchange.wire.name]
        await send_changed(exchange, lambda document: _without_answers(document, key))


async def send_changed(exchange: Exchange, change: Change, *, finish: str = "stop") -> None:
    """Answer with the wire's rendering of an empty reply, each document in it changed (None: left out)."""
    pieces = exchange.rendered("", finish=finish)
    if exchange.request.streaming:
        body = b"".join(_changed_events(pieces, change))
        await exchange.send_body(200, body, "text/event-stream; charset=utf-8", text="")
    else:
        body = _json(change(json.loads(b"".join(pieces))))
        await exchange.send_body(200, body, text="")


def _changed_events(events: Iterable[bytes], change: Change) -> Iterator[bytes]:
    for event in events:
        head, mark, data = event.rstrip(b"\n").partition(b"data: ")
        if not data.startswith(b"{"):
            yield event
            continue
        changed = change(json.loads(data))
        if changed is not None:
            yield head + mark + _json(changed) + b"\n\n"


def _null_content(document: dict[str, Any]) -> dict[str, Any]:
    for choice in document.get("choices") or ():
        for part in (choice.get("message"), choice.get("delta")):
            if part:
                part["content"] = None
    return document


def _without_answers(document: dict[str, Any], key: str) -> dict[str, Any] | None:
    if str(document.get("type", "")).startswith(_PARTS):
        return None
    # In a stream the list stands in the message or response that an event carries.
    for holder in (document, document.get("message"), document.get("response")):
        if isinstance(holder, dict) and key in holder:
            holder[key] = []
    return document


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
