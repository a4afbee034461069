"""Rewrites the text of a case file in place: its strings, its comments, its digests and counts. Regroups nothing.

Knows TOML text; whoever calls checks the result before it replaces a file.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, Final

from pytest_regcase.case_files.seal import above_comments, ended, newline_of
from pytest_regcase.errors import UsageRefused
from pytest_regcase.toml_lines import Key, Span, dotted, places_of

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_REDACTIONS: Final = ("observation", "redactions")


def rewrite_strings(text: str, string: Callable[[Key, str], str], outside: Callable[[str], str]) -> str:
    """Return `text` with each string that is a value, but digests, put through `string`, the rest through
    `outside`.

    The rest is comments, keys and headers; numbers and dates stay as they are.
    """
    data = tomllib.loads(text)
    parts: list[str] = []
    done = 0
    for key, span in sorted(places_of(text).values.items(), key=lambda item: item[1]):
        value = _at(data, key)
        if isinstance(value, dict | list) or span.start < done:
            continue
        parts.append(outside(text[done : span.start]))
        written = text[span.start : span.end]
        if isinstance(value, str) and _DIGEST.fullmatch(value) is None:
            new = string(key, value)
            written = written if new == value else _basic_string(new)
        parts.append(written)
        done = span.end
    return "".join((*parts, outside(text[done:])))


def replace_digests(text: str, digests: Mapping[Key, str]) -> str:
    """Return `text` with the digest at each key replaced."""
    values = places_of(text).values
    for key in sorted(digests, key=lambda each: values[each], reverse=True):
        text = _with(text, values[key], f'"{digests[key]}"')
    return text


def set_value(text: str, key: Key, value: object) -> str:
    """Return `text` with the value at `key` replaced where it stands, or added to its table.

    A table that is not there yet is added before ``[seal]``.

    Raises:
        UsageRefused: the table is written in a form that nothing can be added to.
    """
    import tomlkit

    written = tomlkit.item(value).as_string()
    places = places_of(text)
    here = places.values.get(key)
    if here is not None:
        return _with(text, here, written)
    table, name = key[:-1], str(key[-1])
    line = f"{tomlkit.key(name).as_string()} = {written}{newline_of(text)}"
    header = dict(places.headers).get(table)
    if header is not None:
        end = text.find("\n", header.end)
        return f"{text[: end + 1]}{line}{text[end + 1 :]}" if end >= 0 else ended(text, newline_of(text)) + line
    if table in places.values or any(each[: len(table)] == table for each in places.values):
        raise UsageRefused(
            f"Couldn't set {dotted(key)}: {dotted(table)} is written in a form that nothing can be added to.\n"
            f"Write it as a [{dotted(table)}] table of its own, or change it by hand."
        )
    return _with_table(text, f"[{dotted(table)}]{newline_of(text)}{line}")


def add_redactions(text: str, counts: Mapping[str, int]) -> str:
    """Return `text` with `counts` added to ``[observation.redactions]``.

    Raises:
        UsageRefused: that table, or the observation, is written in a form that nothing can be added to.
    """
    before = tomllib.loads(text)["observation"].get("redactions", {})
    totals = {kind: before.get(kind, 0) + count for kind, count in sorted(counts.items())}
    places = places_of(text)
    whole = places.values.get(_REDACTIONS)
    if whole is not None:
        inline = ", ".join(f"{kind} = {count}" for kind, count in sorted((before | totals).items()))
        return _with(text, whole, f"{{ {inline} }}")
    known = [kind for kind in totals if (*_REDACTIONS, kind) in places.values]
    for kind in sorted(known, key=lambda each: places.values[*_REDACTIONS, each], reverse=True):
        text = _with(text, places.values[*_REDACTIONS, kind], str(totals[kind]))
    newline = newline_of(text)
    lines = "".join(f"{kind} = {count}{newline}" for kind, count in totals.items() if kind not in known)
    if not lines:
        return text
    headers = dict(places_of(text).headers)
    if _REDACTIONS in headers:
        end = text.find("\n", headers[_REDACTIONS].end)
        return f"{text[: end + 1]}{lines}{text[end + 1 :]}" if end >= 0 else ended(text, newline) + lines
    if known or ("observation",) in places.values:
        raise UsageRefused(
            "Couldn't count what was removed: [observation.redactions] is written in a form that nothing can be"
            " added to.\nWrite it as a table of its own."
        )
    return _with_table(text, f"[observation.redactions]{newline}{lines}")


def table_text(name: str, values: Mapping[str, object], newline: str = "\n") -> str:
    """Return `values` as the lines of a table ``[name]``."""
    import tomlkit

    lines = [f"[{name}]", *(f"{key} = {tomlkit.item(value).as_string()}" for key, value in values.items())]
    return "".join(line + newline for line in lines)


def add_table(text: str, name: str, values: Mapping[str, object]) -> str:
    """Return `text` with the table ``[name]``, which it does not have, before its seal."""
    return _with_table(text, table_text(name, values, newline_of(text)))


def remove_table(text: str, name: str) -> str:
    """Return `text` without the table ``[name]``; comments that stand above it, and above what follows, stay.

    Raises:
        UsageRefused: it is written in another form than as a table of its own.
    """
    starts = [(key, span.start) for key, span in places_of(text).headers]
    at = next((index for index, (key, _) in enumerate(starts) if key == (name,)), None)
    if at is None:
        raise UsageRefused(
            f"Couldn't take [{name}] out: it is written in a form that is no table of its own.\n"
            "Take it out by hand."
        )
    end = above_comments(text, starts[at + 1][1]) if at + 1 < len(starts) else len(text)
    return text[: starts[at][1]] + text[end:]


def _with_table(text: str, block: str) -> str:
    """Return `text` with a new table before its seal."""
    newline = newline_of(text)
    seal = dict(places_of(text).headers).get(("seal",))
    if seal is None:
        return ended(text, newline) + newline + block
    at = above_comments(text, seal.start)
    return f"{text[:at]}{block}{newline}{text[at:]}"


def _with(text: str, span: Span, written: str) -> str:
    return text[: span.start] + written + text[span.end :]


def _at(data: Any, key: Key) -> Any:
    for part in key:
        data = data[part]
    return data


def _basic_string(value: str) -> str:
    import tomlkit

    return tomlkit.item(value).as_string()
