"""Placeholders of ``[tool.regcase.agents.NAME]``: how a text is filled in.

Knows names and values only; no files, no processes. Which placeholders there are stands in `config`.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from pytest_regcase.config import PLACEHOLDERS
from pytest_regcase.errors import UsageRefused

_NO_CONTAINERS = (
    'no container reaches a supplier that listens on loopback only; set [tool.regcase.supplier] reach = "docker"'
)
WHY_ABSENT = MappingProxyType(
    {
        "task": "the case has no task text",
        "task_file": "the case has no task text",
        "task_id": "the case records no task id",
        "seed": "this attempt has no seed",
        "model": "no model is configured; set `model` for this agent",
        "openai_base_url_container": _NO_CONTAINERS,
        "anthropic_base_url_container": _NO_CONTAINERS,
        "container_host_args": _NO_CONTAINERS,
    }
)
"""Why a placeholder that exists may have no value in an attempt."""

# Shell's ${name} and templates' {{name}} are the user's own text; the braces of JSON never hold a bare identifier.
_PATTERN = re.compile(r"\$\{[^{}]*\}|\{\{[^{}]*\}\}|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")


def fill(text: str, values: Mapping[str, str], *, where: str) -> str:
    """Replace every ``{name}`` in `text`, in one pass: braces inside a value stay as they are.

    ``${name}``, ``{{name}}`` and ``{ name }`` are left alone, so that shell and template text passes through.
    `where` names the key that holds the text. Raises UsageRefused for a name that there is not, and for one that
    has no value in this attempt.
    """

    def value(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return match[0]
        if name not in PLACEHOLDERS:
            raise UsageRefused(
                f"Couldn't fill in `{where}`: there is no placeholder {{{name}}}.\n"
                f"Use one of {' '.join(f'{{{each}}}' for each in PLACEHOLDERS)}; "
                "put spaces inside braces that are meant as they stand.",
                slug="unknown-placeholder",
            )
        if name not in values:
            raise UsageRefused(
                f"Couldn't fill in `{where}`: {{{name}}} has no value: "
                f"{WHY_ABSENT.get(name, 'this attempt has none')}.\nTake it out, or run a case that has one.",
                slug="absent-placeholder",
            )
        return values[name]

    return _PATTERN.sub(value, text)
