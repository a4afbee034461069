"""Decides over a candidate and keeps the decision whatever it is, in the ledger and in a file. Never prints."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from pytest_regcase.config import Project
from pytest_regcase.errors import UsageRefused
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.ledger.versions import held_of
from pytest_regcase.records.version import Decided, RestsOn
from pytest_regcase.records.words import Profile
from pytest_regcase.session.candidates.decision_files import write_decision_file
from pytest_regcase.session.gating.gate_over import GateAnswer, gate_over
from pytest_regcase.session.revisions.versions import KnownRevision


@dataclass(frozen=True)
class CandidateAnswer:
    """A decision on a candidate, as it was kept."""

    answer: GateAnswer
    decided: Decided
    file: Path


def decide_candidate(
    project: Project,
    ledger: Ledger,
    revision: KnownRevision,
    *,
    profile: Profile | None = None,
    at: datetime | None = None,
    today: date | None = None,
) -> CandidateAnswer:
    """Decide over the newest sessions of a revision, with the cases and simulations of this checkout.

    A case that the candidate was not run on as it is now counts as not run. What is active is neither read nor
    changed.

    Raises:
        UsageRefused: no session here says that it ran the revision, or the project's agents cannot be used.
        FileError: a simulation of the project is not right.
        LedgerError: the ledger cannot be read or written.
        WriteError: the file cannot be written; the ledger holds the decision.
    """
    if not revision.sessions:
        raise UsageRefused(
            f"Couldn't decide on {revision.short}: no session of this ledger says that it ran it.\n"
            "Check it out and run: pytest --regcase"
        )
    # Before it is decided: what comes meanwhile makes the numbers differ, and a promotion asks for a new decision.
    held = held_of(ledger, revision.agents)
    answer = gate_over(project, ledger, profile=profile, candidate=revision, today=today)
    decided = ledger.save_decision(
        answer.decision,
        at=at or datetime.now(UTC),
        revision=revision.digest,
        rests_on=RestsOn(sessions=tuple(each.session_id for each in answer.sessions), held=held),
    )
    commits = [each.commit for each in answer.sessions if each.commit is not None]
    file = write_decision_file(
        project, decided, ledger_id=ledger.ledger_id, commit=commits[-1] if commits else None
    )
    return CandidateAnswer(answer, decided, file)
