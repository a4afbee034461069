from datetime import UTC, date, datetime, timedelta
from typing import Any, ClassVar

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.decision import GateDecision, ScenarioResult
from pytest_regcase.records.words import AttemptVerdict, Profile
from pytest_regcase.rules.claim_plan import ClaimSettings
from pytest_regcase.rules.gate import decide
from pytest_regcase.rules.gate_inputs import CaseInputs, PlannedCheck
from tests.rules.attempt_samples import (
    FIXED_AT,
    SIMULATION,
    TODAY,
    a_case,
    a_fix,
    a_quarantine,
    an_attempt,
    case_inputs,
    control,
    findings,
    gate_inputs,
    good_checks,
    live,
    live_run,
    simulation,
    tries,
)

PROFILES: tuple[Profile, ...] = ("pull-request", "nightly", "release")
CLAIMED = a_case(fix=(a_fix(),))


def clean(count: int) -> list[AttemptVerdict]:
    return ["clean"] * count


def codes(decision: GateDecision, *, red: bool | None = None) -> list[str]:
    return [each.code for each in decision.reasons if red is None or each.red is red]


def only(decision: GateDecision, name: str = SIMULATION) -> ScenarioResult:
    (case,) = decision.cases
    return next(each for each in case.scenarios if each.name == name)


@pytest.mark.parametrize("profile", PROFILES)
def test_good_checks_pass(profile: Profile) -> None:
    decision = decide(gate_inputs(case_inputs(), profile=profile))
    assert (decision.decision, decision.reasons, decision.policy) == ("pass", (), "confirm:2")
    assert [each.name for each in decision.cases[0].scenarios] == ["control", SIMULATION]
    assert decision.cases[0].state == "open"
    assert decision.cases[0].claim is None


@pytest.mark.parametrize("profile", PROFILES)
def test_a_broken_check_fails_in_every_profile(profile: Profile) -> None:
    checks = (control("finished"), simulation("not-recovered", "recovered", "not-recovered"))
    decision = decide(gate_inputs(case_inputs(checks=checks), profile=profile))
    assert decision.decision == "fail"
    assert codes(decision) == ["check-broken"]
    assert decision.reasons[0].text == f"{SIMULATION}: max_retries broken in 2 of 3 attempts"
    shown = only(decision)
    assert (shown.result, shown.run, shown.counts) == ("broken", 3, {"not-recovered": 2, "recovered": 1})
    assert [(each.expectation, each.code) for each in shown.broken] == [("max_retries", "seen")]


def test_a_failed_check_without_confirm_runs_is_red_and_says_so() -> None:
    decision = decide(gate_inputs(case_inputs(checks=(control("finished"), simulation("not-recovered")))))
    assert decision.decision == "fail"
    assert decision.reasons[0].text.endswith("in 1 of 1 attempts, not confirmed by a further run")


def test_a_flaky_check_is_shown_and_not_red() -> None:
    checks = (control("finished"), simulation("not-recovered", "recovered", "recovered"))
    decision = decide(gate_inputs(case_inputs(checks=checks)))
    assert (decision.decision, codes(decision)) == ("pass", ["flaky"])
    assert only(decision).flaky


@pytest.mark.parametrize("profile", PROFILES)
def test_a_check_that_proved_nothing_twice_is_unproven(profile: Profile) -> None:
    checks = (control("finished"), simulation("inconclusive", "inconclusive"))
    decision = decide(gate_inputs(case_inputs(checks=checks), profile=profile))
    assert (decision.decision, codes(decision)) == ("unproven", ["check-inconclusive"])
    assert "the fault did not reach the agent" in decision.reasons[0].text


def test_a_further_try_in_place_of_one_that_proved_nothing_is_enough() -> None:
    checks = (control("did-not-finish", "finished"), simulation("inconclusive", "recovered"))
    assert decide(gate_inputs(case_inputs(checks=checks))).decision == "pass"


def test_no_try_turns_a_worker_crash_green() -> None:
    crashed = an_attempt("inconclusive", SIMULATION, reason="worker-crashed")
    good = an_attempt("recovered", SIMULATION, try_number=1, findings=findings())
    check = PlannedCheck(scenario=SIMULATION, kind="simulation", tries=(good, crashed))
    decision = decide(gate_inputs(case_inputs(checks=(control("finished"), check))))
    assert (decision.decision, codes(decision)) == ("unproven", ["check-inconclusive"])
    assert "the test worker crashed" in decision.reasons[0].text


@pytest.mark.parametrize("control_tries", [("did-not-finish", "did-not-finish"), ("inconclusive", "inconclusive")])
@pytest.mark.parametrize("simulated", [("recovered",), ("not-recovered", "not-recovered", "not-recovered")])
def test_a_control_that_did_not_finish_makes_the_simulations_prove_nothing(
    control_tries: Any, simulated: Any
) -> None:
    checks = (simulation(*simulated), control(*control_tries))
    decision = decide(gate_inputs(case_inputs(checks=checks)))
    assert decision.decision == "unproven"
    assert codes(decision) == ["check-inconclusive", "control-failed"]
    assert only(decision).result == "inconclusive"
    assert only(decision).why == "the control of this session did not finish"


def test_a_control_that_was_not_run_says_nothing_about_the_simulations() -> None:
    decision = decide(gate_inputs(case_inputs(checks=(control(), simulation("recovered")))))
    assert only(decision).result == "passed"
    assert (decision.decision, codes(decision)) == ("unproven", ["not-run"])


def test_what_an_agent_that_never_gets_there_shows() -> None:
    decision = decide(gate_inputs(case_inputs(checks=(control("did-not-finish"),))))
    assert "the agent ended before it asked for the failing step" in decision.reasons[0].text


def test_checked_counts_what_was_decided_on_the_last_attempt() -> None:
    first = an_attempt("not-recovered", findings=findings(broken=["mark_failure", "log_failure"]))
    second = an_attempt("recovered", try_number=1, findings=findings(unseen=["max_retries"]))
    third = an_attempt("inconclusive", try_number=2, reason="off-the-prefix")
    check = PlannedCheck(scenario=SIMULATION, kind="simulation", tries=(third, second, first))
    shown = only(decide(gate_inputs(case_inputs(checks=(control("finished"), check)))))
    assert (shown.checked, shown.checked_of, shown.cannot_see) == (6, 7, ("max_retries",))
    assert [each.expectation for each in shown.broken] == ["log_failure", "mark_failure"]


@pytest.mark.parametrize("profile", PROFILES)
def test_planned_and_not_run_is_unproven(profile: Profile) -> None:
    checks = (*good_checks(), *(simulation(name=f"other-{number}") for number in range(5)))
    decision = decide(gate_inputs(case_inputs(checks=checks), profile=profile))
    assert (decision.decision, codes(decision)) == ("unproven", ["not-run"])
    assert decision.reasons[0].text == "5 of 7 planned not run: other-0, other-1, other-2 and 2 more"
    assert only(decision, "other-0").result == "not-run"


def test_fail_beats_unproven_and_stands_first() -> None:
    broken = (control("finished"), simulation("not-recovered", "not-recovered", "recovered"))
    decision = decide(
        gate_inputs(
            case_inputs(a_case("b"), checks=broken),
            case_inputs(a_case("a"), checks=(control("finished"), simulation())),
        )
    )
    assert decision.decision == "fail"
    assert codes(decision) == ["check-broken", "not-run"]
    assert [each.case_id for each in decision.cases] == ["a", "b"]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("cases", "code"),
    [
        ((), "nothing-selected"),
        ((case_inputs(checks=()),), "nothing-selected"),
        ((case_inputs(checks=(control(), simulation())),), "nothing-run"),
        ((case_inputs(a_case(quarantine=a_quarantine())),), "all-quarantined"),
        ((case_inputs(checks=(), costs_model_calls=True),), "nothing-selected"),
    ],
)
def test_nothing_that_gates_is_never_green(profile: Profile, cases: Any, code: str) -> None:
    decision = decide(gate_inputs(*cases, profile=profile))
    assert decision.decision == "unproven"
    assert code in codes(decision, red=True)


def test_a_case_of_which_nothing_was_planned_is_unproven() -> None:
    decision = decide(gate_inputs(case_inputs(), case_inputs(a_case("b"), checks=())))
    assert [(each.code, each.case_id) for each in decision.reasons] == [("not-run", "b")]


def test_a_case_that_costs_model_calls_may_be_left_out_and_is_named() -> None:
    decision = decide(gate_inputs(case_inputs(), case_inputs(a_case("b"), checks=(), costs_model_calls=True)))
    assert (decision.decision, codes(decision)) == ("pass", ["needs-live"])


def test_an_interrupted_session_is_unproven() -> None:
    decision = decide(gate_inputs(case_inputs(), interrupted=True))
    assert (decision.decision, codes(decision)) == ("unproven", ["interrupted"])


def test_a_planned_case_that_is_gone_is_unproven() -> None:
    decision = decide(gate_inputs(case_inputs(), lost=("gone",)))
    assert (decision.decision, decision.reasons[0].case_id) == ("unproven", "gone")


def test_an_invalid_case_fails_and_the_others_are_decided() -> None:
    decision = decide(gate_inputs(case_inputs(), invalid={"bad": "cases/bad/case.toml:3: no such key\n"}))
    assert (decision.decision, codes(decision)) == ("fail", ["invalid-case"])
    assert decision.reasons[0].text == "cases/bad/case.toml:3: no such key"
    assert [each.case_id for each in decision.cases] == ["trial-37"]


def test_reasons_come_wrong_first_then_unproven_then_notes_and_by_case() -> None:
    flaky = (control("finished"), simulation("not-recovered", "recovered", "recovered"))
    broken = (control("finished"), simulation("not-recovered", "not-recovered"))
    decision = decide(
        gate_inputs(
            case_inputs(a_case("0"), checks=(control("finished"), simulation())),
            case_inputs(a_case("a"), checks=flaky),
            case_inputs(a_case("c"), checks=broken),
            case_inputs(a_case("b"), checks=(control("finished"), simulation())),
            invalid={"d": "not TOML\n"},
            lost=("e", "d", "e"),
            interrupted=True,
        )
    )
    assert [(each.code, each.case_id, each.red) for each in decision.reasons] == [
        ("check-broken", "c", True),
        ("invalid-case", "d", True),
        ("interrupted", None, True),
        ("not-run", "0", True),
        ("not-run", "b", True),
        ("not-run", "d", True),
        ("not-run", "e", True),
        ("flaky", "a", False),
    ]
    texts = {(each.code, each.case_id): each.text for each in decision.reasons}
    assert texts["invalid-case", "d"] == "not TOML"
    assert texts["interrupted", None] == "the session was interrupted before its end"
    assert texts["not-run", "e"] == "its checks were planned, but the case is not there any more"


def test_nothing_selected_and_nothing_run_are_said() -> None:
    assert [each.text for each in decide(gate_inputs()).reasons] == ["no check was selected, so nothing is shown"]
    unrun = decide(gate_inputs(case_inputs(checks=(control(), simulation()))))
    assert [each.text for each in unrun.reasons if each.code == "nothing-run"] == [
        "no check was run, so nothing is shown"
    ]


@pytest.mark.parametrize("claimed", [False, True])
def test_a_rule_that_cannot_be_decided_makes_its_case_invalid_and_no_other(claimed: bool) -> None:
    case = a_case("b", fix=(a_fix(),) if claimed else ())
    decision = decide(gate_inputs(case_inputs(case, claims={"plan": "most"}), case_inputs()))
    assert decision.decision == "fail"
    (reason,) = decision.reasons
    assert (reason.code, reason.case_id, reason.red) == ("invalid-case", "b", True)
    assert reason.text.startswith("Couldn't use the plan 'most': there is none of that name.")
    assert [each.case_id for each in decision.cases] == ["trial-37"]


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(UsageRefused, match="Couldn't use the gate policy 'most': there is none of that name"):
        decide(gate_inputs(case_inputs(), policy="most"))


class TestVerifying:
    @pytest.mark.parametrize(
        ("profile", "expected"), [("pull-request", "pass"), ("nightly", "pass"), ("release", "unproven")]
    )
    def test_k_of_n_is_shown(self, profile: Profile, expected: str) -> None:
        decision = decide(gate_inputs(case_inputs(CLAIMED, live=live(*clean(11))), profile=profile))
        assert (decision.decision, codes(decision)) == (expected, ["verifying"])
        assert "11 of 29 clean live runs" in decision.reasons[0].text
        claim = decision.cases[0].claim
        assert claim is not None
        assert (claim.kind, claim.need, claim.clean, claim.fresh, claim.distinct) == ("none", 29, 11, 11, 11)
        assert (claim.bound, claim.sessions, claim.risk, claim.max_rate) == ("0.2385", 1, "0.05", "0.10")
        assert only(decision, "live").counts == {"clean": 11}

    @pytest.mark.parametrize("profile", PROFILES)
    def test_29_clean_runs_over_two_sessions_bound_the_rate_and_the_case_stays_verifying(
        self, profile: Profile
    ) -> None:
        rows = (*live(*clean(20)), *live(*clean(9), first=21, session_id="s2"))
        decision = decide(gate_inputs(case_inputs(CLAIMED, live=rows), profile=profile))
        assert decision.decision == "pass"
        claim = decision.cases[0].claim
        assert claim is not None
        assert (claim.kind, claim.clean, claim.sessions, claim.bound) == ("BOUNDED", 29, 2, "0.0982")
        assert decision.cases[0].state == "verifying"

    def test_a_claim_that_is_too_old_is_red_in_nightly_only(self) -> None:
        table: tuple[tuple[int, Profile, str], ...] = (
            (14, "nightly", "pass"),
            (15, "nightly", "unproven"),
            (15, "pull-request", "pass"),
        )
        for days, profile, expected in table:
            today = (FIXED_AT + timedelta(days=days)).date()
            decision = decide(gate_inputs(case_inputs(CLAIMED), profile=profile, today=today))
            assert decision.decision == expected, (days, profile)
        assert codes(decide(gate_inputs(case_inputs(CLAIMED), profile="nightly", today=date(2027, 1, 1)))) == [
            "claim-overdue"
        ]

    def test_a_clean_run_that_is_no_fresh_draw_does_not_count(self) -> None:
        rows = (*live("clean"), *live("clean", first=2, fresh=False))
        claim = decide(gate_inputs(case_inputs(CLAIMED, live=rows))).cases[0].claim
        assert claim is not None
        assert (claim.clean, claim.fresh, claim.missing) == (1, 1, (2,))

    def test_the_baseline_says_what_clean_runs_do_not_show(self) -> None:
        baseline = {"failures": 1, "trials": 200, "kind": "all-attempts"}
        claim = decide(gate_inputs(case_inputs(a_case(fix=(a_fix(2),), baseline=baseline)))).cases[0].claim
        assert claim is not None
        assert claim.would_pass_unchanged == "0.86"
        assert claim.risk_over_fixes == "0.0920"
        assert (claim.bound, claim.clean) == (None, 0)

    def test_planned_live_runs_that_were_not_made_or_proved_nothing_are_unproven(self) -> None:
        checks = (*good_checks(), live_run(1, "clean"), live_run(2, "inconclusive"), live_run(3))
        rows = live("clean", "inconclusive")
        decision = decide(gate_inputs(case_inputs(CLAIMED, checks=checks, live=rows), profile="nightly"))
        assert decision.decision == "unproven"
        assert codes(decision) == ["live-inconclusive", "not-run", "verifying"]
        assert "not run: live 3" in decision.reasons[1].text
        assert only(decision, "live").why == "the fault did not reach the agent"

    def test_live_runs_planned_and_none_made(self) -> None:
        decision = decide(gate_inputs(case_inputs(CLAIMED, checks=(*good_checks(), live_run(1)))))
        assert only(decision, "live").result == "not-run"

    def test_one_transcript_repeated_is_a_note_where_the_symptom_is_the_suppliers(self) -> None:
        rows = tuple(each.model_copy(update={"response_digest": "same"}) for each in live(*clean(29)))
        decision = decide(gate_inputs(case_inputs(CLAIMED, live=rows)))
        assert decision.cases[0].claim is not None
        assert decision.cases[0].claim.kind == "BOUNDED"
        assert "identical-transcripts" in codes(decision, red=False)

    def test_one_transcript_repeated_refuses_the_claim_where_the_symptom_is_in_the_output(self) -> None:
        observation = {"symptom": "wrong answer", "source_event": "e", "termination": "finished"}
        case = a_case(fix=(a_fix(),), observation=observation)
        rows = tuple(each.model_copy(update={"response_digest": "same"}) for each in live(*clean(29)))
        decision = decide(gate_inputs(case_inputs(case, live=rows)))
        assert decision.cases[0].claim is not None
        assert decision.cases[0].claim.kind == "none"

    def test_a_fix_claimed_on_another_ledger_is_said(self) -> None:
        decision = decide(gate_inputs(case_inputs(CLAIMED, fix_is_of_another_ledger=True)))
        assert codes(decision) == ["other-ledger", "verifying"]


class TestRecurrence:
    @pytest.mark.parametrize(
        ("profile", "expected"), [("pull-request", "pass"), ("nightly", "fail"), ("release", "fail")]
    )
    @pytest.mark.parametrize("closed", [False, True])
    def test_it_stays_red_also_when_nothing_live_is_run(
        self, profile: Profile, expected: str, closed: bool
    ) -> None:
        records: dict[str, Any] = (
            {"closed": [{"at": FIXED_AT, "by": "x", "revision": "r", "numbers": {}}]} if closed else {}
        )
        case = a_case(fix=(a_fix(),), **records)
        rows = live("clean", "clean", "recurred")
        decision = decide(gate_inputs(case_inputs(case, live=rows), profile=profile))
        assert (decision.decision, codes(decision)) == (expected, ["recurred"])
        assert decision.cases[0].state == "regressed"
        claim = decision.cases[0].claim
        assert claim is not None
        assert (claim.refuted_by_run, claim.clean, claim.bound) == (3, 2, None)

    def test_what_lies_behind_it_changes_no_byte(self) -> None:
        planned = (*good_checks(), *(live_run(number) for number in range(4, 10)))
        checks = (*planned, live_run(1, "clean"), live_run(2, "clean"), live_run(3, "recurred"))
        rows = live("clean", "clean", "recurred")
        more = (*rows, *live("clean", "inconclusive", "recurred", first=4, session_id="other"))
        also = (*checks[:2], live_run(4, "clean"), live_run(5, "inconclusive"), *checks[4:])
        serial = decide(gate_inputs(case_inputs(CLAIMED, checks=checks, live=rows), profile="nightly"))
        parallel = decide(gate_inputs(case_inputs(CLAIMED, checks=also, live=more), profile="nightly"))
        assert serial.model_dump_json() == parallel.model_dump_json()
        assert codes(serial) == ["recurred"]

    def test_after_a_closed_count_it_is_seen_too(self) -> None:
        rows = live(*clean(29), "recurred")
        decision = decide(gate_inputs(case_inputs(CLAIMED, live=rows), profile="nightly"))
        assert (decision.decision, decision.cases[0].state) == ("fail", "regressed")
        assert only(decision, "live").counts == {"clean": 29, "recurred": 1}

    def test_an_unknown_number_below_it_leaves_it_red(self) -> None:
        rows = live("clean", "inconclusive", "recurred")
        decision = decide(gate_inputs(case_inputs(CLAIMED, live=rows), profile="nightly"))
        assert decision.decision == "fail"
        assert decision.cases[0].claim is not None
        assert decision.cases[0].claim.missing == (2,)

    def test_an_open_case_is_not_gated_by_its_live_symptom(self) -> None:
        checks = (*good_checks(), live_run(1, "recurred"))
        decision = decide(gate_inputs(case_inputs(a_case(), checks=checks), profile="nightly"))
        assert (decision.decision, decision.reasons) == ("pass", ())

    @pytest.mark.parametrize(("profile", "expected"), [("pull-request", "pass"), ("nightly", "fail")])
    def test_failing_in_another_way_refutes_the_claim_unless_the_case_passes_it_over(
        self, profile: Profile, expected: str
    ) -> None:
        rows = live("clean", "failed-otherwise")
        decision = decide(gate_inputs(case_inputs(CLAIMED, live=rows), profile=profile))
        assert (decision.decision, codes(decision)) == (expected, ["failed-otherwise"])
        assert decision.cases[0].state == "verifying"
        lenient = a_case(fix=(a_fix(),), expected_recovery={"other_failures": "pass-over"})
        assert codes(decide(gate_inputs(case_inputs(lenient, live=rows), profile=profile))) == ["verifying"]

    def test_a_closed_case_that_fails_in_another_way_is_not_regressed(self) -> None:
        closed = a_case(fix=(a_fix(),), closed=[{"at": FIXED_AT, "by": "x", "revision": "r", "numbers": {}}])
        decision = decide(gate_inputs(case_inputs(closed, live=live("failed-otherwise")), profile="nightly"))
        assert (decision.decision, decision.cases[0].state) == ("pass", "closed")

    @pytest.mark.parametrize(("profile", "expected"), [("pull-request", "pass"), ("nightly", "fail")])
    def test_a_reopened_case_is_red_until_a_new_fix(self, profile: Profile, expected: str) -> None:
        case = a_case(fix=(a_fix(),), reopened=[{"at": FIXED_AT, "by": "x", "why": "it came back"}])
        decision = decide(gate_inputs(case_inputs(case), profile=profile))
        assert (decision.decision, codes(decision)) == (expected, ["case-regressed"])


class TestQuarantine:
    BROKEN = (control("finished"), simulation("not-recovered", "not-recovered", "not-recovered"))

    @pytest.mark.parametrize("profile", PROFILES)
    def test_it_runs_and_is_shown_and_does_not_gate(self, profile: Profile) -> None:
        case = a_case("b", quarantine=a_quarantine())
        decision = decide(
            gate_inputs(case_inputs(a_case("a")), case_inputs(case, checks=self.BROKEN), profile=profile)
        )
        assert decision.decision == "pass"
        assert codes(decision, red=False) == ["check-broken", "quarantined"]
        assert "until 2026-05-30, owner team-a: fails on Mondays" in decision.reasons[1].text
        assert decision.cases[1].quarantined
        assert decision.cases[1].scenarios[1].result == "broken"

    @pytest.mark.parametrize(
        ("profile", "expected"), [("pull-request", "pass"), ("nightly", "fail"), ("release", "pass")]
    )
    def test_its_expiry_warns_and_is_red_at_night(self, profile: Profile, expected: str) -> None:
        expired = a_case("b", quarantine=a_quarantine(TODAY - timedelta(days=1)))
        decision = decide(gate_inputs(case_inputs(a_case("a")), case_inputs(expired), profile=profile))
        assert (decision.decision, codes(decision)) == (expected, ["quarantine-expired"])

    def test_it_lasts_through_its_last_day(self) -> None:
        case = a_case("b", quarantine=a_quarantine(TODAY))
        decision = decide(gate_inputs(case_inputs(a_case("a")), case_inputs(case), profile="nightly"))
        assert decision.decision == "pass"

    @pytest.mark.parametrize(
        ("profile", "expected"), [("pull-request", "pass"), ("nightly", "fail"), ("release", "fail")]
    )
    def test_too_many_are_red(self, profile: Profile, expected: str) -> None:
        cases = [case_inputs(a_case(f"q-{number}", quarantine=a_quarantine())) for number in range(4)]
        decision = decide(gate_inputs(case_inputs(a_case("a")), *cases, profile=profile))
        assert decision.decision == expected
        assert "too-many-quarantined" in codes(decision)

    def test_five_per_cent_of_a_large_suite_may_be(self) -> None:
        cases = [case_inputs(a_case(f"c-{number}")) for number in range(76)]
        quarantined = [case_inputs(a_case(f"q-{number}", quarantine=a_quarantine())) for number in range(4)]
        assert decide(gate_inputs(*cases, *quarantined, profile="nightly")).decision == "pass"


def test_a_decision_holds_no_session_id_duration_or_time() -> None:
    def made(**changes: Any) -> GateDecision:
        check = PlannedCheck(
            scenario=SIMULATION,
            kind="simulation",
            tries=tries("not-recovered", "not-recovered", "recovered", **changes),
        )
        return decide(gate_inputs(case_inputs(checks=(control("finished"), check))))

    first = made(session_id="one", duration_seconds=1.5, folder="here")
    second = made(session_id="two", duration_seconds=9.5, folder="there")
    assert first.model_dump_json() == second.model_dump_json()


def test_clean_runs_behind_the_claim_add_nothing_to_it() -> None:
    claims = [
        decide(gate_inputs(case_inputs(CLAIMED, live=live(*clean(count))))).cases[0].claim for count in (29, 31)
    ]
    assert claims[0] == claims[1]


class TestNothingThatGates:
    OUT: ClassVar[CaseInputs] = case_inputs(
        a_case("a", quarantine=a_quarantine()),
        checks=(control("finished"), simulation("not-recovered", "not-recovered", "not-recovered")),
    )
    LEFT: ClassVar[CaseInputs] = case_inputs(a_case("b"), checks=(), costs_model_calls=True)

    def test_a_quarantined_case_beside_one_that_was_left_out_is_never_green(self) -> None:
        decision = decide(gate_inputs(self.OUT, self.LEFT))
        assert decision.decision == "unproven"
        assert codes(decision, red=True) == ["all-quarantined"]
        assert decision.reasons[0].text == (
            "every case is quarantined or left out for its model calls, so nothing gates"
        )

    def test_one_case_that_gates_is_enough(self) -> None:
        assert decide(gate_inputs(self.OUT, self.LEFT, case_inputs(a_case("c")))).decision == "pass"

    def test_all_left_out_is_nothing_selected(self) -> None:
        assert codes(decide(gate_inputs(self.LEFT)), red=True) == ["nothing-selected"]


@pytest.mark.parametrize("kept", [(1,), (2,), (1, 2), (0, 2)])
@pytest.mark.parametrize("first", ["recovered", "inconclusive"])
def test_a_pass_after_a_try_that_is_missing_is_none(kept: tuple[int, ...], first: AttemptVerdict) -> None:
    made = tries(first, "recovered", "recovered")
    check = PlannedCheck(scenario=SIMULATION, kind="simulation", tries=tuple(made[each] for each in kept))
    decision = decide(gate_inputs(case_inputs(checks=(control("finished"), check))))
    assert decision.decision == "unproven"
    assert only(decision).why == "an earlier try of it is not there, or was of another revision"


def test_a_claim_dated_ahead_does_not_stay_young_for_ever() -> None:
    def at_night(days: int) -> GateDecision:
        fix = a_fix(at=datetime(2026, 5, 20, tzinfo=UTC) + timedelta(days=days))
        return decide(gate_inputs(case_inputs(a_case(fix=(fix,))), profile="nightly"))

    assert at_night(1).decision == "pass"
    assert codes(at_night(2), red=True) == ["claim-overdue"]
    assert at_night(2).reasons[0].text.endswith("; it is dated 2 days ahead")


@pytest.mark.parametrize(("elsewhere", "here", "red"), [(1, 0, False), (0, 1, False), (1, 1, True), (2, 0, True)])
def test_a_plan_allows_failures_to_a_fix_and_not_to_each_revision(elsewhere: int, here: int, red: bool) -> None:
    verdicts: list[AttemptVerdict] = ["recurred"] * here
    rows = live(*verdicts, *clean(54 - here))
    case = case_inputs(CLAIMED, claims=ClaimSettings(plan="allow-one"), live=rows, recurred_set_aside=elsewhere)
    assert ("recurred" in codes(decide(gate_inputs(case, profile="nightly")), red=True)) is red


class TestFunctions:
    """Test functions that run a case beside its own agent, or several of them."""

    BROKEN = (control("finished"), simulation("not-recovered", "not-recovered", "not-recovered"))

    def test_each_has_a_result_of_its_own_behind_the_one_of_the_agent(self) -> None:
        cases = [case_inputs(a_case("b"), agent=name) for name in ("t.py::z", None, "t.py::a")]
        decision = decide(gate_inputs(*cases, case_inputs(a_case("a"), agent="t.py::b")))
        assert [(each.case_id, each.agent) for each in decision.cases] == [
            ("a", "t.py::b"),
            ("b", None),
            ("b", "t.py::a"),
            ("b", "t.py::z"),
        ]

    def test_its_reasons_name_it_and_those_of_the_agent_do_not(self) -> None:
        decision = decide(
            gate_inputs(case_inputs(checks=self.BROKEN), case_inputs(agent="t.py::a", checks=self.BROKEN))
        )
        own, of_function = (each.text for each in decision.reasons)
        assert of_function == f"t.py::a: {own}"

    def test_a_case_counts_once_against_the_cap_of_quarantine(self) -> None:
        quarantined = a_case("q", quarantine=a_quarantine())
        cases = [case_inputs(quarantined, agent=name) for name in (None, "t.py::a", "t.py::b", "t.py::c")]
        others = [case_inputs(a_case(f"c{number:02d}")) for number in range(20)]
        decision = decide(gate_inputs(*cases, *others, max_quarantined=1, profile="nightly"))
        assert "too-many-quarantined" not in codes(decision)
        second = case_inputs(a_case("r", quarantine=a_quarantine()))
        decision = decide(gate_inputs(*cases, second, *others, max_quarantined=1, profile="nightly"))
        (red,) = [each for each in decision.reasons if each.code == "too-many-quarantined"]
        assert red.text == "2 of 22 cases are quarantined; at most 1 may be"

    def test_what_is_left_out_of_the_agent_is_not_left_out_of_the_function(self) -> None:
        case = a_case("q", quarantine=a_quarantine())
        left_out = case_inputs(case, checks=(), costs_model_calls=True)
        decision = decide(gate_inputs(left_out, case_inputs(a_case("a"))))
        assert decision.decision == "pass"
        decision = decide(gate_inputs(left_out, case_inputs(case, agent="t.py::a")))
        (reason,) = [each for each in decision.reasons if each.code == "all-quarantined"]
        assert "left out for its model calls" in reason.text
        function_alone = decide(gate_inputs(case_inputs(case, agent="t.py::a")))
        (reason,) = [each for each in function_alone.reasons if each.code == "all-quarantined"]
        assert reason.text == "every case is quarantined, so nothing gates"
