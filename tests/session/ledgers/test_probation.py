"""A case that gates again on weaker evidence, and the session that is red for its second failure."""

from datetime import UTC, date, datetime, time
from pathlib import Path

import pytest

from pytest_regcase.records.attempt import AttemptKey
from pytest_regcase.records.decision import Reason
from pytest_regcase.records.session import SessionRow, Transition
from pytest_regcase.records.words import Profile, TransitionKind
from pytest_regcase.session.gate import decide_session
from pytest_regcase.session.gating.standing import snapshot_of_now
from pytest_regcase.session.ledgers.probation import CheckProbation, probations
from tests.session.case_life.stories import ID, LifeProject
from tests.session.flaky_project import FLAKY, SIMULATION, days, make_flaky_project


@pytest.fixture
def life(tmp_path: Path) -> LifeProject:
    return make_flaky_project(tmp_path)


def moved(life: LifeProject, day: date, kind: TransitionKind = "on-probation", hour: int = 0) -> None:
    at = datetime.combine(day, time(hour), UTC)
    with life.ledger() as ledger:
        ledger.add_transition(Transition(case_id=ID, at=at, kind=kind, why="runs are dear", who="mina"))


def of(life: LifeProject) -> tuple[CheckProbation, ...]:
    with life.ledger() as ledger:
        return probations(life.project, life.case, ledger)


def said(life: LifeProject, day: date, profile: Profile = "nightly") -> list[Reason]:
    """What the gate says of its probation, over the session of that day."""
    key = AttemptKey(case_id=ID, agent="default", scenario=SIMULATION)
    at = datetime.combine(day, time(9), UTC)
    row = SessionRow(session_id=f"s-{day}", started_at=at, finished_at=at, profile=profile, planned=(key,))
    with life.ledger() as ledger:
        snapshot = snapshot_of_now(life.project, [life.case], ledger)
        decision = decide_session(life.project, [life.case], ledger, row, snapshot=snapshot)
    return [each for each in decision.reasons if each.code == "flaky-over-budget"]


def test_a_probation_is_failed_by_the_second_failure(life: LifeProject) -> None:
    start = days(life, FLAKY)
    moved(life, start)
    (none,) = of(life)
    assert (none.attempts, none.failures, none.failed) == (0, 0, False)
    day = days(life, "pfu", first=start, agent="a2")
    (one,) = of(life)
    assert (one.attempts, one.failures, one.failed) == (2, 1, False)
    assert one.says.startswith("on probation: 1 of 2 first attempts failed since 2026-05-25")
    days(life, "f", first=day, agent="a2")
    assert of(life)[0].failed
    assert of(life)[0].says.startswith("probation failed: 2 of 3")


def test_a_probation_is_passed_at_its_end(life: LifeProject) -> None:
    start = days(life, FLAKY)
    moved(life, start)
    runs = of(life)[0].rule.runs
    day = days(life, "f" + "p" * (runs - 1), first=start, agent="a2")
    days(life, "f", first=day, agent="a2")
    (only,) = of(life)
    assert (only.attempts, only.failures, only.failed) == (runs, 1, False)
    assert only.says.startswith("probation passed")


def test_a_probation_ends_with_the_next_quarantine(life: LifeProject) -> None:
    start = days(life, FLAKY)
    moved(life, start)
    moved(life, start, "quarantined", hour=12)
    assert of(life) == ()


def test_the_session_of_the_second_failure_is_red(life: LifeProject) -> None:
    start = days(life, FLAKY)
    moved(life, start)
    day = days(life, "pfpfp", first=start, agent="a2")
    one, two, after = (date.fromordinal(day.toordinal() - back) for back in (4, 2, 1))
    (reason,) = said(life, two)
    assert (reason.red, reason.case_id) == (True, ID)
    assert reason.text == (
        f"{SIMULATION}: probation failed: 2 of 5 first attempts failed since {start}; repair it, or set it aside"
        " again"
    )
    assert [each.red for each in said(life, two, "pull-request")] == [False]
    assert said(life, after) == []
    assert said(life, one) == [reason]  # looked at later, it was one of two


def test_the_first_failure_is_no_reason(life: LifeProject) -> None:
    start = days(life, FLAKY)
    moved(life, start)
    day = days(life, "pf", first=start, agent="a2")
    assert said(life, date.fromordinal(day.toordinal() - 1)) == []
