"""Folding old checks changes nothing that a rule sees, whatever comes late."""

import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from pytest_regcase.ledger.columns import attempt_columns
from pytest_regcase.ledger.lookup import Fold, checks, save_fold
from pytest_regcase.ledger.merge import invalidate
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptRecord, Digests
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.rules.flake import condensed, first_attempts
from pytest_regcase.session.ledgers import history as ledger_history
from pytest_regcase.session.ledgers.history import Histories, check_histories, settled_before
from tests.rules.attempt_samples import SIMULATION, an_attempt

NOW = datetime(2026, 5, 20, 9, tzinfo=UTC)
LATER = NOW + timedelta(days=30)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger'}") as opened:
        yield opened


def session(number: int) -> list[AttemptRecord]:
    """One session: a control that fails now and then, a check that flakes, and its confirm runs."""
    same: dict[str, Any] = {
        "session_id": f"s{number:03d}",
        "started_at": NOW + timedelta(hours=number),
        "digests": Digests(case="c", simulation="s", agent=f"a{number // 40}"),
    }
    verdicts: list[AttemptVerdict] = ["recovered"]
    if number % 9 == 4:
        verdicts = ["not-recovered", "recovered", "recovered"]
    control: AttemptVerdict = "did-not-finish" if number % 13 == 5 else "finished"
    return [
        an_attempt(control, "control", **same),
        *(an_attempt(verdict, try_number=place, **same) for place, verdict in enumerate(verdicts)),
    ]


def plain(ledger: Ledger) -> Histories:
    """The same from whole records, without any fold."""
    rows = [row.record for row in ledger.rows()]
    control = [row for row in rows if row.scenario == "control"]
    names = sorted({row.scenario for row in rows})
    return {
        name: condensed(first_attempts([row for row in rows if row.scenario == name], control=control))
        for name in names
    }


def histories(ledger: Ledger, now: datetime = LATER) -> Histories:
    return check_histories(ledger, "trial-37", "default", now=now)


def folds(ledger: Ledger) -> int:
    return int(ledger.database.read(lambda c: c.execute(text("SELECT count(*) FROM folds")).scalar_one()))


def append(ledger: Ledger, numbers: range) -> None:
    """All in one transaction, which is what takes the time."""

    def store(connection: Connection) -> None:
        for number in numbers:
            for record in session(number):
                assert ledger.insert(connection, record, attempt_columns(record))

    ledger.database.write("store", store)


def test_what_is_folded_is_what_the_rows_say(ledger: Ledger) -> None:
    append(ledger, range(100))
    assert histories(ledger) == plain(ledger)
    assert folds(ledger) == 1
    assert checks(ledger, "trial-37", "default").rows == []
    assert histories(ledger) == plain(ledger)


def test_sessions_of_the_last_days_are_read_as_rows_and_joined(ledger: Ledger) -> None:
    append(ledger, range(130))
    now = NOW + timedelta(hours=130)
    assert histories(ledger, now) == plain(ledger)
    assert 40 * 2 <= len(checks(ledger, "trial-37", "default").rows) < 60 * 2
    append(ledger, range(130, 135))
    assert histories(ledger, now) == plain(ledger)


def test_a_few_rows_are_not_worth_a_fold(ledger: Ledger) -> None:
    append(ledger, range(5))
    assert histories(ledger) == plain(ledger)
    assert folds(ledger) == 0


def test_a_row_that_comes_late_undoes_the_fold(ledger: Ledger) -> None:
    append(ledger, range(50))
    append(ledger, range(51, 100))
    histories(ledger)
    append(ledger, range(50, 51))
    assert folds(ledger) == 0
    assert histories(ledger) == plain(ledger)


def test_a_row_that_is_invalidated_undoes_the_fold(ledger: Ledger) -> None:
    append(ledger, range(100))
    histories(ledger)
    assert invalidate(ledger, why="wrong", at=NOW, attempt_id=None, session_id="s004") == 4
    assert folds(ledger) == 0
    assert histories(ledger) == plain(ledger)


def test_a_fold_made_from_what_has_changed_since_is_not_kept(ledger: Ledger) -> None:
    append(ledger, range(10))
    read = checks(ledger, "trial-37", "default")
    append(ledger, range(10, 11))
    assert not save_fold(ledger, "trial-37", "default", Fold(LATER, "{}"), changes=read.changes)
    assert folds(ledger) == 0


def test_another_agents_checks_are_their_own(ledger: Ledger) -> None:
    append(ledger, range(3))
    ledger.append(an_attempt("not-recovered", agent="other"))
    assert histories(ledger)[SIMULATION][0].times == 3
    assert [each.failed for each in check_histories(ledger, "trial-37", "other")[SIMULATION]] == [True]


def test_no_session_is_cut_in_two(ledger: Ledger) -> None:
    long: dict[str, Any] = {"session_id": "long", "started_at": NOW + timedelta(hours=1)}
    ledger.append(an_attempt("finished", "control", **long))
    append(ledger, range(3, 6))
    ledger.append(an_attempt("recovered", **{**long, "started_at": NOW + timedelta(hours=50)}))
    rows = checks(ledger, "trial-37", "default").rows
    assert settled_before(rows, NOW + timedelta(hours=10)) == NOW + timedelta(hours=1)
    assert settled_before(rows, NOW + timedelta(hours=60)) == NOW + timedelta(hours=60)
    assert settled_before([], NOW) == NOW


VERDICTS: Sequence[Sequence[AttemptVerdict]] = (
    ("recovered",),
    ("recovered",),
    ("not-recovered", "recovered", "recovered"),
    ("not-recovered", "not-recovered", "recovered"),
    ("inconclusive", "recovered"),
    ("inconclusive", "inconclusive"),
)
SESSIONS = st.lists(
    st.tuples(
        st.sampled_from(VERDICTS), st.sampled_from(["finished"] * 3 + ["did-not-finish"]), st.sampled_from("aab")
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=12, deadline=None)
@given(SESSIONS, st.lists(st.integers(0, 30), max_size=4))
def test_folded_at_any_times_it_says_what_the_rows_say(
    sessions: list[tuple[Sequence[AttemptVerdict], AttemptVerdict, str]], looks: list[int]
) -> None:
    """The same histories, hence the same decision: the gate learns of first attempts from nothing else."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(ledger_history, "FOLD_AT_ROWS", 1)
        with Ledger.open(f"sqlite:///{folder}/ledger") as ledger:
            done = 0
            for end in (*sorted(each for each in looks if each < len(sessions)), len(sessions)):
                append_as(ledger, sessions[done:end], first=done)
                done = end
                assert histories(ledger, NOW + timedelta(hours=12 * end + 24)) == plain(ledger)
            assert histories(ledger) == plain(ledger)
            assert checks(ledger, "trial-37", "default").rows == []
            assert histories(ledger) == plain(ledger)


def append_as(
    ledger: Ledger, sessions: list[tuple[Sequence[AttemptVerdict], AttemptVerdict, str]], first: int
) -> None:
    """Append sessions twelve hours apart, all in one transaction."""

    def store(connection: Connection) -> None:
        for number, (verdicts, control, agent) in enumerate(sessions, first):
            same: dict[str, Any] = {
                "session_id": f"s{number:03d}",
                "started_at": NOW + timedelta(hours=12 * number),
                "digests": Digests(case="c", simulation="s", agent=agent),
            }
            made = [an_attempt(verdict, try_number=place, **same) for place, verdict in enumerate(verdicts)]
            for record in (an_attempt(control, "control", **same), *made):
                assert ledger.insert(connection, record, attempt_columns(record))

    ledger.database.write("store", store)
