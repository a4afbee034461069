"""Whether the values that a file or another ledger brings make rows that can be read again.

A row that nobody can read would stop every later session, and none is ever removed. Knows no connection.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError
from sqlalchemy import Integer, Table

from pytest_regcase.ledger.columns import decided_of, session_of, text_of, transition_of, version_of
from pytest_regcase.ledger.schema import ATTEMPTS, DECISIONS, SESSIONS, SOURCES, TRANSITIONS, VERSIONS

_LARGEST: Final = 2**31 - 1
"""What a whole number of PostgreSQL holds."""


def why_not_readable(table: Table, values: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the values of a row, as whoever made them can find it; None where nothing is."""
    for name, value in values.items():
        what = _wrong(table, name, value)
        if what is not None:
            return f"{name} is {what}"
    try:
        _READ[table.name](values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"
    except (ValueError, TypeError, RecursionError) as error:
        return next(iter(str(error).splitlines()), type(error).__name__)
    return None


def _wrong(table: Table, name: str, value: Any) -> str | None:
    column = table.c[name]
    if value is None:
        return None if column.nullable else "not there"
    if isinstance(column.type, Integer):
        whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST
        return None if whole else "no number of rows or runs"
    if not isinstance(value, str):
        return "no text"
    return None if text_of(value) == value else "no text that a database holds"


_READ: Final[Mapping[str, Callable[[Mapping[str, Any]], object]]] = {
    SESSIONS.name: session_of,
    TRANSITIONS.name: transition_of,
    DECISIONS.name: decided_of,
    VERSIONS.name: version_of,
    # Of an attempt, its record was read already.
    ATTEMPTS.name: lambda _: None,
    SOURCES.name: lambda _: None,
}
