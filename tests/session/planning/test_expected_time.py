"""How long attempts will take: as the newest ones did, else as their caps allow."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_regcase.config import Project, RegcaseConfig
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan
from pytest_regcase.records.words import ScenarioKind
from pytest_regcase.session.planning.expected_time import expected_time
from tests.rules.attempt_samples import an_attempt


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite3'}") as opened:
        yield opened


def project(tmp_path: Path) -> Project:
    agents = {
        "default": {"command": ["a"], "cap_seconds": 100.0, "live_cap_seconds": 300.0},
        "other": {"command": ["a"], "cap_seconds": 200.0},
    }
    return Project(tmp_path, RegcaseConfig.model_validate({"agents": agents}))


def plan(kind: ScenarioKind, scenario: str | None = None, agent: str = "default", run: int = 1) -> AttemptPlan:
    key = AttemptKey(case_id="trial-37", agent=agent, scenario=scenario or kind, run=run)
    return AttemptPlan(key=key, kind=kind)


def test_what_never_ran_takes_as_long_as_it_may(tmp_path: Path, ledger: Ledger) -> None:
    plans = [plan("control"), plan("live"), plan("live", agent="other"), plan("control", agent="a/test.py::f")]
    found = [expected_time(project(tmp_path), [each], ledger) for each in plans]
    assert found == [(100.0, 1), (300.0, 1), (200.0, 1), (600.0, 1)]
    assert expected_time(project(tmp_path), [], ledger) == (0.0, 0)


def test_what_ran_takes_as_long_as_before(tmp_path: Path, ledger: Ledger) -> None:
    for number, seconds in enumerate((2.0, 4.0)):
        ledger.append(an_attempt("finished", "control", session_id=f"s{number}", duration_seconds=seconds))
    plans = [plan("control"), plan("simulation", "stall-v1"), plan("control", agent="other")]
    assert expected_time(project(tmp_path), plans, ledger) == (303.0, 2)
