"""Which cases may be set aside, which may come back, and what a probation makes of them."""

import tomllib
from datetime import date, timedelta
from pathlib import Path

import pytest

from pytest_regcase.case_files import load_case, seal_case
from pytest_regcase.errors import FileError, UnknownName, UsageRefused
from pytest_regcase.records.case import Quarantine
from pytest_regcase.rules.quarantine import NoProposal
from pytest_regcase.session.case_life.life import retire_case
from pytest_regcase.session.case_life.quarantine import (
    CaseStanding,
    QuarantineReport,
    quarantine_report,
    quarantine_text,
)
from tests.session.case_life.stories import CASE, ID, LifeProject
from tests.session.flaky_project import FIRST_DAY, FLAKY, SIMULATION, days, make_flaky_project

TODAY = date(2026, 7, 1)


@pytest.fixture
def life(tmp_path: Path) -> LifeProject:
    return make_flaky_project(tmp_path)


def report(life: LifeProject, *names: str, today: date = TODAY) -> QuarantineReport:
    with life.ledger() as ledger:
        return quarantine_report(life.project, ledger, names, today=today)


def standing(life: LifeProject, today: date = TODAY) -> CaseStanding:
    (found,) = report(life, today=today).cases
    return found


def another_case(life: LifeProject, case_id: str, more: str = "") -> None:
    path = life.root / "cases" / case_id / "case.toml"
    path.parent.mkdir()
    path.write_text(CASE.replace(ID, case_id).replace("trial-37", case_id) + more)
    seal_case(path)


def quarantined(since: date, kind: str = "flaky", expires: date = date(2026, 8, 1)) -> str:
    return (
        f'\n[quarantine]\nkind = "{kind}"\nowner = "mina"\nreason = "a slow sandbox"\n'
        f"since = {since}\nexpires = {expires}\n"
    )


def set_aside(life: LifeProject, text: str) -> None:
    life.path.write_text(life.path.read_text() + text)


def test_over_the_budget_is_proposed_as_a_table_that_its_owner_may_paste(life: LifeProject) -> None:
    days(life, FLAKY)
    before = life.path.read_bytes()
    found = standing(life)
    assert found.proposed is not None
    assert (found.proposed.kind, found.proposed.owner, found.proposed.since, found.proposed.expires) == (
        "flaky",
        "eval-harness-oncall",
        TODAY,
        date(2026, 7, 31),
    )
    assert found.proposed.reason == (
        f"{SIMULATION}: 4 of 24 first attempts failed over 24 sessions, at least 11.5796 % against a budget of"
        " 10 %"
    )
    assert life.path.read_bytes() == before
    text = quarantine_text(found.proposed)
    assert Quarantine.model_validate(tomllib.loads(text)["quarantine"]) == found.proposed
    set_aside(life, "\n" + text)
    assert load_case(life.path).case.quarantine == found.proposed
    assert standing(life).proposed is None


def test_too_little_is_not_proposed(life: LifeProject) -> None:
    days(life, FLAKY[:-1].replace("f", "p", 1))
    found = standing(life)
    assert (found.proposed, found.beyond_cap, found.checks[0].over_budget) == (None, False, False)


@pytest.mark.parametrize("agent", ["a1", "a2"])
def test_a_case_that_only_fails_is_never_proposed(life: LifeProject, agent: str) -> None:
    """On a new revision, and on the old one: what its confirm runs do not pass is no flake."""
    day = days(life, "p" * 24)
    days(life, "b" * 10, first=day, agent=agent)
    (check,) = standing(life).checks
    assert check.fails_always
    assert isinstance(check.found, NoProposal)
    assert "a regression until shown otherwise, not a flake" in check.found.why
    assert standing(life).proposed is None


def test_what_fails_always_may_be_a_flake_again_once_it_passes(life: LifeProject) -> None:
    day = days(life, "p" * 24)
    day = days(life, "b" * 10, first=day)
    days(life, "p", first=day)
    assert standing(life).proposed is not None


def test_one_confirmed_failure_is_not_called_failing_always(life: LifeProject) -> None:
    days(life, FLAKY + "b")
    found = standing(life)
    assert not found.checks[0].fails_always
    assert found.proposed is not None


def test_beyond_the_cap_the_worst_are_proposed_first(tmp_path: Path) -> None:
    life = make_flaky_project(tmp_path, "max_quarantined = 2")
    set_aside(life, quarantined(FIRST_DAY, "broken", date(2026, 5, 10)))
    for case_id, outcomes in (("one", "fpppp" * 5), ("two", "fp" * 12), ("three", "fppp" * 6)):
        another_case(life, case_id)
        days(life, outcomes, case_id=case_id)
    found = report(life)
    assert (found.in_service, found.quarantined, found.most) == (4, 1, 2)
    assert [each.loaded.id for each in found.cases] == sorted(["one", "two", "three", ID])
    assert {each.loaded.id for each in found.cases if each.proposed is not None} == {"two"}
    assert {each.loaded.id for each in found.cases if each.beyond_cap} == {"one", "three"}


def test_the_way_out_counts_clean_runs_after_a_change(life: LifeProject) -> None:
    since = days(life, FLAKY) - timedelta(days=1)
    set_aside(life, quarantined(since))
    (only,) = standing(life).exits
    assert (only.scenario, only.exit.code) == (SIMULATION, "no-change")
    day = days(life, "p" * 20, first=since + timedelta(days=1))
    assert standing(life).exits[0].exit.code == "no-change"
    day = days(life, "p" * 11, first=day, agent="a2")
    (only,) = standing(life).exits
    assert (only.exit.code, only.exit.clean, only.exit.need) == ("too-few-clean", 11, 12)
    assert not standing(life).may_leave
    days(life, "p", first=day, agent="a2")
    assert standing(life).may_leave


def test_runs_before_it_was_set_aside_are_no_change_since(life: LifeProject) -> None:
    """What ran on the day itself is not known to have come later, so it counts neither."""
    day = days(life, "p" * 30, agent="a0")
    since = days(life, FLAKY, first=day) - timedelta(days=1)
    set_aside(life, quarantined(since))
    assert standing(life).exits[0].exit.code == "no-change"


def test_only_the_checks_that_were_flaky_have_to_get_better(life: LifeProject) -> None:
    days(life, FLAKY)
    end = days(life, "p" * len(FLAKY), scenario="auth-rejected-v1")
    set_aside(life, quarantined(end - timedelta(days=1)))
    assert [each.scenario for each in standing(life).exits] == [SIMULATION]


def test_by_hand_without_evidence_every_check_has_to_get_better(life: LifeProject) -> None:
    days(life, "p" * 3)
    end = days(life, "p" * 3, scenario="auth-rejected-v1")
    set_aside(life, quarantined(end))
    assert [each.scenario for each in standing(life).exits] == [SIMULATION, "auth-rejected-v1"]


def test_it_expires_on_the_day_after(life: LifeProject) -> None:
    set_aside(life, quarantined(FIRST_DAY, expires=TODAY))
    assert not standing(life).expired
    assert standing(life, TODAY + timedelta(days=1)).expired
    assert not standing(life).may_leave


def test_auto_writes_a_proposal_beside_the_ledger_and_takes_it_away_again(tmp_path: Path) -> None:
    life = make_flaky_project(tmp_path, 'quarantine = "auto"')
    day = days(life, FLAKY)
    before = life.path.read_bytes()
    found = report(life)
    path = life.root / ".regcase" / "proposals" / f"{ID}.toml"
    assert found.written == (path,)
    assert Quarantine.model_validate(tomllib.loads(path.read_text())["quarantine"]) == found.cases[0].proposed
    assert life.path.read_bytes() == before
    days(life, "p" * 60, first=day)
    assert report(life).written == ()
    assert not path.exists()


def test_manual_writes_nothing(life: LifeProject) -> None:
    days(life, FLAKY)
    assert report(life).written == ()
    assert not (life.root / ".regcase" / "proposals").exists()


def test_a_case_is_named_or_refused(life: LifeProject) -> None:
    another_case(life, "other")
    assert [each.loaded.id for each in report(life, "other").cases] == ["other"]
    with pytest.raises(UnknownName, match="nowhere"):
        report(life, "nowhere")
    retire_case(life.project, life.path, why="gone", by="mina")
    assert [each.loaded.id for each in report(life).cases] == ["other"]
    with pytest.raises(UsageRefused, match="it is retired"):
        report(life, ID)
    life.path.write_text(life.path.read_text().replace("schema = 1", "schema = 1\nnope = 1"))
    with pytest.raises(FileError, match="nope"):
        report(life, str(life.path))


def test_without_a_ledger_nothing_is_known(life: LifeProject) -> None:
    found = quarantine_report(life.project, None, today=TODAY)
    assert (found.cases[0].checks, found.cases[0].proposed) == ((), None)


def test_what_a_test_function_runs_is_a_check_of_its_own(life: LifeProject) -> None:
    function = "tests/test_agent.py::test_case"
    days(life, "p" * 24)
    end = days(life, FLAKY, by=function)
    days(life, FLAKY, by="another-agent")
    found = standing(life)
    assert [(each.scenario, each.over_budget) for each in found.checks] == [
        (SIMULATION, False),
        (f"{SIMULATION} ({function})", True),
    ]
    assert found.proposed is not None
    assert found.proposed.reason.startswith(f"{SIMULATION} ({function}): 4 of 24")
    set_aside(life, quarantined(end - timedelta(days=1)))
    assert [each.scenario for each in standing(life).exits] == [f"{SIMULATION} ({function})"]
