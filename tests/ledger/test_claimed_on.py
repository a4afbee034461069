"""A fix names a ledger that whoever counts later can have."""

from datetime import timedelta
from pathlib import Path

from pytest_regcase.ledger.claimed_on import claimed_on
from pytest_regcase.ledger.export import export_lines
from pytest_regcase.ledger.lookup import held_rows, since_fix
from pytest_regcase.ledger.merge import merge_lines
from pytest_regcase.ledger.store import Ledger
from tests.rules.attempt_samples import FIXED_AT, a_live_attempt

URL = "sqlite:///{}"


def a_night(folder: Path, number: int, before: list[dict[str, object]]) -> tuple[str, list[dict[str, object]]]:
    """One night of a CI: a new ledger that holds the nights before, and makes two attempts."""
    with Ledger.open(URL.format(folder / f"night-{number}.sqlite3")) as ledger:
        if before:
            merge_lines(ledger, lambda: before)
        for run in (1, 2):
            at = FIXED_AT + timedelta(days=number, minutes=run)
            ledger.append(a_live_attempt(run, session_id=f"s{number}", started_at=at))
        return ledger.ledger_id, list(export_lines(ledger))


def test_a_ledger_that_makes_attempts_names_itself(tmp_path: Path) -> None:
    with Ledger.open(URL.format(tmp_path / "own.sqlite3")) as ledger:
        assert claimed_on(ledger) == (ledger.ledger_id, 0)
        _, lines = a_night(tmp_path, 1, [])
        merge_lines(ledger, lambda: lines)
        ledger.append(a_live_attempt(3, session_id="own"))
        assert claimed_on(ledger) == (ledger.ledger_id, 3)


def test_a_copy_of_what_others_made_names_the_newest_of_them(tmp_path: Path) -> None:
    _, lines = a_night(tmp_path, 1, [])
    second, lines = a_night(tmp_path, 2, lines)
    with Ledger.open(URL.format(tmp_path / "copy.sqlite3")) as copy:
        merge_lines(copy, lambda: lines)
        claim = claimed_on(copy)
    assert claim == (second, 4)
    _, later = a_night(tmp_path, 3, lines)
    with Ledger.open(URL.format(tmp_path / "later.sqlite3")) as other:
        merge_lines(other, lambda: later)
        held = held_rows(other)
        assert since_fix(held, ledger_id=claim.ledger_id, rows=claim.rows, at=FIXED_AT).at_hand
    # One that has lost the night before is not at hand.
    _, first = a_night(tmp_path, 4, [])
    with Ledger.open(URL.format(tmp_path / "lost.sqlite3")) as other:
        merge_lines(other, lambda: first)
        held = held_rows(other)
        assert not since_fix(held, ledger_id=claim.ledger_id, rows=claim.rows, at=FIXED_AT).at_hand
