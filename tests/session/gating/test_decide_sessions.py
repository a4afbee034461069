"""Several sessions decided as one: each key with its own session's attempts, and what had no room."""

from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.ledger.export import export_lines
from pytest_regcase.ledger.merge import merge_lines
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptKey
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.session import SessionRow
from pytest_regcase.session.gate import decide_sessions
from pytest_regcase.session.planning.since_fix import fix_not_at_hand
from tests.rules.attempt_samples import SIMULATION, TODAY, a_case
from tests.session.test_gate import NOW, Bench, bench, codes

__all__ = ["bench"]

CONTROL = AttemptKey(case_id="trial-37", agent="default", scenario="control")


def row(session_id: str, *planned: AttemptKey, **changes: Any) -> SessionRow:
    given = {"session_id": session_id, "started_at": NOW, "profile": "pull-request", "planned": planned}
    return SessionRow.model_validate({**given, **changes})


def decide(bench: Bench, cases: Any, *rows: SessionRow, **changes: Any) -> GateDecision:
    return decide_sessions(
        bench.project,
        cases,
        bench.ledger,
        rows,
        profile="pull-request",
        snapshot=bench.snapshot,
        simulations=bench.simulations,
        today=TODAY,
        **changes,
    )


def test_two_sessions_are_one(bench: Bench) -> None:
    one, other = bench.loaded(a_case()), bench.loaded(a_case("trial-38"))
    bench.append(one, "finished", "control", session_id="s1")
    bench.append(other, "did-not-finish", "control", session_id="s2")
    of_other = CONTROL.model_copy(update={"case_id": "trial-38"})
    decision = decide(bench, [one, other], row("s1", CONTROL), row("s2", of_other))
    assert [each.scenarios[0].result for each in decision.cases] == ["passed", "inconclusive"]


def test_an_attempt_counts_for_the_session_that_planned_it_alone(bench: Bench) -> None:
    case = bench.loaded(a_case())
    bench.append(case, "finished", "control", session_id="s2")
    assert codes(decide(bench, [case], row("s1", CONTROL), row("s2"))) == ["nothing-run", "not-run"]


@pytest.mark.parametrize(("first", "result"), [("s1", "passed"), ("s2", "inconclusive")])
def test_tries_of_two_sessions_are_no_tries_of_one(bench: Bench, first: str, result: str) -> None:
    case = bench.loaded(a_case())
    bench.append(case, "finished", "control", session_id="s1")
    bench.append(case, "did-not-finish", "control", session_id="s2")
    rows = sorted([row("s1", CONTROL), row("s2", CONTROL)], key=lambda each: each.session_id != first)
    (scenario,) = decide(bench, [case], *rows).cases[0].scenarios
    assert (scenario.result, scenario.run) == (result, 1)


def test_without_a_session_nothing_is_green(bench: Bench) -> None:
    assert codes(decide(bench, [bench.loaded(a_case())])) == ["nothing-selected", "not-run"]


@pytest.mark.parametrize(
    ("scenarios", "expected"),
    [(["control", SIMULATION], "out-of-time"), (["control"], "not-run"), ([], "not-run")],
    ids=["all", "one", "none"],
)
def test_a_case_without_room_is_a_note_where_all_of_it_ran_before(
    bench: Bench, scenarios: list[str], expected: str
) -> None:
    hypotheses = [{"id": "h", "simulations": [SIMULATION]}]
    case = bench.loaded(a_case(hypotheses=hypotheses))
    for name in scenarios:
        verdict: Any = "finished" if name == "control" else "recovered"
        # Whatever the agent was then.
        digests = bench.digests(case, CONTROL.model_copy(update={"scenario": name}), _kind(name))
        bench.append(case, verdict, name, session_id="before", digests=digests.model_copy(update={"agent": "x"}))
    decision = decide(bench, [case], row("s1", left_out=("trial-37",)))
    assert expected in codes(decision)


def _kind(name: str) -> str:
    return "control" if name == "control" else "simulation"


def test_a_case_that_one_session_had_no_room_for_and_another_ran_is_that_ones(bench: Bench) -> None:
    case = bench.loaded(a_case())
    bench.append(case, "finished", "control", session_id="s2")
    assert codes(decide(bench, [case], row("s1", left_out=("trial-37",)), row("s2", CONTROL))) == []


def test_a_fix_is_at_hand_where_its_ledger_is_held(bench: Bench, tmp_path: Path) -> None:
    bench.append(bench.loaded(a_case()), "finished", "control")
    claimed, open_case = bench.claimed(), bench.loaded(a_case("trial-38"))
    assert fix_not_at_hand([claimed, open_case], bench.ledger) == ()
    with Ledger.open(f"sqlite:///{tmp_path / 'other.sqlite3'}") as other:
        assert fix_not_at_hand([claimed, open_case], other) == ("trial-37",)
        merge_lines(other, lambda: export_lines(bench.ledger))
        assert fix_not_at_hand([claimed, open_case], other) == ()
