from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pytest_regcase.errors import LedgerError, UsageRefused
from pytest_regcase.session.case_life.amend import amend_case
from pytest_regcase.session.case_life.fix import claim_fix
from pytest_regcase.session.case_life.life import moment, reopen_case, retire_case
from tests.session.case_life.stories import ID, LifeProject, make_life_project

AT = datetime(2026, 5, 10, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture
def life(tmp_path: Path) -> LifeProject:
    return make_life_project(tmp_path)


def claim(life: LifeProject, at: datetime = AT) -> None:
    claim_fix(life.project, life.path, revision="r", by="mina", at=at)


def test_a_case_is_reopened_with_who_and_why_and_nothing_else_changes(life: LifeProject) -> None:
    claim(life)
    before = life.path.read_bytes()
    done = reopen_case(life.project, life.path, why="came back", by="omar", at=AT + SECOND)
    assert life.path.read_bytes() == before + (
        b'\n[[reopened]]\nat = 2026-05-10T12:00:01Z\nby = "omar"\nwhy = "came back"\n'
    )
    assert done.state == "regressed"
    with life.ledger() as ledger:
        assert [(each.kind, each.who, each.why, each.at) for each in ledger.transitions(ID)] == [
            ("fix", "mina", "fix 1 is claimed", AT),
            ("reopened", "omar", "came back", AT + SECOND),
        ]


def test_a_retired_case_can_come_back(life: LifeProject) -> None:
    assert retire_case(life.project, life.path, why="task gone", by="omar").state == "retired"
    assert reopen_case(life.project, life.path, why="task is back", by="omar").state == "regressed"


def test_a_fix_of_a_retired_case_says_why_it_comes_back(life: LifeProject) -> None:
    retire_case(life.project, life.path, why="task gone", by="omar", at=AT)
    before = life.path.read_bytes()
    with pytest.raises(UsageRefused, match=r"it is retired \(omar on 2026-05-10: task gone\).*\n.*--note"):
        claim(life, AT + SECOND)
    assert life.path.read_bytes() == before
    done = claim_fix(life.project, life.path, revision="r", by="mina", at=AT + SECOND, note="the task is back")
    assert (
        "it was retired (omar on 2026-05-10: task gone); from here on it is run and judged again" in done.notices
    )


def test_what_would_say_nothing_new_is_refused_and_says_who_said_it(life: LifeProject) -> None:
    project, path = life.project, life.path
    with pytest.raises(UsageRefused, match="it is open, and was never closed"):
        reopen_case(project, path, why="w", by="omar")
    claim(life)
    reopen_case(project, path, why="came back", by="omar", at=AT + SECOND)
    before = path.read_bytes()
    with pytest.raises(UsageRefused, match=r"omar did on 2026-05-10 \(came back\)"):
        reopen_case(project, path, why="w", by="mina")
    assert path.read_bytes() == before
    retire_case(project, path, why="task gone", by="omar", at=AT + 2 * SECOND)
    before = path.read_bytes()
    with pytest.raises(UsageRefused, match=r"Couldn't retire .*omar did on 2026-05-10 \(task gone\)"):
        retire_case(project, path, why="w", by="mina")
    assert path.read_bytes() == before


def test_two_records_within_a_second_keep_their_order(life: LifeProject) -> None:
    assert moment(life.case, AT + 0.5 * SECOND) == AT
    retire_case(life.project, life.path, why="w", by="omar", at=AT + 0.2 * SECOND)
    # Within one second retiring would win, whatever came later.
    done = reopen_case(life.project, life.path, why="w", by="omar", at=AT + 0.4 * SECOND)
    assert done.at == AT + 0.4 * SECOND
    assert done.state == "regressed"


@pytest.mark.parametrize("early", [timedelta(0), -SECOND, timedelta(days=-3)])
def test_a_record_that_would_have_no_effect_is_refused(life: LifeProject, early: timedelta) -> None:
    claim(life)
    before = life.path.read_bytes()
    with pytest.raises(UsageRefused, match=r"its last record, \[\[fix\]\], is dated 2026-05-10T12:00:00\+00:00"):
        retire_case(life.project, life.path, why="w", by="omar", at=AT + early)
    assert life.path.read_bytes() == before


def test_a_ledger_that_cannot_be_opened_leaves_the_case(
    life: LifeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    (life.root / "garbage").write_text("this is no database, and long enough to be seen as none" * 100)
    monkeypatch.setenv("REGCASE_LEDGER", "garbage")
    before = life.path.read_bytes()
    with pytest.raises(LedgerError):
        retire_case(life.project, life.path, why="w", by="omar")
    assert life.path.read_bytes() == before


def test_a_secret_in_what_a_person_says_is_not_written(life: LifeProject) -> None:
    secret = "sk-proj-" + "a1B2c3D4e5" * 4
    claim_fix(life.project, life.path, by="mina", note=f"no longer {secret}", at=AT)
    retire_case(life.project, life.path, why=f"the key {secret} is gone", by="mina", at=AT + timedelta(hours=1))
    reopen_case(life.project, life.path, why=f"{secret} is back", by="mina", at=AT + timedelta(hours=2))
    amend_case(life.project, life.path, why=f"see {secret}", fields=["expected_recovery.max_retries=2"], by="mina")
    assert secret not in life.path.read_text()
    with life.ledger() as ledger:
        assert not [each for each in ledger.transitions(ID) if secret in each.why]
