"""The reasons of one case, word for word."""

from datetime import timedelta
from typing import Any

import pytest

from pytest_regcase.records.decision import GateDecision
from pytest_regcase.records.words import AttemptVerdict, Profile
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
)

THRICE = control("finished", "finished", "finished")


def clean(count: int) -> list[AttemptVerdict]:
    return ["clean"] * count


def of(case: CaseInputs, **changes: Any) -> dict[str, str]:
    """Code -> text of that case's reasons; a red one's text has an exclamation mark before it."""
    decision: GateDecision = decide(gate_inputs(case_inputs(a_case("a-good-one")), case, **changes))
    return {
        each.code: f"{'!' if each.red else ''}{each.text}"
        for each in decision.reasons
        if each.case_id == case.case_id
    }


def claimed(rows: Any = (), file: dict[str, Any] | None = None, **changes: Any) -> CaseInputs:
    return case_inputs(a_case(fix=(a_fix(),), **(file or {})), live=rows, **changes)


class TestChecks:
    @pytest.mark.parametrize(
        ("policy", "verdicts", "says"),
        [
            ("confirm:2", ["not-recovered"], "in 1 of 1 attempts, not confirmed by a further run"),
            ("confirm:2", ["not-recovered", "recovered"], "in 1 of 2 attempts, not confirmed by a further run"),
            ("confirm:2", ["not-recovered", "not-recovered"], "in 2 of 2 attempts"),
            ("any-pass", ["not-recovered"], "in 1 of 1 attempts, not confirmed by a further run"),
            ("first", ["not-recovered"], "in 1 of 1 attempts"),
            ("fixed:3,0", ["not-recovered"], "in 1 of 1 attempts"),
        ],
    )
    def test_broken(self, policy: str, verdicts: list[AttemptVerdict], says: str) -> None:
        found = of(case_inputs(checks=(THRICE, simulation(*verdicts))), policy=policy)
        assert found == {"check-broken": f"!{SIMULATION}: max_retries broken {says}"}

    def test_broken_without_a_finding_names_the_expected_recovery(self) -> None:
        check = simulation("not-recovered", "not-recovered")
        bare = tuple(each.model_copy(update={"findings": ()}) for each in check.tries)
        found = of(case_inputs(checks=(control("finished"), check.model_copy(update={"tries": bare}))))
        assert found == {"check-broken": f"!{SIMULATION}: the expected recovery broken in 2 of 2 attempts"}

    def test_every_expectation_that_broke_is_named_once(self) -> None:
        broken = findings(["max_retries", "mark_failure"])
        made = tuple(
            an_attempt("not-recovered", SIMULATION, try_number=each, findings=broken) for each in range(2)
        )
        check = PlannedCheck(scenario=SIMULATION, kind="simulation", tries=made)
        found = of(case_inputs(checks=(THRICE, check)))
        assert found == {"check-broken": f"!{SIMULATION}: max_retries, mark_failure broken in 2 of 2 attempts"}

    def test_flaky(self) -> None:
        checks = (control("finished"), simulation("not-recovered", "recovered", "recovered"))
        assert of(case_inputs(checks=checks)) == {
            "flaky": f"{SIMULATION}: FLAKY, failed in 1 of 3 attempts, which confirm:2 does not call red"
        }
        fixed = (
            control("finished", "finished", "finished"),
            simulation("not-recovered", "recovered", "recovered"),
        )
        assert of(case_inputs(checks=fixed), policy="fixed:3,1") == {
            "flaky": f"{SIMULATION}: FLAKY, failed in 1 of 3 attempts, which fixed:3,1 does not call red"
        }

    def test_inconclusive(self) -> None:
        assert of(case_inputs(checks=(control("finished"), simulation("inconclusive", "inconclusive")))) == {
            "check-inconclusive": f"!{SIMULATION}: proved nothing, the fault did not reach the agent"
        }
        assert of(case_inputs(checks=(control("did-not-finish"), simulation("recovered")))) == {
            "check-inconclusive": "!control: proved nothing, the agent ended before it asked for the failing step",
            "control-failed": f"!{SIMULATION}: proved nothing, the control of this session did not finish",
        }

    def test_not_run(self) -> None:
        assert of(case_inputs(checks=())) == {"not-run": "!none of its checks was planned"}
        assert of(case_inputs(checks=(), costs_model_calls=True)) == {
            "needs-live": "not run: its replies cost model calls, which this session may not make"
            " (--regcase-live=N)"
        }
        checks = (control("finished"), simulation(), live_run(1, "clean"), live_run(2), live_run(3))
        assert of(claimed(live("clean"), checks=checks))["not-run"] == (
            f"!3 of 5 planned not run: {SIMULATION}, live 2, live 3"
        )
        four = (*checks, live_run(4))
        assert of(claimed(live("clean"), checks=four))["not-run"] == (
            f"!4 of 6 planned not run: {SIMULATION}, live 2, live 3 and 1 more"
        )

    def test_runs_behind_the_refuting_one_were_rightly_not_made(self) -> None:
        checks = (*good_checks(), live_run(1), live_run(2, "recurred"), live_run(3))
        assert of(claimed(live("recurred", first=2), checks=checks))["not-run"] == (
            "!1 of 4 planned not run: live 1"
        )


class TestClaims:
    def test_k_of_n(self) -> None:
        rows = live(*clean(11))
        assert of(claimed(rows)) == {"verifying": "fix 1 verifying: 11 of 29 clean live runs"}
        assert of(claimed(rows), profile="release") == {"verifying": "!fix 1 verifying: 11 of 29 clean live runs"}

    def test_overdue(self) -> None:
        late = (FIXED_AT + timedelta(days=20)).date()
        found = of(claimed(live("clean")), profile="nightly", today=late, claim_days=19)
        assert found == {
            "claim-overdue": "!fix 1 verifying: 1 of 29 clean live runs, 20 days after the claim; at most 19 days"
            " are allowed"
        }
        assert list(of(claimed(live("clean")), profile="nightly", today=late, claim_days=20)) == ["verifying"]

    def test_a_claim_that_is_dated_ahead_is_not_young_for_ever(self) -> None:
        early = (FIXED_AT - timedelta(days=2)).date()
        assert of(claimed(live("clean")), profile="nightly", today=early) == {
            "claim-overdue": "!fix 1 verifying: 1 of 29 clean live runs; it is dated 2 days ahead"
        }
        yesterday = (FIXED_AT - timedelta(days=1)).date()
        assert list(of(claimed(live("clean")), profile="nightly", today=yesterday)) == ["verifying"]

    def test_settled(self) -> None:
        rows = live(*clean(34))
        assert of(claimed(rows), profile="release") == {
            "verifying": "fix 1 verifying: 29 of 29 clean live runs; that rules out a rate of 0.10 at risk 0.05"
        }
        assert of(claimed(rows, claims={"attempts_spend": True}), profile="release") == {
            "verifying": "fix 1 verifying: 34 of 34 clean live runs; that rules out a rate of 0.10 at risk 0.0304"
        }

    def test_what_the_rule_asks_for_beside_clean_runs(self) -> None:
        found = of(claimed(live(*clean(29)), claims={"rule": "fixed", "min_sessions": 2}), profile="nightly")
        assert found == {
            "verifying": "fix 1 verifying: 29 of 30 clean live runs; not there: a baseline of live runs of this"
            " task with a failure in it, for the comparison; clean runs from 2 sessions; so far 1"
        }

    def test_a_recurrence_that_the_plan_allows_is_said(self) -> None:
        rows = live("clean", "recurred", "clean")
        assert of(claimed(rows, claims={"plan": "allow-one"}), profile="nightly") == {
            "verifying": "fix 1 verifying: 2 of 53 clean live runs, the symptom came back in run 2, which plan"
            " allow-one allows"
        }

    @pytest.mark.parametrize(("profile", "mark"), [("pull-request", ""), ("nightly", "!"), ("release", "!")])
    def test_what_speaks_against_it(self, profile: Profile, mark: str) -> None:
        assert of(claimed(live("clean", "recurred")), profile=profile) == {
            "recurred": f"{mark}the symptom came back in live run 2; red until a new fix is claimed"
        }
        elsewhere = of(claimed(live_set_aside=2, recurred_set_aside=1), profile=profile)
        assert elsewhere == {
            "recurred": f"{mark}the symptom came back since the last fix was claimed, when the agent's revision,"
            " the case or the model was another one; red until a new fix is claimed",
            "set-aside": "live runs since fix 1 that do not count: 2; the agent's revision, the case or the model"
            " was another one when they were made",
        }
        assert of(claimed(live("clean", "failed-otherwise")), profile=profile) == {
            "failed-otherwise": f"{mark}live run 2 failed in another way; the claimed fix does not hold"
        }
        reopened: dict[str, Any] = {"reopened": [{"at": FIXED_AT, "by": "x", "why": "y"}]}
        regressed = {"case-regressed": f"{mark}regressed: it was reopened and no fix has been claimed since"}
        assert of(claimed(file=reopened), profile=profile) == regressed
        assert of(case_inputs(a_case(**reopened)), profile=profile) == regressed

    def test_another_ledger(self) -> None:
        found = of(claimed(live(*clean(29)), fix_is_of_another_ledger=True), profile="nightly")
        assert found == {
            "other-ledger": "the ledger that the last fix was claimed on is not this one, or it has lost rows"
            " since; live runs counted there are not here, so the claim stays undecided",
            "verifying": "fix 1 verifying: 29 of 29 clean live runs; not there: the ledger that fix 1 was claimed"
            " on",
        }
        closed = {"closed": [{"at": FIXED_AT, "by": "x", "revision": "r", "numbers": {}}]}
        assert of(claimed(file=closed, fix_is_of_another_ledger=True)) == {}

    def test_set_aside_without_a_claim_is_not_told(self) -> None:
        assert of(case_inputs(a_case(), live_set_aside=3)) == {}

    def test_repeated_draws(self) -> None:
        rows = (*live("clean"), *live("clean", "recurred", "clean", first=2, fresh=False))
        assert of(claimed(rows[:2]))["repeated-draws"] == (
            "clean live run 2: not counted, no draw of its own; the upstream's response ids were absent or seen"
            " before (a cache, or a canned server?)"
        )
        assert of(claimed(rows))["repeated-draws"].startswith("clean live run 2, 4: not counted")
        assert "repeated-draws" not in of(claimed(rows[:2], claims={"independence": "off"}))

    def test_repeated_transcripts(self) -> None:
        rows = tuple(row.model_copy(update={"response_digest": "same"}) for row in live(*clean(3)))
        assert of(claimed(rows, claims={"independence": "distinct"})) == {
            "repeated-transcripts": "clean live run 2, 3: not counted, its transcript is missing or is that of a"
            " run with a lower number (independence = distinct)",
            "verifying": "fix 1 verifying: 1 of 29 clean live runs",
        }
        assert of(claimed(rows)) == {
            "identical-transcripts": "all clean live runs gave the same transcript; they may be one draw repeated",
            "verifying": "fix 1 verifying: 3 of 29 clean live runs",
        }

    def test_live_runs_that_proved_nothing(self) -> None:
        checks = (*good_checks(), live_run(1, "inconclusive"))
        one = of(claimed(live("inconclusive"), checks=checks))
        assert one["live-inconclusive"] == (
            "!1 live run of this session proved nothing (the fault did not reach the agent)"
        )
        two = (*checks, live_run(2, "inconclusive"))
        assert of(case_inputs(a_case(), checks=two))["live-inconclusive"].startswith(
            "!2 live runs of this session"
        )


class TestAside:
    def test_quarantine(self) -> None:
        case = a_case(quarantine=a_quarantine(TODAY))
        assert of(case_inputs(case), profile="nightly") == {
            "quarantined": "quarantined (flaky) until 2026-05-20, owner team-a: fails on Mondays"
        }
        expired = a_case(quarantine=a_quarantine(TODAY - timedelta(days=1)))
        says = "its quarantine expired on 2026-05-19; owner team-a: fails on Mondays"
        assert of(case_inputs(expired), profile="nightly") == {"quarantine-expired": f"!{says}"}
        assert of(case_inputs(expired), profile="release") == {"quarantine-expired": says}

    def test_the_last_retiring_is_told(self) -> None:
        retired = [
            {"at": FIXED_AT + timedelta(days=2), "by": "second", "why": "again"},
            {"at": FIXED_AT, "by": "first", "why": "once"},
        ]
        assert of(case_inputs(a_case(retired=retired))) == {"retired": "retired on 2026-05-12 by second: again"}


def test_a_policy_that_hides_failures_says_so() -> None:
    checks = (control("finished"), simulation("not-recovered", "recovered"))
    decision = decide(gate_inputs(case_inputs(checks=checks), policy="any-pass"))
    assert (decision.decision, decision.policy) == ("pass", "any-pass")
    told = {each.code: (each.red, each.text) for each in decision.reasons}
    assert told["flaky"][0] is False
    assert told["any-pass"][0] is False
    assert told["any-pass"][1].startswith(
        "any-pass is red only when all 3 attempts of a check fail, P(red) = f^3:"
    )
    assert all(each.code != "any-pass" for each in decide(gate_inputs(case_inputs(checks=checks))).reasons)
