"""One request to a model over OpenAI chat completions, by the standard library alone.

Knows the wire and how it fails; every way is a `SupplierFailure`. It never retries: that is the agent's decision.
"""

import contextlib
import http.client
import json
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

Message = dict[str, Any]
"""A message as it stands in the request."""

_READ_BYTES = 65536
_WORTH_ANOTHER_TRY = frozenset({408, 409, 429})
"""Besides 5xx; the same that the OpenAI SDK repeats."""


class SupplierFailure(Exception):
    """The supplier gave no usable answer. `kind` is a word for it, the text says what was seen."""

    def __init__(self, kind: str, text: str, *, worth_another_try: bool) -> None:
        super().__init__(text)
        self.kind = kind
        self.worth_another_try = worth_another_try


@dataclass(frozen=True)
class Call:
    """One tool call of a reply; `arguments` is JSON text, as the model wrote it."""

    id: str
    name: str
    arguments: str

    def as_message(self) -> dict[str, Any]:
        """Return it as it stands in an assistant message."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


@dataclass(frozen=True)
class Reply:
    """One complete answer of the model."""

    text: str | None = None
    calls: tuple[Call, ...] = ()
    finish: str | None = None
    usage: Mapping[str, Any] | None = None
    model: str | None = None

    def as_message(self) -> Message:
        """Return it as it stands in the next request."""
        message: Message = {"role": "assistant", "content": self.text}
        if self.calls:
            message["tool_calls"] = [call.as_message() for call in self.calls]
        return message


@dataclass(frozen=True)
class ChatClient:
    """Where the model is, and how long to wait for it."""

    base_url: str
    """With the ``/v1``."""
    api_key: str
    model: str
    timeout_seconds: float | None
    """For each connect and send, and for the whole answer from then on; None waits for ever."""

    def complete(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> Reply:
        """Ask once. Raises SupplierFailure for whatever is no complete, usable answer."""
        body: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        if tools:
            body["tools"] = list(tools)
        status, answer = self._post(json.dumps(body).encode())
        if status != 200:
            raise SupplierFailure(
                "APIStatusError",
                f"HTTP {status}: {_error_text(answer)}",
                worth_another_try=status >= 500 or status in _WORTH_ANOTHER_TRY,
            )
        return _usable(_reply(answer))

    def _post(self, body: bytes) -> tuple[int, bytes]:
        url = urlsplit(self.base_url)
        if url.hostname is None or url.scheme not in ("http", "https"):
            raise SupplierFailure(
                "BadBaseURL", f"the base URL {self.base_url!r} is no http URL", worth_another_try=False
            )
        connection: http.client.HTTPConnection
        if url.scheme == "https":
            connection = http.client.HTTPSConnection(
                url.hostname, url.port, timeout=self.timeout_seconds, context=ssl.create_default_context()
            )
        else:
            connection = http.client.HTTPConnection(url.hostname, url.port, timeout=self.timeout_seconds)
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self.api_key}",
            "Connection": "close",
        }
        try:
            connection.request("POST", url.path.rstrip("/") + "/chat/completions", body, headers)
            return self._answer(connection)
        except TimeoutError as error:
            raise SupplierFailure(
                "APITimeoutError",
                f"request timed out: no answer within {self.timeout_seconds:g} s",
                worth_another_try=True,
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise SupplierFailure(
                "APIConnectionError",
                f"connection error: {type(error).__name__}: {error}",
                worth_another_try=True,
            ) from error
        finally:
            connection.close()

    def _answer(self, connection: http.client.HTTPConnection) -> tuple[int, bytes]:
        """Read the whole answer within the time-out: a time-out of each receive never ends a trickle."""
        seconds = self.timeout_seconds
        end = None if seconds is None else time.monotonic() + seconds
        sock = connection.sock
        response = connection.getresponse()
        parts: list[bytes] = []
        # From Python 3.13 on the end of the body closes the socket at once, before a read finds nothing more.
        while not response.isclosed():
            if end is not None:
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                sock.settimeout(left)
            part = response.read1(_READ_BYTES)
            if not part:
                break
            parts.append(part)
        if response.length:
            raise http.client.IncompleteRead(b"".join(parts), response.length)
        return response.status, b"".join(parts)


def _reply(answer: bytes) -> Reply:
    try:
        document = json.loads(answer)
        choice = document["choices"][0]
        message = choice["message"]
        return Reply(
            text=message.get("content"),
            calls=tuple(
                Call(call["id"], call["function"]["name"], call["function"]["arguments"])
                for call in message.get("tool_calls") or ()
            ),
            finish=choice.get("finish_reason"),
            usage=document.get("usage"),
            model=document.get("model"),
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise SupplierFailure(
            "UnusableAnswerError",
            f"the answer is no chat completion ({type(error).__name__}): {_error_text(answer)}",
            worth_another_try=False,
        ) from error


def _usable(reply: Reply) -> Reply:
    """Refuse an answer that says nothing, or not all: it is the supplier's failure, not the model's last word."""
    if not reply.calls and not (reply.text or "").strip():
        raise SupplierFailure(
            "EmptyAnswerError", "the supplier sent an empty answer with status 200", worth_another_try=False
        )
    if reply.finish == "length":
        raise SupplierFailure(
            "UnfinishedAnswerError",
            "the supplier cut the answer off (finish_reason length)",
            worth_another_try=False,
        )
    return reply


def _error_text(answer: bytes) -> str:
    """Return the supplier's own words, of an error body or of whatever came."""
    text = answer.decode("utf-8", errors="replace")
    with contextlib.suppress(ValueError, LookupError, TypeError):
        text = json.loads(text)["error"]["message"]
    return " ".join(str(text).split())[:500]
