"""The signs by which a line of a lower-level log bears on a hypothesis, and in which kind of log each counts.

A sign is a candidate to look at, never a finding: `check` says what the line itself does not show. Which signs
there are, `sign_table` knows. Pure.
"""

import re
from dataclasses import dataclass
from typing import Final

from pytest_regcase.evidence.log_kinds import LogKind, Told

_SEARCHED: Final = 4000
_QUOTED: Final = re.compile(r"prompt(?:_token_ids)?['\"]?[:=] |['\"]?(?:messages|content|arguments)['\"]?[:=]")
"""From here on a server quotes what it was sent: not its own words."""


@dataclass(frozen=True)
class Sign:
    """One thing that a line can show. `supports` and `refutes` name hypothesis classes or kinds of faults."""

    id: str
    logs: frozenset[LogKind]
    says: str
    supports: frozenset[str]
    refutes: frozenset[str] = frozenset()
    check: str | None = None
    """What a reader still has to find out."""
    pattern: re.Pattern[str] | None = None
    statuses: frozenset[int] = frozenset()
    """Of an answered request for a model, where the sign is one of an access log."""
    empty: bool = False
    """Only an answer without a body."""

    def shown_by(self, line: Told) -> bool:
        """Say whether the line shows it."""
        if line.kind not in self.logs:
            return False
        if self.pattern is not None:
            return self.pattern.search(own_words(line)) is not None
        access = line.access
        if access is None or not access.of_a_model or access.status not in self.statuses:
            return False
        return not self.empty or access.size == 0


def own_words(line: Told) -> str:
    """Return the beginning of the line, up to where a server quotes what it was sent."""
    words = line.message[:_SEARCHED]
    quoted = _QUOTED.search(words) if line.kind == "server" else None
    return words[: quoted.start()] if quoted is not None else words
