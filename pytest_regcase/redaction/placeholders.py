"""What stands where a secret stood.

A placeholder holds letters, digits and hyphens only: recorded commands are replayed in a shell, where
``<user>`` would be two redirections.
"""

import re
from collections.abc import Iterable
from typing import Final

PLACEHOLDER_PREFIX: Final = "REDACTED-"

FRESH: Final = rf"(?!\S{{0,200}}?{PLACEHOLDER_PREFIX})"
"""Begins a pattern: what holds a placeholder already is taken for no secret, so redacting twice changes
nothing."""

_WRITTEN: Final = re.compile(rf"{PLACEHOLDER_PREFIX}([a-z]+(?:-[a-z]+)*)-([0-9]{{1,9}})")


def placeholder(named: str, number: int) -> str:
    """Return the placeholder of the secret `number` among those that are named so."""
    return f"{PLACEHOLDER_PREFIX}{named.replace('_', '-')}-{number}"


def numbers_taken(texts: Iterable[str]) -> dict[str, int]:
    """Return the highest number of each placeholder in `texts`: whoever goes on redacting starts after it."""
    taken: dict[str, int] = {}
    for text in texts:
        if PLACEHOLDER_PREFIX in text:
            for named, number in _WRITTEN.findall(text):
                key = named.replace("-", "_")
                taken[key] = max(taken.get(key, 0), int(number))
    return taken
