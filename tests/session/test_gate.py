"""Which rows of a real ledger count, and what the session decides from them."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.case_files import LoadedCase, LoadedSimulation
from pytest_regcase.config import Project, RegcaseConfig
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan, AttemptRecord, Draw
from pytest_regcase.records.case import Fix, RegressionCase
from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.session import LiveRow, SessionRow, SessionSnapshot
from pytest_regcase.records.simulation import Simulation
from pytest_regcase.records.words import AttemptVerdict, Profile
from pytest_regcase.session.attempts.unfinished import attempt_digests
from pytest_regcase.session.gate import decide_session, ledger_for
from pytest_regcase.session.planning.since_fix import live_rows
from tests.rules.attempt_samples import (
    FIXED_AT,
    SIMULATION,
    TODAY,
    a_case,
    a_fix,
    a_quarantine,
    an_attempt,
    findings,
)

NOW = datetime(2026, 5, 20, 9, tzinfo=UTC)


class Bench:
    """A project with one ledger, in which attempts are made by hand."""

    def __init__(self, root: Path, ledger: Ledger) -> None:
        self.root = root
        self.ledger = ledger
        self.project = self.configured()
        simulation = Simulation.model_validate(
            {"id": SIMULATION, "hypothesis": "deadline", "title": "t", "fault": {"kind": "no_answer"}}
        )
        self.simulations = {SIMULATION: LoadedSimulation(root / "s.toml", simulation, "sha256:s")}
        self.snapshot = SessionSnapshot(
            session_id="s1",
            folder=str(root),
            ledger_id=ledger.ledger_id,
            agent_digests={"default": "sha256:agent-1", "other": "sha256:other"},
        )

    def configured(self, **config: Any) -> Project:
        upstream = {"base_url": "http://upstream.example/v1"}
        agents = {name: {"command": ["agent"]} for name in ("default", "other")}
        given = {"agents": agents, "upstream": upstream, **config}
        return Project(self.root, RegcaseConfig.model_validate(given))

    def loaded(self, case: RegressionCase) -> LoadedCase:
        folder = self.root / "cases" / (case.id or "")
        return LoadedCase(folder / "case.toml", folder, case)

    def fix(self, number: int) -> Fix:
        return a_fix(number, ledger_id=self.ledger.ledger_id, rows=self.ledger.row_count())

    def claimed(self, **changes: Any) -> LoadedCase:
        fix = a_fix(ledger_id=self.ledger.ledger_id, rows=self.ledger.row_count())
        return self.loaded(a_case(fix=(fix,), **changes))

    def digests(self, loaded: LoadedCase, key: AttemptKey, kind: Any) -> Any:
        simulation = self.simulations.get(key.scenario)
        hypothesis = simulation.simulation.hypothesis if simulation is not None else None
        plan = AttemptPlan(key=key, kind=kind, hypothesis=hypothesis)
        return attempt_digests(self.project, loaded, simulation, plan, self.snapshot)

    def append(self, loaded: LoadedCase, verdict: AttemptVerdict, scenario: str, **changes: Any) -> AttemptRecord:
        agent, run = changes.get("agent", "default"), changes.get("run", 1)
        key = AttemptKey(case_id=loaded.id, agent=agent, scenario=scenario, run=run)
        kind = scenario if scenario in ("control", "live") else "simulation"
        record = an_attempt(
            verdict,
            scenario,
            **{
                "case_id": loaded.id,
                "digests": self.digests(loaded, key, kind),
                "findings": findings(["max_retries"] if verdict == "not-recovered" else []),
                **changes,
            },
        )
        assert self.ledger.append(record)
        return record

    def append_live(
        self, loaded: LoadedCase, run: int, verdict: AttemptVerdict = "clean", **changes: Any
    ) -> AttemptRecord:
        session = changes.get("session_id", "s1")
        draw = Draw(fresh=True, response_digest=f"sha256:{run}", upstream_ids=(f"{session}-{run}",))
        return self.append(loaded, verdict, "live", **{"run": run, "draw": draw, **changes})

    def rows(self, loaded: LoadedCase) -> tuple[LiveRow, ...]:
        return live_rows(self.project, [loaded], self.ledger, self.snapshot).get(loaded.id, ())

    def runs(self, loaded: LoadedCase) -> list[int]:
        return [row.run for row in self.rows(loaded)]

    def decide(
        self, *cases: LoadedCase, scenarios: tuple[str, ...] = ("control", SIMULATION), **changes: Any
    ) -> GateDecision:
        profile: Profile = changes.pop("profile", "pull-request")
        keys = changes.pop("planned", None)
        if keys is None:
            keys = [
                AttemptKey(case_id=each.id, agent="default", scenario=name) for each in cases for name in scenarios
            ]
        row = SessionRow(session_id="s1", started_at=NOW, profile=profile, planned=tuple(keys))
        self.ledger.start_session(row)
        return decide_session(
            changes.pop("project", self.project),
            cases,
            self.ledger,
            row,
            snapshot=changes.pop("snapshot", self.snapshot),
            simulations=self.simulations,
            today=TODAY,
            **changes,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite3'}") as ledger:
        yield Bench(tmp_path, ledger)


def codes(decision: GateDecision) -> list[str]:
    return [each.code for each in decision.reasons]


class TestLiveRows:
    def test_without_a_fix_nothing_counts(self, bench: Bench) -> None:
        case = bench.loaded(a_case())
        bench.append_live(case, 1)
        assert live_rows(bench.project, [case], bench.ledger, bench.snapshot) == {}

    def test_rows_since_the_fix_count_in_the_order_of_time_and_run(self, bench: Bench) -> None:
        before = bench.loaded(a_case())
        bench.append_live(before, 1, "recurred", session_id="before")
        case = bench.claimed()
        bench.append_live(case, 2)
        bench.append_live(case, 1, "inconclusive")
        assert [(row.run, row.verdict) for row in bench.rows(case)] == [(1, "inconclusive"), (2, "clean")]

    def test_a_new_fix_starts_a_new_count(self, bench: Bench) -> None:
        case = bench.claimed()
        bench.append_live(case, 1, "recurred")
        second = a_fix(2, rows=bench.ledger.row_count(), ledger_id=bench.ledger.ledger_id)
        assert bench.runs(case) == [1]
        assert bench.runs(replace(case, case=a_case(fix=(*case.case.fix, second)))) == []

    def test_another_case_digest_is_another_count(self, bench: Bench) -> None:
        case = bench.claimed()
        bench.append_live(case, 1)
        edited = replace(case, case=case.case.model_copy(update={"symptom_match": None, "id": "another"}))
        assert bench.runs(edited) == []
        stricter = a_case(fix=case.case.fix, expected_recovery={"max_retries": 1})
        assert bench.runs(replace(case, case=stricter)) == []

    def test_handover_and_quarantine_change_no_count(self, bench: Bench) -> None:
        case = bench.claimed()
        bench.append_live(case, 1)
        handed = a_case(fix=case.case.fix, handover={"owner": "team-b", "next_decision": "wait"})
        assert bench.runs(replace(case, case=handed)) == [1]

    def test_another_agent_or_agent_digest_is_another_count(self, bench: Bench) -> None:
        case = bench.claimed()
        bench.append_live(case, 1)
        bench.append_live(case, 2, agent="other")
        assert bench.runs(case) == [1]
        bench.snapshot = bench.snapshot.model_copy(update={"agent": "other"})
        assert bench.runs(case) == [2]
        bench.snapshot = bench.snapshot.model_copy(update={"agent": None, "agent_digests": {"default": "new"}})
        assert bench.runs(case) == []

    def test_another_upstream_is_another_count(self, bench: Bench) -> None:
        case = bench.claimed()
        bench.append_live(case, 1)
        bench.project = bench.configured(upstream={"base_url": "http://elsewhere.example/v1"})
        assert bench.runs(case) == []

    def test_an_answer_that_was_seen_before_the_fix_is_no_fresh_draw(self, bench: Bench) -> None:
        before = bench.loaded(a_case())
        seen = bench.append_live(before, 1, session_id="before")
        case = bench.claimed()
        bench.append_live(case, 1, draw=seen.draw)
        bench.append_live(case, 2)
        assert [row.fresh for row in bench.rows(case)] == [False, True]

    def test_in_another_ledger_rows_count_from_the_date_of_the_fix_on(self, bench: Bench) -> None:
        case = bench.loaded(a_case(fix=(a_fix(ledger_id="lost", rows=5000),)))
        bench.append_live(case, 1, started_at=FIXED_AT - timedelta(hours=1), session_id="before")
        bench.append_live(case, 2, started_at=FIXED_AT + timedelta(hours=1))
        assert bench.runs(case) == [2]


class TestDecision:
    def test_green(self, bench: Bench) -> None:
        case = bench.loaded(a_case())
        bench.append(case, "finished", "control")
        bench.append(case, "recovered", SIMULATION)
        decision = bench.decide(case)
        assert (decision.decision, decision.reasons) == ("pass", ())
        assert [each.result for each in decision.cases[0].scenarios] == ["passed", "passed"]

    def test_rows_of_another_session_are_none_of_this_one(self, bench: Bench) -> None:
        case = bench.loaded(a_case())
        bench.append(case, "finished", "control", session_id="yesterday")
        bench.append(case, "recovered", SIMULATION, session_id="yesterday")
        decision = bench.decide(case)
        assert (decision.decision, codes(decision)) == ("unproven", ["nothing-run", "not-run"])

    def test_a_row_of_other_digests_is_not_run(self, bench: Bench) -> None:
        case = bench.loaded(a_case())
        bench.append(case, "finished", "control")
        bench.append(case, "recovered", SIMULATION)
        bench.simulations[SIMULATION] = replace(bench.simulations[SIMULATION], digest="sha256:edited")
        decision = bench.decide(case)
        assert (decision.decision, codes(decision)) == ("unproven", ["not-run"])

    def test_confirm_runs_belong_to_their_check(self, bench: Bench) -> None:
        case = bench.loaded(a_case())
        bench.append(case, "finished", "control")
        verdicts: tuple[AttemptVerdict, ...] = ("not-recovered", "recovered", "recovered")
        for number, verdict in enumerate(verdicts):
            bench.append(case, verdict, SIMULATION, try_number=number)
        decision = bench.decide(case)
        assert (decision.decision, codes(decision)) == ("pass", ["flaky"])

    def test_a_recurrence_stays_red_at_night_though_nothing_live_is_run(self, bench: Bench) -> None:
        case = bench.claimed()
        bench.append_live(case, 1, session_id="yesterday")
        bench.append_live(case, 2, "recurred", session_id="yesterday")
        bench.append(case, "finished", "control")
        bench.append(case, "recovered", SIMULATION)
        assert codes(bench.decide(case, profile="nightly")) == ["recurred"]
        assert bench.decide(case, profile="nightly").decision == "fail"
        assert bench.decide(case, profile="pull-request").decision == "pass"
        fixes = (*case.case.fix, a_fix(2, rows=bench.ledger.row_count(), ledger_id=bench.ledger.ledger_id))
        again = replace(case, case=a_case(fix=fixes))
        decision = bench.decide(again, profile="nightly")
        assert (decision.decision, codes(decision)) == ("pass", ["verifying"])

    def test_a_count_goes_on_over_sessions(self, bench: Bench) -> None:
        case = bench.claimed()
        for run in range(1, 30):
            bench.append_live(case, run, session_id="s1" if run > 20 else "yesterday")
        bench.append(case, "finished", "control")
        planned = [AttemptKey(case_id=case.id, agent="default", scenario="control")]
        planned += [
            AttemptKey(case_id=case.id, agent="default", scenario="live", run=run) for run in range(21, 30)
        ]
        decision = bench.decide(case, planned=planned, profile="nightly")
        assert decision.decision == "pass"
        claim = decision.cases[0].claim
        assert claim is not None
        assert (claim.kind, claim.clean, claim.sessions, decision.cases[0].state) == (
            "BOUNDED",
            29,
            2,
            "verifying",
        )

    def test_the_rule_of_the_case_wins_over_the_configuration(self, bench: Bench) -> None:
        rule = {"max_failure_rate": "0.5", "risk": "0.05"}
        case = bench.claimed(handover={"owner": "a", "next_decision": "b", "rerun_rule": rule})
        claim = bench.decide(case).cases[0].claim
        assert claim is not None
        assert (claim.need, claim.max_rate) == (5, "0.5")

    @pytest.mark.parametrize("config", [{"plan": "sprt"}, {"max_failure_rate": "1"}])
    def test_a_rule_that_cannot_be_used_makes_the_case_red_and_names_it(
        self, bench: Bench, config: dict[str, Any]
    ) -> None:
        case = bench.loaded(a_case())
        bench.append(case, "finished", "control")
        decision = bench.decide(case, project=bench.configured(**config))
        assert decision.decision == "fail"
        assert ("invalid-case", "trial-37") in [(each.code, each.case_id) for each in decision.reasons]

    def test_an_invalid_case_is_named_once(self, bench: Bench) -> None:
        case, other = bench.loaded(a_case()), bench.loaded(a_case("other"))
        bench.append(other, "finished", "control")
        bench.append(other, "recovered", SIMULATION)
        keys = [AttemptKey(case_id="other", agent="default", scenario=name) for name in ("control", SIMULATION)]
        decision = bench.decide(case, other, planned=keys, invalid={"trial-37": "no such agent"})
        assert [(each.code, each.case_id) for each in decision.reasons] == [("invalid-case", "trial-37")]
        assert decision.decision == "fail"

    def test_a_planned_case_that_is_gone_is_unproven(self, bench: Bench) -> None:
        case, gone = bench.loaded(a_case()), bench.loaded(a_case("gone"))
        for scenario, verdict in (("control", "finished"), (SIMULATION, "recovered")):
            bench.append(case, verdict, scenario)  # type: ignore[arg-type]
        keys = [
            AttemptKey(case_id=each.id, agent="default", scenario=name)
            for each in (case, gone)
            for name in ("control", SIMULATION)
        ]
        decision = bench.decide(case, planned=keys)
        assert [(each.code, each.case_id) for each in decision.reasons] == [("not-run", "gone")]

    def test_a_case_whose_replies_cost_money_is_left_out_where_no_live_attempt_may_run(self, bench: Bench) -> None:
        free, paid = bench.loaded(a_case()), bench.loaded(a_case("paid", replies={"source": "pass-through"}))
        bench.append(free, "finished", "control")
        keys = [AttemptKey(case_id=free.id, agent="default", scenario="control")]
        assert codes(bench.decide(free, paid, planned=keys)) == ["needs-live"]
        allowed = bench.snapshot.model_copy(update={"live_new": 1})
        assert codes(bench.decide(free, paid, planned=keys, snapshot=allowed)) == ["not-run"]

    def test_a_fix_of_another_ledger_is_said(self, bench: Bench) -> None:
        case = bench.loaded(a_case(fix=(a_fix(ledger_id="lost"),)))
        bench.append(case, "finished", "control")
        assert codes(bench.decide(case, scenarios=("control",))) == ["other-ledger", "verifying"]

    def test_a_ledger_that_lost_rows_is_not_the_one_of_the_fix(self, bench: Bench) -> None:
        fix = a_fix(ledger_id=bench.ledger.ledger_id, rows=7)
        case = bench.loaded(a_case(fix=(fix,)))
        for run in range(1, 8):
            bench.append_live(case, run, started_at=FIXED_AT + timedelta(hours=1), session_id="s1")
            if run == 6:
                decision = bench.decide(case, scenarios=())
                assert "other-ledger" in codes(decision)
        assert bench.runs(case) == []
        assert "other-ledger" not in codes(bench.decide(case, scenarios=()))

    def test_29_clean_runs_on_another_ledger_settle_nothing(self, bench: Bench) -> None:
        case = bench.loaded(a_case(fix=(a_fix(ledger_id="lost"),)))
        for run in range(1, 30):
            bench.append_live(case, run, started_at=FIXED_AT + timedelta(hours=1))
        bench.append(case, "finished", "control")
        decision = bench.decide(case, scenarios=("control",), profile="release")
        claim = decision.cases[0].claim
        assert claim is not None
        assert (claim.clean, claim.kind, claim.settled, decision.decision) == (29, "none", False, "unproven")

    def test_a_recurrence_stays_red_when_the_agent_changed_and_no_fix_was_claimed(self, bench: Bench) -> None:
        case = bench.claimed()
        bench.append_live(case, 1, "clean", session_id="yesterday")
        bench.append_live(case, 2, "recurred", session_id="yesterday")
        bench.snapshot = bench.snapshot.model_copy(update={"agent_digests": {"default": "sha256:agent-2"}})
        bench.append(case, "finished", "control")
        decision = bench.decide(case, scenarios=("control",), profile="nightly")
        assert (decision.decision, codes(decision)) == ("fail", ["recurred", "set-aside"])
        assert decision.cases[0].state == "regressed"
        again = replace(case, case=a_case(fix=(*case.case.fix, bench.fix(2))))
        decided = bench.decide(again, scenarios=("control",), profile="nightly")
        assert (decided.decision, decided.cases[0].state) == ("pass", "verifying")

    def test_first_attempts_of_all_sessions_say_whether_a_check_is_flaky_beyond_its_budget(
        self, bench: Bench
    ) -> None:
        case = bench.loaded(a_case())
        for night in range(20):
            session, at = f"night-{night}", NOW - timedelta(days=40 - night)
            bench.append(case, "finished", "control", session_id=session, started_at=at)
            first: AttemptVerdict = "not-recovered" if night in (2, 12) else "recovered"
            bench.append(case, first, SIMULATION, session_id=session, started_at=at)
            # None of these is a first attempt of this check by this agent.
            bench.append(case, "not-recovered", "live", session_id=session, run=night + 1)
            bench.append(case, "recovered", SIMULATION, session_id=session, started_at=at, try_number=1)
            bench.append(case, "not-recovered", SIMULATION, session_id=session, started_at=at, agent="other")
        bench.append(case, "finished", "control")
        tonight: tuple[AttemptVerdict, ...] = ("not-recovered", "recovered", "recovered")
        for number, verdict in enumerate(tonight):
            bench.append(case, verdict, SIMULATION, try_number=number)
        decision = bench.decide(case, profile="nightly")
        assert decision.decision == "fail"
        (red,) = [each for each in decision.reasons if each.red]
        assert red.code == "flaky-over-budget"
        assert "3 of 21 first attempts failed" in red.text
        lenient = bench.decide(case, profile="nightly", project=bench.configured(flake_budget="0.20"))
        assert lenient.decision == "pass"
        (by_hand,) = [each for each in decision.reasons if each.code == "quarantine-proposed"]
        assert by_hand.text.endswith("Its owner may quarantine it")
        proposing = bench.decide(case, project=bench.configured(quarantine="auto"))
        (proposed,) = [each for each in proposing.reasons if each.code == "quarantine-proposed"]
        assert 'Proposed, and written nowhere: [quarantine] kind = "flaky"' in proposed.text

    def test_a_failed_control_makes_its_sessions_first_attempts_unknown(self, bench: Bench) -> None:
        case = bench.loaded(a_case())
        for night in range(30):
            session, at = f"night-{night}", NOW - timedelta(days=40 - night)
            lost = night > 24
            bench.append(
                case, "did-not-finish" if lost else "finished", "control", session_id=session, started_at=at
            )
            bench.append(
                case, "not-recovered" if lost else "recovered", SIMULATION, session_id=session, started_at=at
            )
        bench.append(case, "finished", "control")
        bench.append(case, "recovered", SIMULATION)
        assert codes(bench.decide(case, profile="nightly")) == []

    @pytest.mark.parametrize(("confirm", "result"), [(2, "flaky"), (3, "broken")])
    def test_the_policy_is_the_configured_one(self, bench: Bench, confirm: int, result: str) -> None:
        case = bench.loaded(a_case())
        bench.append(case, "finished", "control")
        tries: tuple[AttemptVerdict, ...] = ("not-recovered", "recovered", "recovered")
        for number, verdict in enumerate(tries):
            bench.append(case, verdict, SIMULATION, try_number=number)
        decision = bench.decide(case, project=bench.configured(confirm=confirm))
        assert decision.policy == f"confirm:{confirm}"
        assert decision.cases[0].scenarios[1].result == result

    def test_what_the_project_asks_of_a_claim(self, bench: Bench) -> None:
        case = bench.claimed(baseline={"failures": 2, "trials": 20, "kind": "fresh"})
        for run in range(1, 30):
            bench.append_live(case, run)
        bench.append(case, "finished", "control")
        project = bench.configured(rule="fixed")
        claim = bench.decide(case, scenarios=("control",), project=project).cases[0].claim
        assert claim is not None
        assert (claim.rule, claim.need, claim.settled) == ("fixed", 68, False)

    def test_cap_and_claim_days_are_the_configured_ones(self, bench: Bench) -> None:
        case = bench.claimed()
        bench.append(case, "finished", "control")
        late = bench.configured(claim_days=9)
        decision = bench.decide(case, scenarios=("control",), profile="nightly", project=late)
        assert codes(decision) == ["claim-overdue"]
        set_aside = bench.loaded(a_case("aside", quarantine=a_quarantine()))
        bench.append(set_aside, "finished", "control")
        over = bench.decide(
            case, set_aside, scenarios=("control",), profile="nightly", project=bench.configured(max_quarantined=0)
        )
        assert "too-many-quarantined" in codes(over)

    def test_interrupted(self, bench: Bench) -> None:
        case = bench.loaded(a_case())
        bench.append(case, "finished", "control")
        assert codes(bench.decide(case, scenarios=("control",), interrupted=True)) == ["interrupted"]


def test_the_ledger_of_a_project_is_made_where_its_configuration_says(tmp_path: Path) -> None:
    with ledger_for(Project(tmp_path, RegcaseConfig(ledger="kept/here.sqlite3"))) as ledger:
        assert ledger.is_new
    assert (tmp_path / "kept" / "here.sqlite3").is_file()
