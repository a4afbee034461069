"""The plan of a session: the same items in every process that sees the same files and counts."""

from pathlib import Path

import pytest

from pytest_regcase.case_files import (
    LoadedCase,
    LoadedSimulation,
    append_record,
    load_case,
    load_simulations,
    write_new_case,
)
from pytest_regcase.config import AgentConfig, LimitsConfig, Project, RegcaseConfig
from pytest_regcase.errors import FileError, UnknownName, UsageRefused
from pytest_regcase.records.attempt import AttemptPlan
from pytest_regcase.records.base import Record
from pytest_regcase.records.case import (
    Closed,
    Fix,
    Handover,
    Hypothesis,
    Observation,
    RegressionCase,
    Reopened,
    ReplySource,
    RerunRule,
    Retired,
)
from pytest_regcase.records.session import LiveRow, SessionSnapshot
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.session.plan import plan_case
from pytest_regcase.session.project.rules_in_force import (
    claim_settings,
    expected_recovery,
    gate_policy,
    rerun_rule,
)

FIX = Fix.model_validate_json(
    '{"number": 1, "revision": "r", "ledger_id": "l", "rows": 0, "at": "2026-01-01T00:00:00Z", "by": "me"}'
)


def project_of(tmp_path: Path, **config: object) -> Project:
    agents = {"default": AgentConfig(command=("true",))}
    return Project(root=tmp_path, config=RegcaseConfig.model_validate({"agents": agents, **config}))


def case_of(tmp_path: Path, **changes: object) -> LoadedCase:
    case = RegressionCase.model_validate(
        {
            "id": "a-case",
            "title": "no reply at step 3",
            "observation": Observation(symptom="no reply", source_event="run-1/trial-1", failing_step=3),
            "handover": Handover(owner="me", next_decision="look"),
            "hypotheses": (
                Hypothesis(id="auth", simulations=("auth-rejected-v1",)),
                Hypothesis(id="deadline", simulations=("deadline-no-answer-v1", "auth-rejected-v1")),
            ),
            **changes,
        }
    )
    write_new_case(tmp_path / "cases" / "a-case", case, {})
    return load_case(tmp_path / "cases" / "a-case" / "case.toml")


def claimed(tmp_path: Path) -> LoadedCase:
    return append_record(case_of(tmp_path).path, "fix", FIX)


def snapshot_of(live_new: int = 0, rows: tuple[LiveRow, ...] = (), agent: str | None = None) -> SessionSnapshot:
    return SessionSnapshot(
        session_id="s", folder="/nowhere", ledger_id="l", live_new=live_new, live={"a-case": rows}, agent=agent
    )


def row(run: int, verdict: AttemptVerdict, *, fresh: bool = True) -> LiveRow:
    return LiveRow(run=run, verdict=verdict, session_id="s0", fresh=fresh)


@pytest.fixture
def simulations(tmp_path: Path) -> dict[str, LoadedSimulation]:
    return load_simulations(project_of(tmp_path))


def test_control_comes_first_then_each_simulation_once_in_file_order(
    tmp_path: Path, simulations: dict[str, LoadedSimulation]
) -> None:
    plans = plan_case(project_of(tmp_path), case_of(tmp_path), simulations, snapshot_of())
    assert [str(plan.key) for plan in plans] == [
        "a-case::control::check",
        "a-case::auth-rejected-v1::check",
        "a-case::deadline-no-answer-v1::check",
    ]
    assert [plan.hypothesis for plan in plans] == [None, "auth", "deadline"]


def test_no_live_run_without_a_claimed_fix(tmp_path: Path, simulations: dict[str, LoadedSimulation]) -> None:
    plans = plan_case(project_of(tmp_path), case_of(tmp_path), simulations, snapshot_of(live_new=5))
    assert all(plan.kind != "live" for plan in plans)


def test_live_runs_fill_holes_first_and_stop_at_the_limit(
    tmp_path: Path, simulations: dict[str, LoadedSimulation]
) -> None:
    rows = (row(1, "clean"), row(2, "inconclusive"), row(3, "clean"), row(4, "clean", fresh=False))
    plans = plan_case(project_of(tmp_path), claimed(tmp_path), simulations, snapshot_of(3, rows))
    live = [plan for plan in plans if plan.kind == "live"]
    assert [plan.key.run for plan in live] == [2, 4, 5]
    assert {plan.planned_total for plan in live} == {29}


@pytest.mark.parametrize("verdict", ["recurred", "failed-otherwise"])
def test_nothing_live_is_run_after_a_failure(
    tmp_path: Path, simulations: dict[str, LoadedSimulation], verdict: AttemptVerdict
) -> None:
    plans = plan_case(project_of(tmp_path), claimed(tmp_path), simulations, snapshot_of(9, (row(2, verdict),)))
    assert all(plan.kind != "live" for plan in plans)


def test_a_finished_count_needs_no_further_run(tmp_path: Path, simulations: dict[str, LoadedSimulation]) -> None:
    rows = tuple(row(number, "clean") for number in range(1, 30))
    plans = plan_case(project_of(tmp_path), claimed(tmp_path), simulations, snapshot_of(9, rows))
    assert all(plan.kind != "live" for plan in plans)


def live_of(
    tmp_path: Path,
    simulations: dict[str, LoadedSimulation],
    rows: tuple[LiveRow, ...],
    live_new: int = 99,
    **config: object,
) -> list[AttemptPlan]:
    plans = plan_case(project_of(tmp_path, **config), claimed(tmp_path), simulations, snapshot_of(live_new, rows))
    return [plan for plan in plans if plan.kind == "live"]


def test_a_plan_that_allows_a_failure_goes_on_and_is_stopped_by_the_next(
    tmp_path: Path, simulations: dict[str, LoadedSimulation]
) -> None:
    planned = live_of(tmp_path, simulations, (row(1, "clean"), row(2, "recurred")), plan="allow-one")
    assert [plan.key.run for plan in planned] == list(range(3, 55))
    assert {plan.stopped_by_failures for plan in planned} == {1}


def test_failures_that_a_plan_allows_stop_no_run(tmp_path: Path, simulations: dict[str, LoadedSimulation]) -> None:
    planned = live_of(tmp_path, simulations, (), plan="allow-one")
    assert {(plan.stopped_by_failures, plan.planned_total) for plan in planned} == {(2, 31)}


def test_runs_are_spread_over_the_sessions_that_are_asked_for(
    tmp_path: Path, simulations: dict[str, LoadedSimulation]
) -> None:
    planned = live_of(tmp_path, simulations, (), min_sessions=3)
    assert [plan.key.run for plan in planned] == list(range(1, 11))


def test_a_rule_that_asks_for_more_runs_plans_them(
    tmp_path: Path, simulations: dict[str, LoadedSimulation]
) -> None:
    assert len(live_of(tmp_path, simulations, (), attempts_spend=True)) == 34
    same = tuple(row(number, "clean").model_copy(update={"response_digest": "d"}) for number in (1, 2))
    again = live_of(tmp_path / "more", simulations, same, 2, independence="distinct")
    assert [plan.key.run for plan in again] == [2, 3]


@pytest.mark.parametrize(
    ("table", "record"),
    [
        ("closed", Closed(at=FIX.at, by="me", revision="r", numbers={"clean": 29})),
        ("reopened", Reopened(at=FIX.at, by="me", why="it came back")),
    ],
)
def test_nothing_live_is_run_for_a_case_that_is_not_verifying(
    tmp_path: Path, simulations: dict[str, LoadedSimulation], table: str, record: Record
) -> None:
    loaded = append_record(claimed(tmp_path).path, table, record)
    plans = plan_case(project_of(tmp_path), loaded, simulations, snapshot_of(9))
    assert [plan.kind for plan in plans] == ["control", "simulation", "simulation"]


def test_nothing_live_is_run_on_another_ledger_than_the_fix_was_claimed_on(
    tmp_path: Path, simulations: dict[str, LoadedSimulation]
) -> None:
    other = snapshot_of(9).model_copy(update={"fix_not_at_hand": ("a-case",)})
    plans = plan_case(project_of(tmp_path), claimed(tmp_path), simulations, other)
    assert [plan.kind for plan in plans] == ["control", "simulation", "simulation"]


def test_nothing_of_a_retired_case_is_run(tmp_path: Path, simulations: dict[str, LoadedSimulation]) -> None:
    retired = Retired(at=FIX.at, by="me", why="the task is gone")
    loaded = append_record(claimed(tmp_path).path, "retired", retired)
    assert plan_case(project_of(tmp_path), loaded, simulations, snapshot_of(9)) == ()


def test_what_the_project_asks_of_every_claim(tmp_path: Path) -> None:
    asked = {
        "plan": "c:1",
        "rule": "fixed",
        "comparison": "bayes",
        "min_sessions": 2,
        "attempts_spend": True,
        "independence": "distinct",
    }
    assert claim_settings(project_of(tmp_path, **asked)).to_plain() == asked
    assert gate_policy(project_of(tmp_path)).name == "confirm:2"
    assert gate_policy(project_of(tmp_path, confirm=7)).name == "confirm:7"


def test_replies_that_cost_money_are_asked_for_only_where_live_runs_are(
    tmp_path: Path, simulations: dict[str, LoadedSimulation]
) -> None:
    loaded = case_of(tmp_path, replies=ReplySource(source="pass-through"))
    assert plan_case(project_of(tmp_path), loaded, simulations, snapshot_of()) == ()
    assert len(plan_case(project_of(tmp_path), loaded, simulations, snapshot_of(live_new=1))) == 3


def test_an_unknown_agent_or_simulation_is_named_with_the_known_ones(
    tmp_path: Path, simulations: dict[str, LoadedSimulation]
) -> None:
    loaded = case_of(tmp_path)
    with pytest.raises(UnknownName, match=r"agent 'other': \[tool.regcase.agents\] has default"):
        plan_case(project_of(tmp_path), loaded, simulations, snapshot_of(agent="other"))
    del simulations["auth-rejected-v1"]
    with pytest.raises(UnknownName, match=r"'auth-rejected-v1'.*\nKnown: .*deadline-no-answer-v1"):
        plan_case(project_of(tmp_path), loaded, simulations, snapshot_of())


def test_a_deadline_below_the_stop_budget_is_refused(
    tmp_path: Path, simulations: dict[str, LoadedSimulation]
) -> None:
    project = project_of(tmp_path, agents={"default": AgentConfig(command=("true",), deadline_seconds=60)})
    with pytest.raises(FileError, match="must be above 60"):
        plan_case(project, case_of(tmp_path), simulations, snapshot_of())


def test_a_rule_that_cannot_be_decided_is_refused_before_anything_runs(
    tmp_path: Path, simulations: dict[str, LoadedSimulation]
) -> None:
    with pytest.raises(UsageRefused, match="plan"):
        plan_case(project_of(tmp_path, plan="sprt"), case_of(tmp_path), simulations, snapshot_of())


def test_limits_only_tighten(tmp_path: Path) -> None:
    loaded = case_of(
        tmp_path,
        handover=Handover(
            owner="me", next_decision="look", rerun_rule=RerunRule(max_failure_rate="0.20", risk="0.01")
        ),
    )
    limits = LimitsConfig(max_failure_rate="0.05", risk="0.05", max_retries=1, stop_within_seconds=90)
    project = project_of(tmp_path, limits=limits)
    assert rerun_rule(project, loaded.case) == RerunRule(max_failure_rate="0.05", risk="0.01")
    hair_above = RerunRule(max_failure_rate="0.05000000000000000000001", risk="0.01")
    handover = Handover(owner="me", next_decision="look", rerun_rule=hair_above)
    assert rerun_rule(project, loaded.case.model_copy(update={"handover": handover})).max_failure_rate == "0.05"
    asked = expected_recovery(project, loaded.case, "deadline")
    assert (asked.max_retries, asked.stop_within_seconds) == (1, 60)
    assert expected_recovery(project, loaded.case, "auth").max_retries == 0
