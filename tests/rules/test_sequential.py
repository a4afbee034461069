from decimal import Decimal

import pytest
from pydantic import ValidationError

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.session import LiveRow
from pytest_regcase.rules.binomial import upper_bound
from pytest_regcase.rules.plans import plan_for
from pytest_regcase.rules.sequential import (
    Plan,
    RunOutcome,
    bound_at_this_look,
    decide,
    history_of,
    outcome_of,
    wanted_runs,
)
from tests.rules.attempt_samples import live
from tests.rules.plan_samples import DEFAULTS, SHIPPED

ZERO = plan_for("zero", *DEFAULTS)
ALLOW_ONE = plan_for("allow-one", *DEFAULTS)
PLANS = [plan_for(name, *DEFAULTS) for name in SHIPPED]


def runs(*outcomes: RunOutcome) -> dict[int, RunOutcome]:
    return dict(enumerate(outcomes, 1))


def failed(count: int) -> list[RunOutcome]:
    return ["failed"] * count


def clean(count: int) -> list[RunOutcome]:
    return ["clean"] * count


def test_nothing_run_is_undecided() -> None:
    result = decide(ZERO, {})
    assert (result.outcome, result.clean, result.need, result.missing) == ("undecided", 0, 29, ())
    assert (result.failures, result.refuted_by_run, result.settled_by_run) == (0, None, None)


def test_the_29th_clean_run_is_accepted_and_28_are_not() -> None:
    assert decide(ZERO, runs(*clean(28))).outcome == "undecided"
    accepted = decide(ZERO, runs(*clean(29)))
    assert (accepted.outcome, accepted.clean) == ("accepted", 29)
    assert (accepted.settled_by_run, accepted.refuted_by_run) == (29, None)


def test_the_first_failure_refutes_and_what_lies_behind_changes_nothing() -> None:
    refuted = decide(ZERO, runs("clean", "clean", "failed"))
    assert (refuted.outcome, refuted.clean, refuted.refuted_by_run) == ("refuted", 2, 3)
    assert (refuted.settled_by_run, refuted.failures, refuted.need) == (3, 1, 29)
    assert decide(ZERO, runs("clean", "clean", "failed", "clean", "failed", "unknown")) == refuted


def test_a_failure_after_the_claim_does_not_undo_it() -> None:
    accepted = decide(ZERO, runs(*clean(29)))
    assert decide(ZERO, {**runs(*clean(29)), 30: "failed"}) == accepted


def test_unknown_and_missing_numbers_below_the_failure_leave_it_undecided() -> None:
    result = decide(ZERO, {1: "clean", 2: "unknown", 5: "failed"})
    assert (result.outcome, result.clean, result.refuted_by_run) == ("undecided", 1, 5)
    assert result.missing == (2, 3, 4)


def test_unknown_numbers_below_the_last_clean_run_leave_it_undecided() -> None:
    history: dict[int, RunOutcome] = {number: "clean" for number in range(1, 31) if number != 4}
    result = decide(ZERO, history)
    assert (result.outcome, result.clean, result.missing) == ("undecided", 29, (4,))


def test_a_run_that_is_passed_over_neither_counts_nor_stops() -> None:
    assert decide(ZERO, runs("passed-over", *clean(28))).outcome == "undecided"
    assert decide(ZERO, runs("passed-over", *clean(29))).outcome == "accepted"


def test_a_failure_that_the_plan_allows_refutes_nothing() -> None:
    one_failed = decide(ALLOW_ONE, runs("failed", *clean(30)))
    assert (one_failed.outcome, one_failed.need, one_failed.refuted_by_run) == ("undecided", 53, None)
    assert (one_failed.clean, one_failed.failures, one_failed.settled_by_run) == (30, 1, None)
    accepted = decide(ALLOW_ONE, runs("failed", *clean(53)))
    assert (accepted.outcome, accepted.clean, accepted.need, accepted.settled_by_run) == ("accepted", 53, 53, 54)
    assert decide(ALLOW_ONE, runs(*clean(31))).outcome == "accepted"
    refuted = decide(ALLOW_ONE, runs("failed", "clean", "failed"))
    assert (refuted.outcome, refuted.refuted_by_run, refuted.failures, refuted.need) == ("refuted", 3, 2, 53)


def test_the_second_failure_refutes_also_at_the_run_that_would_have_claimed() -> None:
    assert decide(ALLOW_ONE, runs("failed", *clean(52), "failed")).outcome == "refuted"
    assert decide(ALLOW_ONE, runs(*clean(30), "failed")).outcome == "undecided"


def test_a_fixed_number_of_runs_claims_at_its_last_run_also_where_that_one_failed() -> None:
    plan = plan_for("c:1", *DEFAULTS)
    assert decide(plan, runs(*clean(45))).outcome == "undecided"
    assert decide(plan, runs(*clean(45), "failed")).outcome == "accepted"
    early = decide(plan, runs("failed", "failed"))
    assert (early.outcome, early.settled_by_run) == ("refuted", 2)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: str(plan.name))
@pytest.mark.parametrize("failures", [0, 1, 3])
def test_a_hole_below_the_settling_run_leaves_every_plan_undecided(plan: Plan, failures: int) -> None:
    history = runs(*failed(failures), *clean(plan.bounds[-1] + 1))
    settled = decide(plan, history)
    assert settled.outcome != "undecided"
    assert settled.settled_by_run is not None
    for hole in {1, settled.settled_by_run}:
        without = {number: outcome for number, outcome in history.items() if number != hole}
        for holed in (without, {**without, hole: "unknown"}):
            result = decide(plan, holed)
            assert (result.outcome, result.settled_by_run) == ("undecided", None)
            assert result.missing == (hole,)
    unread = {number: outcome for number, outcome in history.items() if number <= settled.settled_by_run}
    assert decide(plan, unread) == settled


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: str(plan.name))
def test_every_plan_claims_with_as_many_failures_as_it_allows_and_refutes_at_one_more(plan: Plan) -> None:
    for failures, bound in enumerate(plan.bounds):
        history = runs(*failed(failures), *clean(bound - failures))
        result = decide(plan, history)
        assert (result.outcome, result.settled_by_run, result.need) == ("accepted", bound, bound - failures)
        del history[bound]
        assert decide(plan, history).outcome == "undecided"
        assert wanted_runs(plan, history, 1000) == (bound,)
    over = decide(plan, runs(*failed(len(plan.bounds))))
    assert (over.outcome, over.refuted_by_run) == ("refuted", len(plan.bounds))


def test_the_next_runs_fill_holes_first_and_stop_at_what_is_needed() -> None:
    assert wanted_runs(ZERO, {}, 3) == (1, 2, 3)
    assert wanted_runs(ZERO, {1: "clean", 2: "unknown", 3: "passed-over", 4: "clean"}, 3) == (2, 5, 6)
    assert wanted_runs(ZERO, {1: "clean", 2: "unknown", 3: "passed-over"}, 100) == (2, *range(4, 31))
    assert wanted_runs(ZERO, runs(*clean(27)), 100) == (28, 29)
    assert wanted_runs(ZERO, runs(*clean(29)), 100) == ()
    assert wanted_runs(ZERO, {5: "failed"}, 100) == ()
    assert wanted_runs(ZERO, {}, 0) == ()
    assert wanted_runs(ZERO, {40: "clean"}, 100) == tuple(range(1, 30))
    assert wanted_runs(ALLOW_ONE, {5: "failed"}, 100) == (1, 2, 3, 4, *range(6, 55))


def test_the_next_few_runs_of_a_plan_that_nobody_finishes_are_found_at_once() -> None:
    assert wanted_runs(Plan(name="any", bounds=(10**15,)), {2: "clean"}, 3) == (1, 3, 4)


def test_no_run_is_wanted_where_even_clean_ones_end_in_a_refutation() -> None:
    assert wanted_runs(ZERO, {5: "failed"}, 2) == ()
    assert wanted_runs(ZERO, {29: "failed"}, 1) == ()
    assert wanted_runs(ALLOW_ONE, {5: "failed", 54: "failed"}, 1) == ()
    assert wanted_runs(ALLOW_ONE, {5: "failed", 6: "failed", 7: "clean"}, 1) == ()


def test_a_failure_behind_the_run_that_may_claim_spares_no_hole() -> None:
    assert wanted_runs(ZERO, {**runs(*clean(28)), 30: "failed"}, 100) == (29,)
    assert wanted_runs(ALLOW_ONE, {**runs(*clean(30)), 40: "failed", 45: "failed"}, 100) == (31,)
    assert wanted_runs(ALLOW_ONE, {5: "failed", 55: "failed"}, 1) == (1,)


def test_the_bound_so_far_takes_a_missing_run_for_a_failed_one() -> None:
    assert bound_at_this_look(decide(ZERO, runs(*clean(20))), "0.05") == upper_bound(0, 20, "0.05")
    holed = decide(ALLOW_ONE, {**runs("failed", *clean(20)), 4: "unknown", 23: "clean"})
    assert holed.missing == (4, 22)
    assert bound_at_this_look(holed, "0.05") == upper_bound(3, 23, "0.05")
    assert bound_at_this_look(decide(ZERO, {}), "0.05") == Decimal(1)
    with pytest.raises(UsageRefused, match=r"^Couldn't use risk = 1: "):
        bound_at_this_look(holed, "1")


@pytest.mark.parametrize("bounds", [(), (0,), (-1, 3), (5, 4), (3, 7, 6)])
def test_a_plan_whose_bounds_fall_or_claim_without_a_run_is_refused(bounds: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError, match="bounds of at least 1 run that never decrease with the failures"):
        Plan(name="any", bounds=bounds)


def test_a_plan_may_claim_at_the_first_run_and_repeat_a_bound() -> None:
    assert decide(Plan(name="any", bounds=(1, 1)), runs("failed")).outcome == "accepted"


@pytest.mark.parametrize(
    ("verdict", "fresh", "pass_over", "outcome"),
    [
        ("clean", True, False, "clean"),
        ("clean", False, False, "unknown"),
        ("recurred", False, True, "failed"),
        ("failed-otherwise", True, False, "failed"),
        ("failed-otherwise", True, True, "passed-over"),
        ("inconclusive", True, False, "unknown"),
    ],
)
def test_what_one_live_attempt_says(verdict: str, fresh: bool, pass_over: bool, outcome: str) -> None:
    row = LiveRow.model_validate({"run": 1, "verdict": verdict, "session_id": "s"})
    assert outcome_of(row.verdict, fresh=fresh, pass_over=pass_over) == outcome


def test_a_number_that_was_run_again_counts_once_and_a_failure_outweighs() -> None:
    rows = (*live("inconclusive", "clean", "clean"), *live("clean", "recurred"), *live("inconclusive", first=3))
    assert history_of(rows, pass_over=False) == {1: "clean", 2: "failed", 3: "clean"}


def test_a_history_passes_over_only_where_the_case_says_so() -> None:
    rows = live("failed-otherwise", "clean")
    assert history_of(rows, pass_over=True) == {1: "passed-over", 2: "clean"}
    assert history_of(rows, pass_over=False) == {1: "failed", 2: "clean"}


def test_the_history_is_in_run_order() -> None:
    assert list(history_of((*live("clean", first=3), *live("clean", "clean")), pass_over=False)) == [1, 2, 3]
