"""The live attempts of a case since its last claimed fix: which of them count, and on which ledger.

Reads the ledger; what the numbers mean is decided in rules.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pytest_regcase.case_files import LoadedCase
from pytest_regcase.config import Project
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan
from pytest_regcase.records.session import LiveRow, SessionSnapshot
from pytest_regcase.rules.independence import fresh_draws
from pytest_regcase.rules.lifecycle import last_fix
from pytest_regcase.session.attempts.unfinished import attempt_digests
from pytest_regcase.session.functions import for_function, live_key
from pytest_regcase.session.plan import agent_name

if TYPE_CHECKING:  # a process that only plans must not load SQLAlchemy
    from pytest_regcase.ledger.store import Ledger


def live_rows(
    project: Project, cases: Sequence[LoadedCase], ledger: "Ledger", snapshot: SessionSnapshot
) -> dict[str, tuple[LiveRow, ...]]:
    """Return for each case with a claimed fix its live rows that count, oldest first; empty where none does.

    A row counts when it has the present digests of case, agent and model and came after the last fix: behind the
    fix's row count in the ledger that the fix names, by date in any other.
    """
    since = live_since_fix(project, cases, ledger, snapshot)
    return {name: each.counting for name, each in since.items()}


def live_rows_of_functions(
    project: Project, cases: Sequence[LoadedCase], ledger: "Ledger", snapshot: SessionSnapshot
) -> dict[str, tuple[LiveRow, ...]]:
    """Return the same of every revision of a test function that made any, by `live_key`.

    Which functions there are is known only when tests are collected, and workers read no ledger.
    """
    from pytest_regcase.ledger.functions import live_functions

    claimed = {each.id: each for each in cases if each.case.fix}
    found: dict[str, tuple[LiveRow, ...]] = {}
    for case_id, function, digest in live_functions(ledger, claimed) if claimed else ():
        loaded = claimed[case_id]
        own = for_function(project, loaded, snapshot, function, digest)
        since = live_since_fix(own[0], [loaded], ledger, own[1])
        found[live_key(case_id, digest)] = since[case_id].counting
    return found


def fix_not_at_hand(cases: Sequence[LoadedCase], ledger: "Ledger") -> tuple[str, ...]:
    """Return the ids of the cases whose last fix was claimed on a ledger that this one does not hold."""
    from pytest_regcase.ledger.lookup import held_rows, since_fix

    fixes = {each.id: fix for each in cases if (fix := last_fix(each.case)) is not None}
    held = held_rows(ledger) if fixes else {}
    return tuple(
        sorted(
            name
            for name, fix in fixes.items()
            if not since_fix(held, ledger_id=fix.ledger_id, rows=fix.rows, at=fix.at).at_hand
        )
    )


class SinceFix(NamedTuple):
    """The live rows of a case since its last claimed fix."""

    counting: tuple[LiveRow, ...] = ()
    set_aside: int = 0
    """How many have other digests."""
    recurred_set_aside: int = 0
    """How many of these show the symptom."""
    ledger_is_at_hand: bool = True
    """This is the ledger that the fix was claimed on, with at least the rows that it had then."""


def live_since_fix(
    project: Project, cases: Sequence[LoadedCase], ledger: "Ledger", snapshot: SessionSnapshot
) -> dict[str, SinceFix]:
    """Return for each case with a claimed fix what was run live since.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    from pytest_regcase.ledger.lookup import held_rows

    claimed = [each for each in cases if each.case.fix]
    held = held_rows(ledger) if claimed else {}
    return {each.id: _since_fix(project, each, ledger, held, snapshot) for each in claimed}


def _since_fix(
    project: Project,
    loaded: LoadedCase,
    ledger: "Ledger",
    held: Mapping[str, int],
    snapshot: SessionSnapshot,
) -> SinceFix:
    from pytest_regcase.ledger.lookup import live_attempts, set_aside, since_fix

    fix = last_fix(loaded.case)
    assert fix is not None
    name = agent_name(loaded, snapshot)
    plan = AttemptPlan(key=AttemptKey(case_id=loaded.id, agent=name, scenario="live"), kind="live")
    present = attempt_digests(project, loaded, None, plan, snapshot)
    since = since_fix(held, ledger_id=fix.ledger_id, rows=fix.rows, at=fix.at)
    rows = live_attempts(ledger, loaded.id, name, present, since)
    counting: list[LiveRow] = []
    seen: set[str] = set()
    # Freshness is judged over every row that shares a draw: an answer seen before the fix is no new one after it.
    for (_, record, after), fresh in zip(rows, fresh_draws([each.record for each in rows]), strict=True):
        if not after or record.agent != name or record.digests != present or record.attempt_id in seen:
            # Seen: a trial of a sweep that was counted in two ledgers, which were merged.
            continue
        seen.add(record.attempt_id)
        counting.append(
            LiveRow(
                run=record.run,
                verdict=record.verdict,
                session_id=record.session_id,
                fresh=fresh,
                response_digest=None if record.draw is None else record.draw.response_digest,
            )
        )
    others = set_aside(ledger, loaded.id, name, present, since)
    return SinceFix(tuple(counting), others.rows, others.recurred, since.at_hand)
