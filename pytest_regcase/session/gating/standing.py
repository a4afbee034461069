"""Where cases stand by their files and the ledger, for whoever wants to know: nothing is run, nothing is written.

Asks the gate's own rules, as a release does; where the ledger or a setting does not let it, the file alone speaks,
and that is said. Never prints.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from pytest_regcase.case_files import LoadedCase, LoadedSimulation
from pytest_regcase.config import Project
from pytest_regcase.errors import RegcaseError
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.decision import CaseResult, Claim, GateDecision, Reason
from pytest_regcase.records.session import SessionRow, SessionSnapshot
from pytest_regcase.records.words import CaseState
from pytest_regcase.rules.lifecycle import case_state
from pytest_regcase.session.gate import decide_session
from pytest_regcase.session.planning.opening import agent_digests

NO_LEDGER = "there is no ledger here, so only what the case file says is known"


@dataclass(frozen=True)
class Standing:
    """Where cases stand; by the file alone where the ledger says nothing."""

    decision: GateDecision | None
    not_read: str | None
    """Why the ledger says nothing, in words; None where it was read."""

    def result(self, case_id: str) -> CaseResult | None:
        """Return how the case comes out over the ledger; None without a claimed fix, or a ledger."""
        return self._results.get(case_id)

    def state(self, loaded: LoadedCase) -> CaseState:
        """Return the state of the case."""
        found = self.result(loaded.id)
        return case_state(loaded.case, recurred=False) if found is None else found.state

    def claim(self, case_id: str) -> Claim | None:
        """Return what its live runs claim so far."""
        found = self.result(case_id)
        return None if found is None else found.claim

    def reasons(self, case_id: str) -> tuple[Reason, ...]:
        """Return what the gate would say of the case."""
        return () if self.decision is None else tuple(e for e in self.decision.reasons if e.case_id == case_id)

    @cached_property
    def _results(self) -> dict[str, CaseResult]:
        return {} if self.decision is None else {each.case_id: each for each in self.decision.cases}


def snapshot_of_now(project: Project, cases: Sequence[LoadedCase], ledger: Ledger) -> SessionSnapshot:
    """Return the state to look at `cases` from. It is no session: no row, no attempt and no folder carries its id.

    Raises:
        UsageRefused: a `revision_paths` of an agent is not there.
    """
    digests, _ = agent_digests(project, {each.case.agent for each in cases})
    return SessionSnapshot(
        session_id="look",
        folder=str(project.root),
        profile="release",
        ledger_id=ledger.ledger_id,
        agent_digests=digests,
    )


def decide_over_ledger(
    project: Project,
    cases: Sequence[LoadedCase],
    ledger: Ledger,
    snapshot: SessionSnapshot,
    simulations: Mapping[str, LoadedSimulation] | None = None,
) -> GateDecision:
    """Return what a release would decide of `cases` today: over the rows of the present digests, nothing run anew.

    Without `simulations` nothing is said of how the agent's logs tell them apart.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    row = SessionRow(session_id=snapshot.session_id, started_at=datetime.now(UTC), profile="release")
    return decide_session(project, cases, ledger, row, snapshot=snapshot, simulations=simulations or {})


def standing(
    project: Project,
    cases: Sequence[LoadedCase],
    ledger: Ledger | None,
    simulations: Mapping[str, LoadedSimulation] | None = None,
) -> Standing:
    """Return where `cases` stand.

    Without `simulations` only cases with a claimed fix are looked up: the ledger changes no other's state.
    """
    looked_up = [each for each in cases if each.case.fix or simulations is not None]
    if not looked_up:
        return Standing(None, None)
    if ledger is None:
        return Standing(None, NO_LEDGER)
    try:
        snapshot = snapshot_of_now(project, looked_up, ledger)
        return Standing(decide_over_ledger(project, looked_up, ledger, snapshot, simulations), None)
    except RegcaseError as error:
        return Standing(None, error.text.splitlines()[0])


def reading_ledger(project: Project) -> tuple[Ledger | None, str | None]:
    """Return the project's ledger for a look (the caller closes it), or None and why there is none."""
    try:
        found = Ledger.open_if_there(project.ledger_url())
    except RegcaseError as error:
        return None, error.text.splitlines()[0]
    return found, None if found is not None else NO_LEDGER
