"""The story of one revision in time order: its sessions, every decision on it, when it was active.

Reads ledger and decision files, and no case: it can be told of a revision whose branch is gone. Never prints.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_regcase.config import Project
from pytest_regcase.records.attempt import AttemptRecord
from pytest_regcase.records.session import SessionRow
from pytest_regcase.records.version import Decided, Version
from pytest_regcase.rules.lifecycle import in_utc
from pytest_regcase.session.candidates.decision_files import DecisionFile, decision_files
from pytest_regcase.session.case_life.history import Event
from pytest_regcase.session.revisions.versions import KnownRevision, reason_text, shown_commit, shown_digest
from pytest_regcase.toml_lines import shown

if TYPE_CHECKING:
    from pytest_regcase.ledger.store import Ledger


@dataclass(frozen=True)
class RevisionHistory:
    """What is recorded of a revision."""

    revision: KnownRevision
    events: tuple[Event, ...]
    """Oldest first."""
    is_active: bool
    evaluation: Decided | None
    """The newest decision on it as a candidate."""
    attempts: tuple[AttemptRecord, ...]
    """Those of the sessions that the evaluation rests on."""
    notices: tuple[str, ...]
    """What does not agree between ledger and files."""


def revision_history(project: Project, ledger: "Ledger", revision: KnownRevision) -> RevisionHistory:
    """Return everything that ledger and decision files hold of a revision.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    from pytest_regcase.ledger.versions import decided, versions

    made = decided(ledger, revision.digest)
    files = decision_files(project, revision.digest)
    active = versions(ledger)
    events = [
        *(_session(row) for row in revision.sessions),
        *(_decision(each, files) for each in made),
        *_active(active, revision.digest),
    ]
    candidates = [each for each in made if each.about == "candidate"]
    evaluation = candidates[-1] if candidates else None
    over = evaluation.rests_on.sessions if evaluation is not None and evaluation.rests_on is not None else ()
    return RevisionHistory(
        revision,
        tuple(sorted(events, key=lambda each: each.at)),
        bool(active) and active[-1].active == revision.digest,
        evaluation,
        tuple(row.record for session_id in over for row in ledger.rows(session_id=session_id)),
        tuple(_not_the_ledgers(files, candidates)),
    )


def _session(row: SessionRow) -> Event:
    says: str = row.profile
    says += f", shard {row.shard}" if row.shard is not None else ""
    says += f", on commit {shown_commit(row.commit)}" if row.commit is not None else ""
    says += f" ({row.session_id})" + ("" if row.finished_at is not None else "; it did not end by itself")
    facts: dict[str, Any] = {"session_id": row.session_id, "profile": row.profile}
    for name in ("shard", "commit"):
        value = getattr(row, name)
        facts |= {name: value} if value is not None else {}
    return Event(in_utc(row.started_at), "session", says, facts=facts)


def _decision(decided: Decided, files: Sequence[DecisionFile]) -> Event:
    decision = decided.decision
    reasons = "; ".join(reason_text(each) for each in decision.reasons if each.red)
    says = f"{decision.decision.upper()} ({decision.profile})" + (f": {reasons}" if reasons else "")
    facts: dict[str, Any] = {"digest": decided.digest, "decision": decision.to_plain()}
    if decided.about == "session":
        return Event(in_utc(decided.at), "decided", says, facts=facts)
    file = next((each for each in files if each.holds(decided)), None)
    facts |= {"rests_on": decided.rests_on.to_plain()} if decided.rests_on is not None else {}
    facts |= {"file": shown(file.path)} if file is not None else {}
    says += f"; in {shown(file.path)}" if file is not None else "; no file of it is here"
    return Event(in_utc(decided.at), "candidate", says, facts=facts)


def _active(versions: Sequence[Version], revision: str) -> Iterator[Event]:
    for place, each in enumerate(versions):
        if each.active == revision:
            facts = {"decision": each.decision} if each.decision is not None else {}
            yield Event(in_utc(each.since), "active", "it was made active", each.who, each.why, facts)
        elif place and versions[place - 1].active == revision:
            says = f"{shown_digest(each.active)} was made active in its place"
            yield Event(in_utc(each.since), "replaced", says, each.who, each.why, {"active": each.active})


def _not_the_ledgers(files: Sequence[DecisionFile], candidates: Sequence[Decided]) -> Iterator[str]:
    for file in files:
        if not any(file.holds(each) for each in candidates):
            yield f"{shown(file.path)} is not what the ledger holds of any decision on this revision"
