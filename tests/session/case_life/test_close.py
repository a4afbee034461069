import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.ledger.export import export_lines
from pytest_regcase.ledger.merge import merge_lines
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.session.case_life.close import Closing, close_case
from pytest_regcase.session.case_life.fix import claim_fix
from pytest_regcase.session.case_life.life import reopen_case, retire_case
from tests.session.case_life.stories import CASE, ID, LifeProject, make_life_project

AT = datetime(2026, 5, 10, 12, tzinfo=UTC)


@pytest.fixture
def life(tmp_path: Path) -> LifeProject:
    """A case whose fix is claimed; two clean runs close it."""
    life = make_life_project(tmp_path)
    claim_fix(life.project, life.path, by="mina", at=AT)
    return life


def close(life: LifeProject) -> Closing:
    """Close it; where that is refused, not a byte may change."""
    before = life.path.read_bytes()
    closing = close_case(life.project, life.path, by="omar")
    assert life.path.read_bytes().startswith(before)
    assert (life.path.read_bytes() == before) == (closing.closed is None)
    assert bool(closing.refused) == (closing.closed is None)
    return closing


def test_a_case_is_closed_with_its_numbers(life: LifeProject) -> None:
    life.live("clean", "clean")
    closing = close(life)
    assert closing.closed is not None
    (closed,) = life.case.case.closed
    assert closed == closing.closed
    assert (closed.by, closed.revision) == ("omar", life.case.case.fix[0].revision)
    numbers = closed.numbers
    assert {
        key: numbers[key] for key in ("kind", "need", "clean", "fresh", "distinct", "sessions", "fix_number")
    } == {
        "kind": "BOUNDED",
        "need": 2,
        "clean": 2,
        "fresh": 2,
        "distinct": 2,
        "sessions": 1,
        "fix_number": 1,
    }
    assert (numbers["max_rate"], numbers["risk"]) == ("0.50", "0.30")
    with life.ledger() as ledger:
        assert numbers["ledger_id"] == ledger.ledger_id
        last = ledger.transitions(ID)[-1]
    assert (last.kind, last.who, last.why) == ("closed", "omar", "fix 1: 2 of 2 clean live runs (BOUNDED)")
    assert last.evidence is not None
    assert json.loads(last.evidence) == numbers
    assert numbers["digests"]["case"] == life.case.digest_for(None, "live")


def test_eleven_of_29_are_not_enough(tmp_path: Path) -> None:
    life = make_life_project(tmp_path, CASE.partition("[handover.rerun_rule]")[0])
    claim_fix(life.project, life.path, by="mina", at=AT)
    eleven: list[AttemptVerdict] = ["clean"] * 11
    life.live(*eleven)
    assert close(life).refused == ("11 of 29 clean live runs of fix 1",)


def test_a_recurrence_refuses_it_whatever_was_counted(life: LifeProject) -> None:
    life.live("clean", "clean", "recurred")
    assert close(life).refused == ("the symptom came back in live run 3; red until a new fix is claimed",)


def test_another_failure_refutes_the_claim(life: LifeProject) -> None:
    life.live("clean", "failed-otherwise")
    assert close(life).refused == ("live run 2 failed in another way; the claimed fix does not hold",)


def test_runs_that_proved_nothing_are_named(life: LifeProject) -> None:
    life.live("inconclusive", reason="not-delivered")
    life.live("clean", first=2)
    assert close(life).refused == (
        "1 of 2 clean live runs of fix 1",
        "to be made again, since they proved nothing: run 1",
    )


def test_runs_of_another_revision_do_not_count_and_are_told(life: LifeProject) -> None:
    life.live("clean", "clean")
    life.new_revision()
    closing = close(life)
    assert closing.refused == ("0 of 2 clean live runs of fix 1",)
    assert closing.notes[0].startswith("live runs since fix 1 that do not count: 2;")


def test_a_lost_ledger_gives_no_fresh_chance(life: LifeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGCASE_LEDGER", "another.sqlite3")
    life.live("clean", "clean")
    closing = close(life)
    fix = life.case.case.fix[0]
    assert closing.refused[0] == "2 of 2 clean live runs of fix 1"
    assert closing.refused[1] == "not there: the ledger that fix 1 was claimed on"
    assert closing.refused[2].startswith(
        f"fix 1 was claimed on ledger {fix.ledger_id} with 0 attempts; at hand is"
    )


def test_a_merge_that_holds_the_ledger_will_do(life: LifeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    life.live("clean", "clean")
    with life.ledger() as here:
        lines = list(export_lines(here))
        done = here.transitions(ID)
    monkeypatch.setenv("REGCASE_LEDGER", "merged.sqlite3")
    with life.ledger() as merged:
        merge_lines(merged, lambda: iter(lines))
        merged_id = merged.ledger_id
        assert merged.transitions(ID) == done != []
    closed = close(life).closed
    assert closed is not None
    assert closed.numbers["ledger_id"] == merged_id
    assert closed.numbers["clean"] == 2


def test_a_ledger_that_lost_rows_is_another_one(tmp_path: Path) -> None:
    life = make_life_project(tmp_path)
    life.live("clean", session_id="before")
    fix = claim_fix(life.project, life.path, by="mina", at=AT).fix
    life.path.write_text(life.path.read_text().replace(f"rows = {fix.rows}", "rows = 100"))
    life.live("clean", "clean")
    assert "not there: the ledger that fix 1 was claimed on" in close(life).refused


def test_what_is_no_claim_cannot_be_closed(tmp_path: Path) -> None:
    life = make_life_project(tmp_path)
    project, path = life.project, life.path

    def refused() -> str:
        before = path.read_bytes()
        with pytest.raises(UsageRefused) as error:
            close_case(project, path, by="omar")
        assert path.read_bytes() == before
        return error.value.text

    assert "no fix has been claimed yet" in refused()
    claim_fix(project, path, by="mina", at=AT)
    life.live("clean", "clean")
    assert close(life).closed is not None
    assert "omar did on " in refused()
    reopen_case(project, path, why="came back", by="omar")
    assert "no fix has been claimed since it was reopened" in refused()
    retire_case(project, path, why="task gone", by="omar")
    assert "it is retired" in refused()


def test_a_new_fix_starts_a_new_count(life: LifeProject) -> None:
    life.live("clean", "recurred")
    claim_fix(life.project, life.path, by="mina")
    assert close(life).refused == ("0 of 2 clean live runs of fix 2",)
    life.live("clean", "clean", session_id="s2")
    assert close(life).closed is not None
