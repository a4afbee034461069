"""What a reporter is: a decision and its attempts in, one text out. Others register theirs by entry point."""

from collections.abc import Sequence
from typing import Protocol

from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.decision import GateDecision


class Reporter(Protocol):
    """Writes one kind of report. Made without arguments; must give equal text for equal input."""

    suffix: str
    """The suffix of the files it writes, such as ``.json``: ``--regcase-report=PATH`` picks the reporter by it."""

    def write(self, decision: GateDecision, attempts: Sequence[AttemptRecord]) -> str:
        """Return the report's text; `attempts` are those of the session, in any order."""
        ...
