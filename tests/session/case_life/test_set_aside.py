"""A quarantine by hand, and the way out of one: in the case file and in the ledger, with who, when and why."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from pytest_regcase.case_files import LoadedCase, load_case
from pytest_regcase.case_files.guarded import appended_since
from pytest_regcase.errors import ClaimRefused, UsageRefused
from pytest_regcase.lint.loosened import loosened_problems
from pytest_regcase.records.case import RerunRule
from pytest_regcase.session.case_life.life import retire_case
from pytest_regcase.session.case_life.quarantine import quarantine_report
from pytest_regcase.session.case_life.set_aside import Moved, lift, set_aside_broken
from tests.session.case_life.stories import ID, LifeProject
from tests.session.flaky_project import FLAKY, SIMULATION, days, make_flaky_project

AT = datetime(2026, 6, 1, 12, tzinfo=UTC)
LATER = AT + timedelta(days=2)
FIX = """
[[fix]]
number = 1
revision = "r"
ledger_id = "l"
rows = 0
at = 2026-05-01T00:00:00Z
by = "mina"
"""


@pytest.fixture
def life(tmp_path: Path) -> LifeProject:
    return make_flaky_project(tmp_path)


def broken(life: LifeProject, days_: int = 14, at: datetime = AT) -> Moved:
    return set_aside_broken(life.project, life.path, why="the sandbox is down", days=days_, by="mina", at=at)


def flaky(life: LifeProject, since: date) -> None:
    text = (
        f'\n[quarantine]\nkind = "flaky"\nowner = "mina"\nreason = "4 of 24"\nsince = {since}\n'
        f"expires = {since + timedelta(days=30)}\n"
    )
    life.path.write_text(life.path.read_text() + text)


def looser(before: LoadedCase, now: LoadedCase) -> Iterator[str]:
    rule = RerunRule()
    return (each.code for each in loosened_problems(before.case, now.case, configured=(rule, rule)))


def test_broken_by_hand_stands_above_the_seal_and_is_recorded(life: LifeProject) -> None:
    life.path.write_text(life.path.read_text() + FIX)
    text, before = life.path.read_text(), load_case(life.path)
    done = broken(life, 7)
    now = load_case(life.path)
    found = now.case.quarantine
    assert found == done.quarantine
    assert found is not None
    assert (found.kind, found.owner, found.reason, found.since, found.expires) == (
        "broken",
        "eval-harness-oncall",
        "the sandbox is down",
        date(2026, 6, 1),
        date(2026, 6, 8),
    )
    (amendment,) = now.case.amendments
    assert (amendment.what, amendment.why, amendment.who, amendment.at, amendment.old_digest) == (
        'quarantine.expires absent -> "2026-06-08"',
        "the sandbox is down",
        "mina",
        AT,
        None,
    )
    head, seal = text.split("[seal]")
    assert life.path.read_text().startswith(f'{head}[quarantine]\nkind = "broken"\n')
    assert f"\n\n[seal]{seal}" in life.path.read_text()
    with life.ledger() as ledger:
        (transition,) = ledger.transitions(ID)
    assert (transition.kind, transition.why, transition.who, transition.at, transition.evidence) == (
        "quarantined",
        "the sandbox is down",
        "mina",
        AT,
        amendment.what,
    )
    assert list(looser(before, now)) == []
    assert len(appended_since(before.case, now.case)) == 1
    for kind in ("control", "simulation", "live"):
        assert now.digest_for("deadline", kind) == before.digest_for("deadline", kind)


def test_it_lasts_at_most_14_days(life: LifeProject) -> None:
    before = life.path.read_bytes()
    with pytest.raises(ValueError, match="at most 14 days"):
        broken(life, 15)
    assert life.path.read_bytes() == before
    assert broken(life).quarantine.expires == date(2026, 6, 15)


def test_lifting_takes_out_what_was_put_in(life: LifeProject) -> None:
    text = life.path.read_text()
    broken(life)
    done = lift(life.project, life.path, why="it is up again", by="omar", at=LATER)
    assert (done.kind, done.says) == ("lifted", ())
    now = load_case(life.path)
    assert now.case.quarantine is None
    assert life.path.read_text().startswith(text)
    assert [each.what for each in now.case.amendments] == [
        'quarantine.expires absent -> "2026-06-15"',
        'quarantine.expires "2026-06-15" -> absent',
    ]
    with life.ledger() as ledger:
        assert [(each.kind, each.who) for each in ledger.transitions(ID)] == [
            ("quarantined", "mina"),
            ("lifted", "omar"),
        ]


def test_a_comment_above_what_follows_stays(life: LifeProject) -> None:
    text = life.path.read_text()
    life.path.write_text(text.replace("[seal]", "# ours\n[seal]"))
    broken(life)
    lift(life.project, life.path, why="it is up again", by="omar", at=LATER)
    assert life.path.read_text().startswith(text.replace("[seal]", "# ours\n[seal]"))


def test_one_in_another_form_is_left_to_a_person(life: LifeProject) -> None:
    table = '{ kind = "broken", owner = "o", reason = "r", since = 2026-06-01, expires = 2026-06-02 }'
    life.path.write_text(life.path.read_text().replace("schema = 1", f"schema = 1\nquarantine = {table}"))
    before = life.path.read_bytes()
    with pytest.raises(UsageRefused, match="Take it out by hand"):
        lift(life.project, life.path, why="it is up again", by="omar", at=LATER)
    assert life.path.read_bytes() == before


def test_what_is_set_aside_is_not_set_aside_again(life: LifeProject) -> None:
    broken(life)
    before = life.path.read_bytes()
    with pytest.raises(UsageRefused, match=r"it is already, until 2026-06-15.*\n.*--lift"):
        broken(life, at=LATER)
    assert life.path.read_bytes() == before


def test_a_retired_case_is_neither_set_aside_nor_lifted(life: LifeProject) -> None:
    retire_case(life.project, life.path, why="gone", by="mina")
    with pytest.raises(UsageRefused, match="it is retired"):
        broken(life)
    with pytest.raises(UsageRefused, match="it has none"):
        lift(life.project, life.path, why="x", by="omar")


def test_never_more_than_the_cap(tmp_path: Path) -> None:
    life = make_flaky_project(tmp_path, "max_quarantined = 0")
    with pytest.raises(UsageRefused, match="0 of 1 cases are, and at most 0 may be"):
        broken(life)
    assert load_case(life.path).case.quarantine is None


def test_a_flaky_one_leaves_by_the_rule(life: LifeProject) -> None:
    end = days(life, FLAKY)
    flaky(life, end - timedelta(days=1))
    day = days(life, "p" * 11, first=end, agent="a2")
    before = life.path.read_bytes()
    with pytest.raises(ClaimRefused) as refused:
        lift(life.project, life.path, why="repaired", by="mina", at=AT)
    assert f"{SIMULATION}: exit refused: 11 clean shows" in refused.value.text
    assert "1 more clean first attempts are needed" in refused.value.text
    assert f"regcase quarantine {ID} --lift --probation" in refused.value.text
    assert life.path.read_bytes() == before
    days(life, "p", first=day, agent="a2")
    done = lift(life.project, life.path, why="repaired", by="mina", on_probation=True, at=datetime.now(UTC))
    assert (done.kind, load_case(life.path).case.quarantine) == ("lifted", None)
    assert done.says[0].startswith(f"{SIMULATION}: exit granted: 12 clean")


def test_without_a_change_there_is_no_probation_either(life: LifeProject) -> None:
    end = days(life, FLAKY)
    flaky(life, end - timedelta(days=1))
    days(life, "p" * 30, first=end)
    with pytest.raises(ClaimRefused, match="nothing was changed since it was quarantined") as refused:
        lift(life.project, life.path, why="repaired", by="mina", on_probation=True, at=AT)
    assert "--probation" not in refused.value.text


def test_a_probation_is_recorded_and_followed(life: LifeProject) -> None:
    end = days(life, FLAKY)
    flaky(life, end - timedelta(days=1))
    day = days(life, "ppp", first=end, agent="a2")
    at = datetime(day.year, day.month, day.day, tzinfo=UTC)
    done = lift(life.project, life.path, why="runs are dear", by="mina", on_probation=True, at=at)
    assert done.kind == "on-probation"
    assert done.says[0].startswith(f"{SIMULATION}: probation: it gates again, red on the second failure")
    assert load_case(life.path).case.amendments[-1].why == "runs are dear (on probation)"
    days(life, "pf", first=day, agent="a2")
    with life.ledger() as ledger:
        (found,) = quarantine_report(life.project, ledger, today=day).cases[0].probations
    assert (found.attempts, found.failures, found.since) == (2, 1, at)


def test_a_ledger_without_its_runs_shows_nothing(life: LifeProject) -> None:
    flaky(life, date(2026, 5, 20))
    with pytest.raises(ClaimRefused, match="this ledger holds no attempt"):
        lift(life.project, life.path, why="repaired", by="mina", at=AT)


def test_probation_is_for_flaky_cases(life: LifeProject) -> None:
    broken(life)
    with pytest.raises(UsageRefused, match="that is for a flaky case"):
        lift(life.project, life.path, why="repaired", by="mina", on_probation=True, at=LATER)
