"""The links of a failure's chain, each as plain facts: class names, message, status, structured words.

Reads exceptions, recorded errors and mappings; decides nothing. Reading never raises, whatever an object does when
it is asked.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_regcase.records.trial import ErrorLink, TrialError

MAX_LINKS = 50
MAX_TEXT = 20_000
"""Characters of a message or body that are looked at: more is a document, not a message."""
_MAX_DEPTH = 8
_WORD_KEYS = frozenset(
    {"code", "type", "error_type", "error_code", "reason", "status", "__type", "http_status", "httpstatuscode"}
)
_IN_TEXT = re.compile(
    r"""\\*["'](code|type|error_type|error_code|reason|status|__type|http_status)\\*["']\s*:\s*\\*["']?"""
    r"([A-Za-z0-9_.\-]+)"
)
_BOTO = re.compile(r"\((\w+)\) when calling\b")
_STATUS = re.compile(
    r"(?:\b(?:error[ _]code|status(?:[ _]code)?|http(?:/[\d.]+)?|(?:api|client|server) error|error response"
    r"|returned)\W{0,4}|^\W{0,2}|\berror )([45]\d\d)\b|\b([45]\d\d) status code\b",
    re.IGNORECASE,
)
_STATUS_WORD = re.compile(r"\b[sS]tatus: ([A-Z][A-Z_]{5,})\b")


@dataclass(frozen=True)
class Link:
    """One link: an exception with its base classes, or what was written down of one."""

    types: tuple[str, ...] = ()
    """Class names with their modules, the class itself first."""
    text: str = ""
    status: int | None = None
    codes: tuple[str, ...] = ()
    """Structured words in lower case, letters and digits only."""

    @property
    def names(self) -> tuple[str, ...]:
        """The class names without their modules."""
        return tuple(each.rpartition(".")[2] for each in self.types)


def exception_chain(error: BaseException) -> tuple[BaseException, ...]:
    """Return `error` and all that it came from, outermost first: causes, contexts and members of groups.

    ``raise ... from None`` hides nothing, and a chain that bites its tail ends.
    """
    found: list[BaseException] = []
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting and len(found) < MAX_LINKS:
        link = waiting.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        found.append(link)
        members = link.exceptions if isinstance(link, BaseExceptionGroup) else ()
        waiting.extend(each for each in (link.__cause__, link.__context__, *members) if each is not None)
    return tuple(found)


def links_of(error: object) -> tuple[Link, ...]:
    """Return the chain of an exception, of a recorded error or of a mapping, outermost first."""
    if isinstance(error, BaseException):
        return tuple(_of_exception(each) for each in exception_chain(error))
    if isinstance(error, (TrialError, ErrorLink)):
        error = error.model_dump()
    if isinstance(error, Mapping):
        return tuple(_of_mapping(each) for each in _mappings(error))
    return (_link((), error, (), ()),) if isinstance(error, str) else ()


def _mappings(error: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield error
    chain = error.get("chain")
    if isinstance(chain, Sequence) and not isinstance(chain, (str, bytes)):
        for each in chain[:MAX_LINKS]:
            if isinstance(each, Mapping):
                yield each
            elif isinstance(each, ErrorLink):
                yield each.model_dump()
            elif isinstance(each, str):
                yield {"message": each}


def _of_mapping(error: Mapping[str, Any]) -> Link:
    name = error.get("type")
    types = (name,) if isinstance(name, str) else (_name_of(name),) if isinstance(name, type) else ()
    words = [(key, error.get(key)) for key in ("status_code", "code", "error_type")]
    return _link(types, error.get("message"), words, (error.get("body"),))


def _of_exception(error: BaseException) -> Link:
    types = tuple(_name_of(each) for each in type(error).__mro__ if each not in (object, BaseException))
    words = [
        (key, _ask(error, key))
        for key in ("status_code", "http_status", "status", "code", "type", "error_type", "reason")
    ]
    response = _ask(error, "response")
    bodies = (_ask(error, "body"), response if isinstance(response, Mapping) else None, _ask(error, "details"))
    if not isinstance(response, Mapping):
        words.append(("status_code", _ask(response, "status_code")))
    return _link(types, _said_by(error), words, bodies)


def _link(
    types: tuple[str, ...], message: object, words: Iterable[tuple[str, object]], bodies: Iterable[object]
) -> Link:
    text = _as_text(message)
    parts = [text] if text else []
    found = list(words)
    for body in bodies:
        if isinstance(body, (Mapping, list, tuple)):
            said: list[str] = []
            found.extend(_walk(body, said))
            parts.extend(each for each in said if each not in text)
        elif isinstance(body, (str, bytes)) and _as_text(body) not in text:
            parts.append(_as_text(body))
    whole = "\n".join(parts)[:MAX_TEXT]
    found.extend((match[1].lower(), match[2]) for match in _IN_TEXT.finditer(whole))
    found.extend(("code", match[1]) for pattern in (_BOTO, _STATUS_WORD) for match in pattern.finditer(whole))
    statuses = [status for key, value in found if (status := _status(key, value)) is not None]
    if not statuses:
        statuses = [int(match[1] or match[2]) for match in _STATUS.finditer(whole)]
    codes = dict.fromkeys(_plain(value) for key, value in found if isinstance(value, str) and key != "message")
    return Link(types, whole, statuses[0] if statuses else None, tuple(each for each in codes if each))


def _walk(value: object, said: list[str], depth: int = 0) -> Iterator[tuple[str, object]]:
    """Yield the structured words of a body, and collect its sentences."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            name = str(key).lower()
            if name in _WORD_KEYS:
                yield name, item
            elif isinstance(item, str) and len(said) < MAX_LINKS:
                said.append(item)
            yield from _walk(item, said, depth + 1)
    elif isinstance(value, (list, tuple)):
        for item in value[:MAX_LINKS]:
            yield from _walk(item, said, depth + 1)


def _status(key: str, value: object) -> int | None:
    """Return an HTTP status that says an error: from a number, or from the digits of a word."""
    if key in ("type", "error_type", "reason", "__type"):
        return None
    if isinstance(value, str) and value.isdecimal():
        value = int(value) if len(value) == 3 else None
    return int(value) if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600 else None


def _said_by(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # whatever a foreign `__str__` raises, there is no text
        return ""


def _ask(value: object, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:  # a property of a foreign object may raise anything
        return None


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"


def _as_text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return value if isinstance(value, str) else ""


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower()) if len(word) <= 120 else ""
