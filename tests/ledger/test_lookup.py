"""What the gate asks, on both databases: which live rows count since a fix, here and in merges."""

from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

from pytest_regcase.ledger.export import export_lines
from pytest_regcase.ledger.lookup import SetAside, held_rows, live_attempts, newest, set_aside, since_fix
from pytest_regcase.ledger.merge import merge_lines
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import Digests, Draw
from tests.ledger.conftest import MakeUrl
from tests.rules.attempt_samples import a_live_attempt, an_attempt

NOW = datetime(2026, 5, 20, 9, tzinfo=UTC)
DIGESTS = Digests(case="c", agent="a")


def runs(ledger: Ledger, *, ledger_id: str | None = None, rows: int = 0, at: datetime = NOW) -> list[int]:
    """The runs that count since a fix, in order."""
    since = since_fix(held_rows(ledger), ledger_id=ledger_id or ledger.ledger_id, rows=rows, at=at)
    found = live_attempts(ledger, "trial-37", "default", DIGESTS, since)
    return [each.record.run for each in found if each.after]


def others(ledger: Ledger) -> SetAside:
    since = since_fix(held_rows(ledger), ledger_id=ledger.ledger_id, rows=0, at=NOW)
    return set_aside(ledger, "trial-37", "default", DIGESTS, since)


def test_rows_behind_the_fix_count_here_and_by_time_elsewhere(ledger: Ledger) -> None:
    for run in (1, 2, 3):
        ledger.append(a_live_attempt(run, started_at=NOW + timedelta(hours=run)))
    assert runs(ledger, rows=2) == [3]
    assert runs(ledger, rows=0) == [1, 2, 3]
    # More rows than there are: rows were lost, so time alone tells.
    assert runs(ledger, rows=9, at=NOW + timedelta(hours=2)) == [2, 3]
    assert runs(ledger, ledger_id="another", at=NOW + timedelta(hours=3)) == [3]


def test_rows_of_other_digests_are_counted_apart(ledger: Ledger) -> None:
    ledger.append(a_live_attempt(1))
    assert others(ledger) == SetAside(0, 0)
    for run, digests in enumerate(
        (
            Digests(case="other", agent="a"),
            Digests(case="c", agent="other"),
            Digests(case="c", agent="a", model="m"),
        )
    ):
        ledger.append(a_live_attempt(run + 2, "recurred" if run else "clean", digests=digests))
    ledger.append(a_live_attempt(9, agent="another"))
    ledger.append(a_live_attempt(9, case_id="another"))
    ledger.append(an_attempt("not-recovered", digests=Digests(case="other", agent="a")))
    assert runs(ledger) == [1]
    assert others(ledger) == SetAside(3, 2)


def test_a_row_that_shares_a_draw_comes_along_whatever_its_digests(ledger: Ledger) -> None:
    draw = Draw(fresh=True, upstream_ids=("same",))
    ledger.append(a_live_attempt(1, agent="another", draw=draw))
    ledger.append(a_live_attempt(2, agent="another"))
    ledger.append(a_live_attempt(3, draw=draw, case_id="another"))
    ledger.append(a_live_attempt(4, draw=draw))
    assert runs(ledger) == [1, 4]


def test_the_newest_come_first_and_all_of_them_can_be_had(ledger: Ledger) -> None:
    made = [
        an_attempt("recovered", session_id=f"s{number}", started_at=NOW + timedelta(hours=number))
        for number in range(7)
    ]
    for each in made[::-2] + made[-2::-2]:
        ledger.append(each)
    ledger.append(an_attempt("recovered", digests=Digests(case="c", agent="other")))
    found = newest(ledger, "trial-37", "default", {made[0].scenario: DIGESTS, "another-v1": DIGESTS})
    assert {name: list(each) for name, each in found.items()} == {made[0].scenario: made[::-1], "another-v1": []}


def test_merged_in_any_order_the_same_rows_count(new_url: MakeUrl) -> None:
    """A fix on the first of three shards after two rows; the others have rows from before and behind it."""
    shards = [Ledger.open(new_url()) for _ in range(3)]
    try:
        for place, ledger in enumerate(shards):
            for run in (1, 2, 3):
                number = 3 * place + run
                ledger.append(
                    a_live_attempt(number, session_id=f"s{place}", started_at=NOW + timedelta(hours=run))
                )
        fix: dict[str, Any] = {"ledger_id": shards[0].ledger_id, "rows": 2, "at": NOW + timedelta(hours=2)}
        found = []
        for order in list(permutations(shards))[::2]:
            with Ledger.open(new_url()) as merged:
                for each in order:
                    merge_lines(merged, lambda each=each: export_lines(each))  # type: ignore[misc]
                found.append(runs(merged, **fix))
        assert found == [[5, 8, 3, 6, 9]] * 3
        # The very ledger of the fix, with the others merged in, says the same.
        for each in shards[1:]:
            merge_lines(shards[0], lambda each=each: export_lines(each))  # type: ignore[misc]
        assert runs(shards[0], **fix) == [5, 8, 3, 6, 9]
    finally:
        for each in shards:
            each.close()
