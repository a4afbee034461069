"""Parts of a message as a transcript line holds them, from whatever a client library hands over.

Knows the shapes that OpenAI's and Anthropic's clients give tools and calls; never raises on any other.
"""

import json
from typing import Any

from pytest_regcase.capture.plain_data import as_text, plain
from pytest_regcase.capture.raised import failure_text


def text_of(value: object) -> str | None:
    """Return a text as it is, nothing as nothing, and content in parts as JSON: other things as their text."""
    if value is None or isinstance(value, str):
        return value if value is None else as_text(value)
    found = plain(value)
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def failure_of(error: object) -> str | None:
    """Return what is recorded of a failed call; nothing for none."""
    if error is None:
        return None
    return failure_text(error) if isinstance(error, BaseException) else as_text(error) or "failed"


def mapping_of(value: object) -> dict[str, Any] | None:
    """Return a table of plain data, such as usage; what is none stands under ``value``."""
    if value is None:
        return None
    found = plain(value)
    return found if isinstance(found, dict) else {"value": found}


def tool_name(tool: object) -> str:
    """Return the name of a tool that a request offered: itself, or out of the table that the request holds."""
    found = plain(tool)
    if isinstance(found, dict):
        inner = found.get("function")
        found = (inner if isinstance(inner, dict) else found).get("name", found)
    return as_text(found)


def tool_call(call: object) -> dict[str, Any]:
    """Return a call as a transcript line holds it, from a mapping or from a client library's object."""
    found = plain(call)
    if not isinstance(found, dict):
        return {"name": as_text(found)}
    inner = found.get("function")
    named = inner if isinstance(inner, dict) else found
    arguments = named.get("arguments", named.get("input"))
    kept = {
        "id": text_of(found.get("id")),
        "name": text_of(named.get("name")) or "",
        "arguments": "{}" if arguments is None else text_of(arguments),
    }
    return {key: value for key, value in kept.items() if value is not None}
