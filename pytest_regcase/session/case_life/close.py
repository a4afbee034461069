"""Closes a case: only where the rerun rule is met on the ledger that the fix was claimed on, and with its numbers.

Runs nothing and decides nothing: whether the claim holds the gate's own rules say. Never prints.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_regcase.case_files import LoadedCase, append_record, load_case
from pytest_regcase.config import Project
from pytest_regcase.errors import UnknownName, UsageRefused
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan
from pytest_regcase.records.canonical import canonical_json
from pytest_regcase.records.case import Closed, Fix
from pytest_regcase.records.decision import Claim
from pytest_regcase.records.session import SessionSnapshot, Transition
from pytest_regcase.rules.lifecycle import case_state, in_utc, last_fix
from pytest_regcase.session.attempts.unfinished import attempt_digests
from pytest_regcase.session.case_life.life import day, moment
from pytest_regcase.session.functions import for_function, function_digest, is_function
from pytest_regcase.session.plan import agent_config, agent_name
from pytest_regcase.session.project.who import who_acts

if TYPE_CHECKING:
    from pytest_regcase.ledger.store import Ledger

_NOT_NUMBERS: Final = frozenset({"settled", "lacks", "refuted_by_run", "missing"})
"""Keys of a claim that say what is not there; of a settled claim nothing is missing."""

_AGAINST: Final = ("recurred", "case-regressed", "failed-otherwise", "invalid-case")
"""Codes of the gate's reasons that speak against a close, whatever was counted."""

_NOTES: Final = frozenset({"set-aside", "repeated-draws", "repeated-transcripts", "identical-transcripts"})
"""Codes of what a person should know of the live runs, whether they are enough or not."""


@dataclass(frozen=True)
class Closing:
    """What became of the wish to close a case."""

    path: Path
    case_id: str
    fix_number: int
    claim: Claim | None
    """What the live runs claim; None where the rule in force is none that can be decided."""
    closed: Closed | None
    """What was appended; None where the rule is not met."""
    refused: tuple[str, ...] = ()
    """Why the case stays as it is, the first reason first; empty where it was closed."""
    notes: tuple[str, ...] = ()
    """What else the gate says of its live runs."""


def close_case(
    project: Project,
    path: Path,
    *,
    function: str | None = None,
    by: str | None = None,
    at: datetime | None = None,
) -> Closing:
    """Append a ``[[closed]]`` with the numbers of the claim to the case file `path`, where the rerun rule is met.

    The live runs are those of the case's agent, or of the test function `function`, as its attempts name it.
    Where the rule is not met, the result says why, and nothing is written.

    Raises:
        UsageRefused: there is nothing to close (no fix is claimed, or it is closed), nobody can be named as who
            does it, or a record of the case is dated later than now.
        FileError, WriteError: the case is not right as it is, or its file cannot be written.
        UnknownName: it names an agent that is not configured, or there is no such function's file.
        LedgerError: the ledger cannot be opened.
    """
    from pytest_regcase.session.gate import ledger_for
    from pytest_regcase.session.gating.standing import decide_over_ledger, snapshot_of_now

    loaded = load_case(path)
    fix = _claimed_fix(loaded)
    if function is None:
        agent_config(project, loaded.case.agent)
    with ledger_for(project) as ledger:
        snapshot = snapshot_of_now(project, [loaded], ledger)
        if function is not None:
            project, snapshot = _as_function(project, loaded, snapshot, function)
        decision = decide_over_ledger(project, [loaded], ledger, snapshot)
        claim = next((each.claim for each in decision.cases), None)
        says = {each.code: each.text for each in decision.reasons if each.case_id == loaded.id}
        notes = tuple(text for code, text in says.items() if code in _NOTES)
        refused = _refusals(says, claim, fix, ledger)
        if refused:
            return Closing(loaded.path, loaded.id, fix.number, claim, None, refused, notes)
        assert claim is not None
        by = by or who_acts(project.root, "who closes the case")
        numbers = _numbers(project, loaded, claim, snapshot)
        revision = snapshot.agent_digests[agent_name(loaded, snapshot)]
        closed = Closed(at=moment(loaded, at), by=by, revision=revision, numbers=numbers)
        append_record(loaded.path, "closed", closed, seen=loaded.case)
        ledger.add_transition(
            Transition(
                case_id=loaded.id,
                at=closed.at,
                kind="closed",
                why=f"fix {fix.number}: {claim.clean} of {claim.need} clean live runs ({claim.kind})",
                who=by,
                evidence=canonical_json(numbers).decode("utf-8", "replace"),
            )
        )
    return Closing(loaded.path, loaded.id, fix.number, claim, closed, (), notes)


def _as_function(
    project: Project, loaded: LoadedCase, snapshot: SessionSnapshot, function: str
) -> tuple[Project, SessionSnapshot]:
    """Look from where the function is the agent of the case."""
    if not is_function(function) or not (project.root / function.partition("::")[0]).is_file():
        raise UnknownName(
            f"Couldn't find the function {function!r}: it is no file of tests and a function in it.\n"
            "Give it as pytest writes it, such as tests/test_agent.py::test_my_agent."
        )
    digest = function_digest(project, loaded, snapshot, function, {})
    return for_function(project, loaded, snapshot, function, digest)


def _claimed_fix(loaded: LoadedCase) -> Fix:
    case = loaded.case
    fix, state = last_fix(case), case_state(case, recurred=False)
    if state == "closed":
        last = max(case.closed, key=lambda each: in_utc(each.at))
        raise UsageRefused(
            f"Couldn't close {loaded.id}: {last.by} did on {day(last.at)}.\n"
            f"Its numbers stand in [[closed]]: regcase history {loaded.id}\n"
            f"If it came back since, and there is another fix: regcase fix {loaded.id}"
        )
    if state == "retired":
        raise UsageRefused(
            f"Couldn't close {loaded.id}: it is retired, so nothing of it is run.\n"
            f"To bring it back: regcase reopen {loaded.id} --why ..."
        )
    if fix is None or state != "verifying":
        since = "since it was reopened" if state == "regressed" else "yet"
        raise UsageRefused(
            f"Couldn't close {loaded.id}: no fix has been claimed {since}.\n"
            f"When there is one: regcase fix {loaded.id}"
        )
    return fix


def _refusals(says: dict[str, str], claim: Claim | None, fix: Fix, ledger: "Ledger") -> tuple[str, ...]:
    against = tuple(says[code] for code in _AGAINST if code in says)
    if against or claim is None:
        return against or ("the rule in force is none that can be decided",)
    if claim.settled:
        return ()
    reasons = [f"{claim.clean} of {claim.need} clean live runs of fix {fix.number}"]
    if claim.missing:
        named = ", ".join(map(str, claim.missing[:5])) + (" and more" if len(claim.missing) > 5 else "")
        reasons.append(f"to be made again, since they proved nothing: run {named}")
    reasons += [f"not there: {each}" for each in claim.lacks]
    if "other-ledger" in says:
        reasons.append(
            f"fix {fix.number} was claimed on ledger {fix.ledger_id} with {fix.rows} attempts; at hand is"
            f" {ledger.ledger_id} with {ledger.row_count()}"
        )
    return tuple(reasons)


def _numbers(project: Project, loaded: LoadedCase, claim: Claim, snapshot: SessionSnapshot) -> dict[str, Any]:
    """The numbers that a close stands on, and what they belong to."""
    key = AttemptKey(case_id=loaded.id, agent=agent_name(loaded, snapshot), scenario="live")
    digests = attempt_digests(project, loaded, None, AttemptPlan(key=key, kind="live"), snapshot)
    numbers = {key: value for key, value in claim.to_sparse().items() if key not in _NOT_NUMBERS}
    return numbers | {
        "ledger_id": snapshot.ledger_id,
        "digests": {name: value for name, value in digests.to_sparse().items() if name != "agent"},
    }
