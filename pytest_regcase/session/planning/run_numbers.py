"""The run numbers of counted trials: the next ones that are free, as for live attempts of our own.

Knows the ledger's live rows; reads no log. A number is free while no row of the same digests decides it.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from pytest_regcase.case_files import LoadedCase
from pytest_regcase.config import Project
from pytest_regcase.records.attempt import AttemptRecord, Digests
from pytest_regcase.records.session import LiveRow
from pytest_regcase.rules.independence import counting_draws, fresh_draws
from pytest_regcase.rules.lifecycle import last_fix
from pytest_regcase.rules.sequential import outcome_of
from pytest_regcase.session.project.rules_in_force import claim_settings

if TYPE_CHECKING:
    from pytest_regcase.ledger.lookup import Since
    from pytest_regcase.ledger.store import Ledger


class Place(NamedTuple):
    """Where a draw stands among the live runs."""

    run: int
    fresh: bool
    """It is a draw of its own: none of its answers was seen before, and its seed is new."""


def given_numbers(
    project: Project, loaded: LoadedCase, ledger: "Ledger", records: Sequence[AttemptRecord]
) -> list[Place]:
    """Return a place for each new live record, in their order; their own run numbers do not matter.

    Numbers count for each set of digests from 1 since the last claimed fix. What repeats a draw decides no number.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    fresh = _fresh(loaded, ledger, records)
    settings = claim_settings(project)
    pass_over = loaded.case.expected_recovery.other_failures == "pass-over"
    places: dict[int, Place] = {}
    for digests in dict.fromkeys(each.digests for each in records):
        mine = [number for number, each in enumerate(records) if each.digests == digests]
        held = _held(loaded, ledger, digests)
        behind = max((row.run for row in held), default=0) + 1
        new = [_row(records[each], behind + place, fresh=fresh[each]) for place, each in enumerate(mine)]
        # Those that are held come first, as they do in a decision, so `distinct` sees what they drew.
        drawn = counting_draws([*held, *new], settings.independence)
        decides = [outcome_of(row.verdict, fresh=row.fresh, pass_over=pass_over) != "unknown" for row in drawn]
        taken = {row.run for row, decided in zip(drawn[: len(held)], decides, strict=False) if decided}
        free = (number for number in count(1) if number not in taken)
        number = next(free)
        for place, decided in zip(mine, decides[len(held) :], strict=True):
            places[place] = Place(number, fresh[place])
            if decided:
                number = next(free)
    return [places[number] for number in range(len(records))]


def _fresh(loaded: LoadedCase, ledger: "Ledger", records: Sequence[AttemptRecord]) -> list[bool]:
    from pytest_regcase.ledger.columns import tokens_of
    from pytest_regcase.ledger.sweeps import drawn_before

    tokens = [tokens_of(each) for each in records]
    seen = drawn_before(ledger, loaded.id, {token for each in tokens for token in each})
    return [new and seen.isdisjoint(drawn) for new, drawn in zip(fresh_draws(records), tokens, strict=True)]


def _held(loaded: LoadedCase, ledger: "Ledger", digests: Digests) -> list[LiveRow]:
    """Return the live rows of these digests since the last fix, as a decision reads them."""
    from pytest_regcase.ledger.lookup import live_attempts

    rows = live_attempts(ledger, loaded.id, loaded.case.agent, digests, _since(loaded, ledger))
    fresh = fresh_draws([each.record for each in rows])
    return [
        _row(row.record, row.record.run, fresh=new)
        for row, new in zip(rows, fresh, strict=True)
        if row.after and row.record.digests == digests
    ]


def _since(loaded: LoadedCase, ledger: "Ledger") -> "Since":
    from pytest_regcase.ledger.lookup import Since, held_rows, since_fix

    fix = last_fix(loaded.case)
    if fix is None:  # every row
        return Since(ledger.ledger_id, 0, datetime.min.replace(tzinfo=UTC), True)
    return since_fix(held_rows(ledger), ledger_id=fix.ledger_id, rows=fix.rows, at=fix.at)


def _row(record: AttemptRecord, run: int, *, fresh: bool) -> LiveRow:
    return LiveRow(
        run=run,
        verdict=record.verdict,
        session_id=record.session_id,
        fresh=fresh,
        response_digest=record.draw.response_digest if record.draw is not None else None,
    )
