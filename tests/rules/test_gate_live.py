"""Which recurrence is red under which plan, and which live runs are due."""

from typing import Any

import pytest

from pytest_regcase.records.case import Closed
from pytest_regcase.records.decision import ScenarioResult
from pytest_regcase.records.session import LiveRow
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.rules.gate_inputs import CaseInputs
from pytest_regcase.rules.gate_live import LiveStanding, live_scenario, live_standing
from tests.rules.attempt_samples import FIXED_AT, a_case, a_fix, case_inputs, good_checks, live, live_run, tries

CLOSED = Closed(at=FIXED_AT, by="x", revision="r", numbers={})


def clean(count: int) -> list[AttemptVerdict]:
    return ["clean"] * count


def inputs(rows: tuple[LiveRow, ...], plan: str = "zero", closed: bool = False, **changes: Any) -> CaseInputs:
    case = a_case(fix=(a_fix(),), closed=(CLOSED,) if closed else (), **changes.pop("file", {}))
    return case_inputs(case, live=rows, claims={"plan": plan}, **changes)


def standing(rows: tuple[LiveRow, ...], plan: str = "zero", closed: bool = False, **changes: Any) -> LiveStanding:
    return live_standing(inputs(rows, plan, closed, **changes))


def shown(case: CaseInputs) -> ScenarioResult | None:
    return live_scenario(case, live_standing(case))


class TestRecurrence:
    @pytest.mark.parametrize(
        ("verdicts", "recurred", "allowed", "stopping"),
        [
            (["clean"], None, None, None),
            (["recurred"], 1, None, 1),
            (["clean", "failed-otherwise"], None, None, 2),
            (["clean", "failed-otherwise", "recurred"], 3, None, 2),
            (["clean", "inconclusive", "recurred"], 3, None, 3),
            ([*clean(29), "recurred"], 30, None, None),
            ([*clean(29), "failed-otherwise"], None, None, None),
            # With a hole the claim is not settled yet; as it may be, a recurrence behind it is red.
            (["inconclusive", *clean(29), "recurred"], 31, None, None),
            (["recurred", "clean", "recurred"], 1, None, 1),
        ],
    )
    def test_zero_allows_none(
        self, verdicts: list[AttemptVerdict], recurred: int | None, allowed: int | None, stopping: int | None
    ) -> None:
        found = standing(live(*verdicts))
        assert (found.recurred_run, found.allowed_run, found.stopping_run) == (recurred, allowed, stopping)
        assert found.recurred is (recurred is not None)

    @pytest.mark.parametrize(
        ("verdicts", "recurred", "allowed", "stopping"),
        [
            (["clean", "recurred", "clean"], None, 2, None),
            (["clean", "failed-otherwise", "clean"], None, None, None),
            (["clean", "recurred", "clean", "recurred", "recurred"], 4, None, 4),
            (["recurred", "failed-otherwise"], 1, None, 2),
            (["failed-otherwise", "recurred"], 2, None, 2),
            (["recurred", *clean(53)], None, 1, None),
            # What comes behind a settled claim is no part of it.
            ([*clean(31), "recurred"], 32, None, None),
            (["inconclusive", *clean(30), "recurred"], 32, None, None),
            (["inconclusive", *clean(29), "recurred"], None, 31, None),
            (["recurred", *clean(53), "recurred"], 55, None, None),
        ],
    )
    def test_allow_one_allows_one_for_the_claim(
        self, verdicts: list[AttemptVerdict], recurred: int | None, allowed: int | None, stopping: int | None
    ) -> None:
        found = standing(live(*verdicts), plan="allow-one")
        assert (found.recurred_run, found.allowed_run, found.stopping_run) == (recurred, allowed, stopping)

    def test_a_number_that_is_missing_is_a_hole_too(self) -> None:
        assert standing(live(*clean(30), "recurred", first=2), "allow-one").recurred_run == 32
        assert standing(live("clean", "recurred", first=2), "allow-one").recurred_run is None

    def test_a_closed_case_has_none_to_spare(self) -> None:
        assert standing(live("recurred"), "allow-one", closed=True).recurred_run == 1
        assert standing(live("clean", "recurred"), "allow-one", closed=True).recurred_run == 2
        assert standing(live("recurred", *clean(53)), "allow-one", closed=True).recurred_run is None
        assert standing(live("clean", "recurred"), "zero", closed=True).recurred_run == 2
        assert not standing(live("clean"), "allow-one", closed=True).recurred

    @pytest.mark.parametrize(
        ("plan", "closed", "elsewhere", "recurred"),
        [
            ("zero", False, 0, False),
            ("zero", False, 1, True),
            ("allow-one", False, 1, False),
            ("allow-one", False, 2, True),
            ("allow-one", True, 1, True),
            ("zero", True, 0, False),
        ],
    )
    def test_a_new_revision_is_no_new_fix(self, plan: str, closed: bool, elsewhere: int, recurred: bool) -> None:
        found = standing((), plan, closed, live_set_aside=elsewhere, recurred_set_aside=elsewhere)
        assert (found.recurred_elsewhere, found.recurred, found.recurred_run) == (recurred, recurred, None)

    def test_without_a_fix_there_is_no_claim(self) -> None:
        found = live_standing(case_inputs(a_case(), live=live("recurred"), recurred_set_aside=3))
        assert found == LiveStanding()
        assert (found.recurred, found.stopping_run, found.stopped_before(9)) == (False, None, False)

    def test_runs_behind_the_one_that_refutes_are_not_due(self) -> None:
        found = standing(live("clean", "recurred", "clean"))
        assert [found.stopped_before(run) for run in (1, 2, 3, 4)] == [False, False, True, True]
        allowed = standing(live("clean", "recurred", "clean"), "allow-one")
        assert not any(allowed.stopped_before(run) for run in range(1, 60))

    def test_passing_over_is_the_cases_to_say(self) -> None:
        lenient = {"expected_recovery": {"other_failures": "pass-over"}}
        found = standing(live("clean", "failed-otherwise"), file=lenient)
        assert (found.stopping_run, found.recurred) == (None, False)


class TestScenario:
    def test_it_shows_the_runs_up_to_the_one_that_decides(self) -> None:
        found = shown(inputs(live("clean", "clean", "recurred", "clean")))
        assert found == ScenarioResult(
            name="live", planned=29, run=3, counts={"clean": 2, "recurred": 1}, result="counted"
        )
        behind = shown(inputs(live(*clean(29), "recurred", "clean")))
        assert behind is not None
        assert (behind.run, behind.counts) == (30, {"clean": 29, "recurred": 1})
        otherwise = shown(inputs(live("failed-otherwise", "recurred")))
        assert otherwise is not None
        assert otherwise.counts == {"failed-otherwise": 1}

    def test_what_the_claim_needs_is_what_is_planned(self) -> None:
        found = shown(inputs(live("recurred", "clean"), "allow-one"))
        assert found is not None
        assert (found.planned, found.run, found.why) == (53, 2, None)

    def test_planned_and_not_made(self) -> None:
        found = shown(inputs((), checks=(*good_checks(), live_run(1))))
        assert found == ScenarioResult(name="live", planned=29, run=0, result="not-run")

    def test_nothing_to_show(self) -> None:
        assert shown(inputs(())) is None
        assert shown(case_inputs(a_case(), checks=(live_run(1, "recurred"),))) is None

    def test_why_runs_of_this_session_proved_nothing(self) -> None:
        checks = (live_run(1, "clean"), live_run(2, "inconclusive"), live_run(3, "inconclusive"), live_run(4))
        cut_short = tries("inconclusive", scenario="live", run=3, reason="cut-short")
        given = (*checks[:2], checks[2].model_copy(update={"tries": cut_short}), checks[3])
        rows = live("clean", "inconclusive", "inconclusive")
        found = standing(rows, checks=given)
        assert found.inconclusive_now == (2, 3)
        assert found.why_inconclusive == "it was cut short; the fault did not reach the agent"
        line = shown(inputs(rows, checks=given))
        assert line is not None
        assert line.why == found.why_inconclusive

    def test_a_run_that_was_made_again_proved_something(self) -> None:
        both = (live_run(1, "inconclusive", "clean"),)
        assert standing(live("clean"), checks=both).inconclusive_now == ()

    def test_what_lies_behind_the_refuting_run_is_not_asked_for(self) -> None:
        checks = (live_run(1, "inconclusive"), live_run(3, "inconclusive"))
        found = standing(live("inconclusive", "recurred", "inconclusive"), checks=checks)
        assert found.inconclusive_now == (1,)
        open_case = live_standing(case_inputs(a_case(), checks=checks))
        assert open_case.inconclusive_now == (1, 3)
        assert open_case.why_inconclusive == "the fault did not reach the agent"

    def test_what_another_session_decided_is_not_asked_for(self) -> None:
        found = standing(live("recurred", session_id="other"), checks=(live_run(1, "inconclusive"),))
        assert found.inconclusive_now == ()

    def test_the_plan_is_the_one_of_this_fix_and_baseline(self) -> None:
        case = a_case(fix=(a_fix(2),), baseline={"failures": 2, "trials": 20, "kind": "fresh"})
        fixed = live_standing(case_inputs(case, claims={"rule": "fixed"})).claim
        spent = live_standing(case_inputs(case, claims={"attempts_spend": True})).claim
        assert fixed is not None
        assert spent is not None
        assert (fixed.need, spent.need) == (68, 47)


def test_two_runs_with_one_transcript_are_noticed_and_one_is_not() -> None:
    same = tuple(row.model_copy(update={"response_digest": "same"}) for row in live(*clean(2)))
    assert standing(same).identical
    assert not standing(same[:1]).identical
    assert not standing(live(*clean(2))).identical


def test_the_run_that_settles_a_claim_may_be_one_that_the_plan_allows() -> None:
    found = standing(live(*clean(45), "recurred"), plan="c:1")
    assert (found.recurred_run, found.allowed_run) == (None, 46)
    assert found.claim is not None
    assert found.claim.kind == "BOUNDED"
