"""The links of a failure's chain, each as plain facts: class names, message, status, structured words.

Reads exceptions, recorded errors and mappings; decides nothing. Reading never raises, whatever an object does when
it is asked.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pytest_regcase.records.trial import ErrorLink, TrialError

MAX_LINKS = 50
MAX_TEXT = 20_000
"""Characters of a message or body that are looked at: more is a document, not a message."""
_MAX_DEPTH = 8
_MAX_TABLES = 1000
"""Tables and lists of one body that are looked into."""
_CAUSE = BaseException.__dict__["__cause__"].__get__
_CONTEXT = BaseException.__dict__["__context__"].__get__
_MEMBERS = BaseExceptionGroup.__dict__["exceptions"].__get__
"""Python's own record of where an exception came from: a class may override the attributes by anything."""
_WORD_KEYS = frozenset(
    {"code", "type", "error_type", "error_code", "reason", "status", "__type", "http_status", "httpstatuscode"}
)
_IN_TEXT = re.compile(
    r"""\\{0,9}["'](code|type|error_type|error_code|reason|status|__type|http_status)\\{0,9}["']\s*:\s*"""
    r"""\\{0,9}["']?"""
    r"([A-Za-z0-9_.\-]+)"
)
_BOTO = re.compile(r"\((\w+)\) when calling\b")
_STATUS = re.compile(
    r"(?:\b(?:error[ _]code|status(?:[ _]code)?|http(?:/[\d.]+)?|(?:api|client|server) error|error response"
    r"|returned)\W{0,4}|^\W{0,2}|\berror )([45]\d\d)\b|\b([45]\d\d) status code\b",
    re.IGNORECASE,
)
_STATUS_FIRST = re.compile(r"\s*(?:http(?:/[\d.]+)?\s+)?([45]\d\d)\b", re.IGNORECASE)
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
        members = _MEMBERS(link) if _is_a(link, BaseExceptionGroup) else ()
        waiting.extend(each for each in (_CAUSE(link), _CONTEXT(link), *members[:MAX_LINKS]) if each is not None)
    return tuple(found)


def links_of(error: object) -> tuple[Link, ...]:
    """Return the chain of an exception, of a recorded error or of a mapping, outermost first."""
    return tuple(islice(_links(error, 0), MAX_LINKS))


def _links(error: object, depth: int) -> Iterator[Link]:
    if _is_a(error, BaseException):
        assert isinstance(error, BaseException)
        for each in exception_chain(error):
            yield _or_nothing(_of_exception, each)
    elif _is_a(error, TrialError) or _is_a(error, ErrorLink):
        yield from _links(_ask(getattr, error, "__dict__"), depth)
    elif _is_a(error, Mapping):
        yield _or_nothing(_of_mapping, error)
        chain = _ask(lambda: error["chain"])  # type: ignore[index]
        if depth < _MAX_DEPTH:
            inner = chain[:MAX_LINKS] if isinstance(chain, list | tuple) else [chain]
            for each in inner:
                yield from _links(each, depth + 1)
    elif _is_a(error, str):
        yield _link((), error, (), ())


def _of_mapping(error: Mapping[str, Any]) -> Link:
    name, message = error.get("type"), error.get("message")
    kind = name if isinstance(name, type) else type(name) if _is_a(name, BaseException) else None
    types = (name,) if isinstance(name, str) else (_name_of(kind),) if kind is not None else ()
    words = [(key, error.get(key)) for key in ("status_code", "code", "error_type")]
    return _link(types, message, words, (error.get("body"), message if not isinstance(message, str) else None))


def _of_exception(error: BaseException) -> Link:
    types = tuple(_name_of(each) for each in type(error).__mro__ if each not in (object, BaseException))
    words = [
        (key, _ask(getattr, error, key, None))
        for key in ("status_code", "http_status", "status", "code", "type", "error_type", "reason")
    ]
    body, response, details = (_ask(getattr, error, key, None) for key in ("body", "response", "details"))
    answer = response if _is_a(response, Mapping) else None
    if answer is None:
        words.append(("status_code", _ask(getattr, response, "status_code", None)))
    # Whatever a foreign `__str__` raises, there is no text.
    return _link(types, _ask(str, error), words, (body, answer, details))


def _link(
    types: tuple[str, ...], message: object, words: Iterable[tuple[str, object]], bodies: Iterable[object]
) -> Link:
    text = _as_text(message)
    parts = [text] if text else []
    found = list(words)
    for body in bodies:
        if isinstance(body, str | bytes):
            parts.extend(each for each in (_as_text(body),) if each not in text)
        else:
            said: list[str] = []
            _ask(found.extend, _walk(body, said, set()))
            parts.extend(each for each in said if each not in text)
    whole = "\n".join(parts)[:MAX_TEXT]
    found.extend((match[1].lower(), match[2]) for match in _IN_TEXT.finditer(whole))
    found.extend(("code", match[1]) for pattern in (_BOTO, _STATUS_WORD) for match in pattern.finditer(whole))
    statuses = [status for key, value in found if (status := _status(key, value)) is not None]
    if not statuses:
        statuses = [int(match[1] or match[2]) for match in _STATUS.finditer(whole)]
    codes = dict.fromkeys(_plain(value) for key, value in found if isinstance(value, str) and key != "message")
    return Link(types, whole, statuses[0] if statuses else None, tuple(each for each in codes if each))


def _walk(value: object, said: list[str], met: set[int], depth: int = 0) -> Iterator[tuple[str, object]]:
    """Yield the structured words of a body, and collect its sentences; no table or list is looked into twice."""
    if depth > _MAX_DEPTH or id(value) in met or len(met) > _MAX_TABLES:
        return
    if _is_a(value, Mapping):
        assert isinstance(value, Mapping)
        met.add(id(value))
        for key, item in islice(value.items(), _MAX_TABLES):
            name = key.lower() if isinstance(key, str) else ""
            if name in _WORD_KEYS:
                yield name, item
            elif isinstance(item, str) and len(said) < MAX_LINKS:
                said.append(_as_text(item))
            yield from _walk(item, said, met, depth + 1)
    elif isinstance(value, list | tuple):
        met.add(id(value))
        for item in value[:MAX_LINKS]:
            if isinstance(item, str) and depth == 0 and len(said) < MAX_LINKS:
                said.append(_as_text(item))
            yield from _walk(item, said, met, depth + 1)


def _status(key: str, value: object) -> int | None:
    """Return an HTTP status that says an error: from a number, or from the digits of a word."""
    if key in ("type", "error_type", "reason", "__type"):
        return None
    if isinstance(value, str):
        found = _STATUS_FIRST.match(_as_text(value)[:40])
        whole = found is not None and (key != "code" or value.isdecimal())
        return int(found[1]) if found is not None and whole else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 400 <= value < 600 else None


def _is_a(value: object, kind: type) -> bool:
    """Say whether `value` is of a class, by its type alone: its ``__class__`` may be anything."""
    return _ask(issubclass, type(value), kind) is True


def _or_nothing(read: Callable[[Any], Link], value: object) -> Link:
    found = _ask(read, value)
    return found if isinstance(found, Link) else Link()


def _ask(asked: Callable[..., Any], *words: object) -> Any:
    """Return what a foreign object answers, None where it raises: it may raise anything when it is looked at."""
    try:
        return asked(*words)
    except Exception:
        return None


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"


def _as_text(value: object) -> str:
    """Return a text, or bytes as text, as far as it is looked at; "" for all else."""
    if isinstance(value, bytes):
        return value[:MAX_TEXT].decode("utf-8", errors="replace")
    return str.__str__(value)[:MAX_TEXT] if isinstance(value, str) else ""


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", str.lower(word)) if len(word) <= 120 else ""
