"""What was raised, as a record: type, message, traceback, and every link of its chain.

Knows exceptions, and where client libraries put status, code, body and request id. Decides nothing about causes.
"""

import traceback
from collections.abc import Mapping
from typing import Any, Final

from pytest_regcase.capture.plain_data import CUT_MARK, as_text, bare_name, plain, type_name
from pytest_regcase.causes import exception_chain
from pytest_regcase.records.trial import ErrorLink, TrialError
from pytest_regcase.records.words import RaisedBy

_TRACEBACK_LIMIT: Final = 256 * 1024
_BODY_LIMIT: Final = 64 * 1024
_WORD_LIMIT: Final = 1024
_LINK_LIMIT: Final = 64 * 1024
"""Characters of one link's message; that of the error itself is kept whole."""


def error_of(error: BaseException, *, raised_by: RaisedBy = "unknown") -> TrialError:
    """Return the record of an exception. Never raises an `Exception`, whatever the exception's own code does.

    The chain starts with `error` itself and holds all that it came from, outermost first, what ``from None`` hides
    in a traceback too; a cycle ends. Of a link stays what its object has of status code, code, type, body and
    request id (openai, anthropic, httpx, requests and botocore put them in different places).
    """
    return TrialError(
        type=bare_name(type(error)),
        message=as_text(error),
        traceback=_traceback(error),
        raised_by=raised_by,
        chain=tuple(_link_or_name(each) for each in exception_chain(error)),
    )


def named_only(error: BaseException, *, raised_by: RaisedBy = "unknown") -> TrialError:
    """Return the record of an exception that cannot be asked for more than its class."""
    return TrialError(type=bare_name(type(error)), raised_by=raised_by)


def failure_text(error: BaseException) -> str:
    """Return the exception's name and what it says, in one line of a record."""
    words = as_text(error)
    name = type_name(type(error))
    return f"{name}: {words}" if words else name


def _traceback(error: BaseException) -> str | None:
    try:
        text = as_text("".join(traceback.format_exception(error)))
    except Exception:  # an exception class may override whatever the traceback module asks for
        return None
    # The end says what was raised, and where; a recursion fills the middle.
    half = _TRACEBACK_LIMIT // 2
    return text if len(text) <= _TRACEBACK_LIMIT else f"{text[:half]}\n[...]\n{text[-half:]}"


def _link_or_name(error: BaseException) -> ErrorLink:
    try:
        return _link(error)
    except Exception:  # a foreign object may raise anything, even where it is asked what it is
        return ErrorLink(type=type_name(type(error)), message=as_text(error)[:_LINK_LIMIT])


def _link(error: BaseException) -> ErrorLink:
    response = _ask(error, "response")
    answer = _table(response)
    metadata = _table(answer.get("ResponseMetadata"))
    status = _first_whole(
        _ask(error, "status_code"),
        _ask(error, "http_status"),
        _ask(error, "status"),
        _ask(response, "status_code"),
        metadata.get("HTTPStatusCode"),
    )
    body = _ask(error, "body")
    if body is None:
        body = answer or _ask(response, "text")
    headers = _ask(response, "headers")
    words = as_text(error)
    return ErrorLink(
        type=type_name(type(error)),
        message=words if len(words) <= _LINK_LIMIT else words[:_LINK_LIMIT] + CUT_MARK,
        status_code=status,
        code=_word(_ask(error, "code")),
        error_type=_word(_ask(error, "type")) or _word(_ask(error, "error_type")),
        body=_bounded(body),
        request_id=_word(_ask(error, "request_id"))
        or _word(_ask(error, "_request_id"))
        or _word(metadata.get("RequestId"))
        or _word(_header(headers, "x-request-id"))
        or _word(_header(headers, "request-id")),
    )


def _ask(value: object, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:  # a property of a foreign object may raise anything
        return None


def _table(value: object) -> dict[str, Any]:
    """Return a foreign table as one of ours; an empty one for all else, and for one that cannot be read."""
    try:
        return dict(value) if isinstance(value, Mapping) else {}
    except Exception:
        return {}


def _header(headers: object, name: str) -> object:
    try:
        return headers.get(name) if hasattr(headers, "get") else None
    except Exception:
        return None


def _first_whole(*values: object) -> int | None:
    for value in values:
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value < 1000:
            return int(value)
        if isinstance(value, str) and len(value) == 3 and value.isdecimal():
            return int(value)
    return None


def _word(value: object) -> str | None:
    """Return a code as text: some libraries give numbers, some enumerations, some a method."""
    if isinstance(value, bool) or callable(value) or value is None:
        return None
    return as_text(value)[:_WORD_LIMIT] or None


def _bounded(body: object) -> Any:
    found = plain(body)
    if found in ("", {}, []):
        return None
    text = found if isinstance(found, str) else as_text(found)
    return found if len(text) <= _BODY_LIMIT else text[:_BODY_LIMIT]
