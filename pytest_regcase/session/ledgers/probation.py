"""Cases that gate again on weaker evidence than the rule asks for: how it goes, and when a session is red for it.

A probation begins with a transition in the ledger and ends with the next one of the quarantine. Reads the ledger,
decides by the rule's numbers, never prints.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pytest_regcase.case_files import LoadedCase
from pytest_regcase.config import Project
from pytest_regcase.records.decision import Reason
from pytest_regcase.records.session import Transition
from pytest_regcase.rules.exact import percent
from pytest_regcase.rules.flake import FirstAttempt, first_attempts
from pytest_regcase.rules.lifecycle import in_utc, is_retired
from pytest_regcase.rules.quarantine import Probation, probation
from pytest_regcase.session.ledgers.flakiness import check_rows
from pytest_regcase.session.project.rules_in_force import rerun_rule

if TYPE_CHECKING:
    from pytest_regcase.ledger.store import Ledger


@dataclass(frozen=True)
class CheckProbation:
    """One check of a case that gates again on weaker evidence."""

    scenario: str
    since: datetime
    rule: Probation
    made: tuple[FirstAttempt, ...]
    """Its first `rule.runs` first attempts since then that passed or failed."""

    @property
    def attempts(self) -> int:
        """How many of its first attempts were made."""
        return len(self.made)

    @property
    def failures(self) -> int:
        """How many of them failed."""
        return sum(bool(each.failed) for each in self.made)

    @property
    def failed(self) -> bool:
        """Say whether it failed a second time before its end."""
        return self.failures > 1

    @property
    def says(self) -> str:
        """How it goes, in words."""
        made = f"{self.failures} of {self.attempts} first attempts failed since {self.since.date()}"
        if self.failed:
            return f"probation failed: {made}; repair it, or set it aside again"
        if self.attempts >= self.rule.runs:
            return f"probation passed: {made}; the rate is below {percent(self.rule.bound)}"
        return f"on probation: {made}, {self.rule.runs - self.attempts} more to go; the second failure ends it"


def probations(project: Project, loaded: LoadedCase, ledger: "Ledger") -> tuple[CheckProbation, ...]:
    """Return how the probation of each check of the case goes; empty where it is on none.

    Raises:
        LedgerError: the ledger cannot be read.
        UsageRefused: a flake budget or risk that is no proportion.
    """
    from pytest_regcase.ledger.transitions import last_of_quarantine

    last = last_of_quarantine(ledger).get(loaded.id)
    return () if last is None else tuple(_of(project, loaded, ledger, last))


def probation_reasons(
    project: Project, cases: Sequence[LoadedCase], ledger: "Ledger", sessions: Collection[str], *, red: bool
) -> Iterator[Reason]:
    """Yield a reason for each check that failed in one of `sessions`, the second time of its probation or later.

    Raises:
        LedgerError: the ledger cannot be read.
        UsageRefused: a flake budget or risk that is no proportion.
    """
    from pytest_regcase.ledger.transitions import last_of_quarantine

    last = last_of_quarantine(ledger)
    for loaded in cases:
        if loaded.id in last and not is_retired(loaded.case):
            for each in _of(project, loaded, ledger, last[loaded.id]):
                now = any(made.failed and made.session_id in sessions for made in each.made)
                if each.failed and now:
                    text = f"{each.scenario}: {each.says}"
                    yield Reason(code="flaky-over-budget", case_id=loaded.id, text=text, red=red)


def _of(project: Project, loaded: LoadedCase, ledger: "Ledger", last: Transition) -> Iterator[CheckProbation]:
    rule = probation(project.config.flake_budget, rerun_rule(project, loaded.case).risk)
    if last.kind != "on-probation" or loaded.case.quarantine is not None or rule is None:
        return
    since = in_utc(last.at)
    for name, rows, control in check_rows(loaded, ledger):
        later = (row for row in rows if in_utc(row.started_at) >= since)
        made = [each for each in first_attempts(later, control=control) if each.failed is not None]
        yield CheckProbation(name, since, rule, tuple(made[: rule.runs]))
