"""A record as TOML text. Uses tomlkit, to write only: what is there already is never put through it."""

import json
import math
from typing import TYPE_CHECKING, Any

from pytest_regcase.records.base import Record
from pytest_regcase.toml_lines import INT_MAX, INT_MIN

if TYPE_CHECKING:
    from tomlkit.items import Table


def toml_values(record: Record, *, exclude: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the values of `record` as TOML can hold them: what is absent is left out, plain keys come first."""
    return _table(record.model_dump(mode="python", by_alias=True, exclude=set(exclude)))


def record_text(table: str, record: Record, newline: str) -> str:
    """Return `record` as one ``[[table]]``."""
    import tomlkit

    many = tomlkit.aot()
    many.append(table_of(toml_values(record)))
    document = tomlkit.document()
    document.add(table, many)
    return tomlkit.dumps(document).strip("\n").replace("\n", newline) + newline


def inline_text(key: str, record: Record) -> str:
    """Return `record` as ``key = { ... }`` on one line."""
    import tomlkit

    table = tomlkit.inline_table()
    for name, value in toml_values(record).items():
        table.add(name, tomlkit.item(value))
    return f"{key} = {table.as_string()}"


def table_of(values: dict[str, Any]) -> "Table":
    """Return `values` as a tomlkit table."""
    import tomlkit

    table = tomlkit.table()
    for key, value in values.items():
        table.add(key, table_of(value) if isinstance(value, dict) else tomlkit.item(value))
    return table


def _table(values: dict[str, Any]) -> dict[str, Any]:
    kept = {key: _value(value) for key, value in values.items()}
    kept = {key: value for key, value in kept.items() if value not in (None, [], {})}
    return dict(sorted(kept.items(), key=lambda item: _is_table(item[1])))


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value))


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return _table({str(key): item for key, item in value.items()})
    if isinstance(value, list | tuple):
        if _holds_null(value):
            # TOML has no null, and dropping one would move its neighbours: the text says what was recorded.
            return json.dumps(value, ensure_ascii=False, default=str)
        return [_value(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
        return str(value)
    return value


def _holds_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_null(each) for each in value.values())
    if isinstance(value, list | tuple):
        return any(_holds_null(each) for each in value)
    return value is None or (isinstance(value, float) and not math.isfinite(value))
