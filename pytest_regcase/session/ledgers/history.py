"""The first attempts of a case's checks over all sessions, read through the ledger's folds.

What began more than two days ago is folded into a few words a check and kept in the ledger, so that a gate reads
the rows of the last days alone. Folding changes no decision: a fold can be made from the rows again at any time.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from operator import add
from typing import TYPE_CHECKING, Any

from pytest_regcase.rules.flake import FirstAttempt, condensed, first_attempts
from pytest_regcase.rules.lifecycle import in_utc

if TYPE_CHECKING:  # a process that only plans must not load SQLAlchemy
    from pytest_regcase.ledger.lookup import CheckAttempt
    from pytest_regcase.ledger.store import Ledger

Histories = dict[str, tuple[FirstAttempt, ...]]
"""Scenario -> its first attempts, oldest first, condensed."""

FOLD_AT_ROWS = 100
"""So many rows that could be folded are; a fold costs one write."""
_LETTERS = {
    (False, False): "p",
    (True, False): "f",
    (None, False): "u",
    # With a confirm run that passed.
    (False, True): "P",
    (True, True): "F",
    (None, True): "U",
}
_FAILED = {letter: failed for (failed, _), letter in _LETTERS.items()}
_CONFIRM_PASSED = {letter: passed for (_, passed), letter in _LETTERS.items()}


def check_histories(ledger: "Ledger", case_id: str, agent: str, *, now: datetime | None = None) -> Histories:
    """Return the first attempts of every check of the case by that agent, over all sessions.

    Folds what is old enough where that is worth it; `now` is the present by default.

    Raises:
        LedgerError: the ledger cannot be read, or the fold not be kept.
    """
    from pytest_regcase.ledger.lookup import Fold, checks, save_fold
    from pytest_regcase.ledger.store import SETTLED_AFTER

    found = checks(ledger, case_id, agent)
    folded = {} if found.fold is None else _unpacked(found.fold.history)
    before = settled_before(found.rows, (now or datetime.now(UTC)) - SETTLED_AFTER)
    old = [each for each in found.rows if each.started_at < before]
    if len(old) >= FOLD_AT_ROWS:
        folded = _joined(folded, _histories(old))
        save_fold(ledger, case_id, agent, Fold(before, _packed(folded)), changes=found.changes)
        rows: Sequence[CheckAttempt] = found.rows[len(old) :]
    else:
        rows = found.rows
    return _joined(folded, _histories(rows))


def settled_before(rows: Iterable["CheckAttempt"], latest: datetime) -> datetime:
    """Return the time, `latest` or earlier, that lies within no session of `rows`: each is before it, or behind.

    A session's check is judged with its control and its confirm runs, so they are folded together.
    """
    spans: dict[str, tuple[datetime, datetime]] = {}
    for each in rows:
        first, last = spans.get(each.session_id, (each.started_at, each.started_at))
        spans[each.session_id] = min(first, each.started_at), max(last, each.started_at)
    before = in_utc(latest)
    for first, last in sorted(spans.values(), key=lambda span: span[1], reverse=True):
        if last < before:
            break
        before = min(before, first)
    return before


def _histories(rows: Sequence["CheckAttempt"]) -> Histories:
    by_scenario: dict[str, list[CheckAttempt]] = {}
    for each in rows:
        by_scenario.setdefault(each.scenario, []).append(each)
    # A failed control makes the simulations of its session unknown.
    control = by_scenario.get("control", [])
    return {name: first_attempts(made, control=control) for name, made in by_scenario.items()}


def _joined(old: Histories, new: Histories) -> Histories:
    return {name: _chained(old.get(name, ()), new.get(name, ())) for name in sorted({*old.keys(), *new.keys()})}


def _chained(old: tuple[FirstAttempt, ...], new: tuple[FirstAttempt, ...]) -> tuple[FirstAttempt, ...]:
    """Both in a row; what is folded is condensed already, so only its end may go together with what follows."""
    return (*old[:-1], *condensed((*old[-1:], *new)))


def _packed(histories: Histories) -> str:
    """A column for each field: digests and sessions are long, and the same ones come again and again."""
    digests: dict[str, int] = {}
    sessions: dict[str, int] = {}
    checks = {
        name: [
            "".join(_LETTERS[each.failed, each.confirm_passed] for each in history),
            [digests.setdefault(each.digests, len(digests)) for each in history],
            [sessions.setdefault(each.session_id, len(sessions)) for each in history],
            [each.times for each in history],
        ]
        for name, history in histories.items()
    }
    # The first part is of the case, the second of the agent: each alone comes again and again.
    heads: dict[str, int] = {}
    tails: dict[str, int] = {}
    halves = [(each[:cut], each[cut:]) for each in digests for cut in [each.find("|", each.find("|") + 1)]]
    document = {
        "digests": [
            [heads.setdefault(head, len(heads)) for head, _ in halves],
            [tails.setdefault(tail, len(tails)) for _, tail in halves],
        ],
        "heads": list(heads),
        "tails": list(tails),
        "sessions": list(sessions),
        "checks": checks,
    }
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _unpacked(history: str) -> Histories:
    # A gate unpacks tens of thousands of entries: column by column, and nothing is looked at one by one.
    read: dict[str, Any] = json.loads(history)
    of_head, of_tail = read["digests"]
    digests = list(map(add, map(read["heads"].__getitem__, of_head), map(read["tails"].__getitem__, of_tail)))
    sessions = read["sessions"]
    return {
        name: tuple(
            map(
                FirstAttempt,
                map(_FAILED.__getitem__, letters),
                map(digests.__getitem__, of_digests),
                map(sessions.__getitem__, of_sessions),
                map(_CONFIRM_PASSED.__getitem__, letters),
                times,
            )
        )
        for name, (letters, of_digests, of_sessions, times) in read["checks"].items()
    }
