from datetime import UTC, datetime
from pathlib import Path

from pytest_regcase.session.case_life.close import close_case
from pytest_regcase.session.case_life.fix import claim_fix
from pytest_regcase.session.case_life.handover import Handover, handover_of
from pytest_regcase.session.case_life.life import reopen_case, retire_case
from pytest_regcase.session.gating.standing import NO_LEDGER
from tests.session.case_life.stories import CASE, ID, LifeProject, make_life_project

AT = datetime(2026, 5, 10, 12, tzinfo=UTC)


def handover(life: LifeProject) -> Handover:
    return handover_of(life.project, life.case)


def commands(life: LifeProject) -> list[str]:
    return [each.command for each in handover(life).commands]


def test_an_open_case_is_handed_over_and_nothing_is_made(tmp_path: Path) -> None:
    life = make_life_project(tmp_path)
    found = handover(life)
    assert (found.owner, found.source_event, found.cause_status) == (
        "eval-harness-oncall",
        "eval-sweep-0412/trial-37",
        "unknown",
    )
    assert found.simulation_ids == ("deadline-no-answer-v1", "auth-rejected-v1")
    assert (found.rerun_rule.max_failure_rate, found.rerun_rule.risk, found.clean_reruns) == ("0.50", "0.30", 2)
    assert found.next_decision == "compare the server's own logs for trial 37"
    assert (found.state, found.claim, found.not_read) == ("open", None, NO_LEDGER)
    assert not (tmp_path / ".regcase").exists()


def test_each_simulation_says_what_it_does_not_test(tmp_path: Path) -> None:
    text = CASE.replace('["auth-rejected-v1"]', '["no-such-v1"]')
    one, two = handover(make_life_project(tmp_path, text)).simulations
    assert (one.id, one.hypothesis, one.kind) == ("deadline-no-answer-v1", "deadline", "deadline")
    assert (
        one.tests == "whether the agent recovers as expected when the supplier takes the request and never answers"
    )
    assert one.does_not_test[:2] == (
        "what happened in eval-sweep-0412/trial-37",
        "this fixture tests one hypothesis only",
    )
    assert (two.kind, two.tests) == (None, "nothing: there is no such simulation here")


def test_the_commands_are_those_of_the_state(tmp_path: Path) -> None:
    life = make_life_project(tmp_path)
    project, path = life.project, life.path
    # The test's own folder is not the current one, so the path is a whole one.
    assert commands(life)[0] == f"pytest --regcase {path}"
    assert f'regcase fix {ID} --note "..."' in commands(life)
    claim_fix(project, path, by="mina", at=AT)
    assert f"pytest --regcase --regcase-profile=nightly --regcase-live=2 {path}" in commands(life)
    life.live("clean")
    assert f"pytest --regcase --regcase-profile=nightly --regcase-live=1 {path}" in commands(life)
    assert handover(life).claim is not None
    life.live("clean", first=2)
    assert [each for each in commands(life) if "--regcase-live" in each] == []
    assert f"regcase close {ID}" in commands(life)
    close_case(project, path, by="mina")
    assert f'regcase reopen {ID} --why "..."' in commands(life)
    assert f"regcase close {ID}" not in commands(life)
    reopen_case(project, path, why="came back", by="mina")
    assert f'regcase fix {ID} --note "..."' in commands(life)
    assert handover(life).reasons == ("regressed: it was reopened and no fix has been claimed since",)
    retire_case(project, path, why="gone", by="mina")
    assert commands(life) == [f'regcase reopen {ID} --why "..."', f"regcase history {ID}"]


def test_a_recurrence_in_the_ledger_is_the_state(tmp_path: Path) -> None:
    life = make_life_project(tmp_path)
    claim_fix(life.project, life.path, by="mina", at=AT)
    life.live("clean", "recurred")
    found = handover(life)
    assert found.state == "regressed"
    assert found.reasons == ("the symptom came back in live run 2; red until a new fix is claimed",)
    assert f'regcase fix {ID} --note "..."' in commands(life)


def test_replies_that_are_passed_through_cost_money_and_that_is_said(tmp_path: Path) -> None:
    text = CASE.replace("[[hypotheses]]", '[replies]\nsource = "pass-through"\n\n[[hypotheses]]', 1)
    first = handover(make_life_project(tmp_path, text)).commands[0]
    assert "each costs model calls" in first.text
    assert "--regcase-live=1" in first.command


def test_a_ledger_that_cannot_be_read_is_said_and_the_rest_is_there(tmp_path: Path) -> None:
    life = make_life_project(tmp_path)
    claim_fix(life.project, life.path, by="mina", at=AT)
    next((tmp_path / ".regcase").glob("ledger*")).write_text("no database, and long enough to be none" * 100)
    found = handover(life)
    assert found.not_read is not None
    assert "the file is no SQLite database" in found.not_read
    assert (found.state, found.claim, found.clean_reruns) == ("verifying", None, 2)
