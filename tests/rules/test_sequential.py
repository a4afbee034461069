import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.records.session import LiveRow
from pytest_regcase.rules.sequential import Plan, RunOutcome, decide, history_of, outcome_of, plan_for, wanted_runs
from tests.rules.attempt_samples import live

ZERO = plan_for("zero", "0.10", "0.05")
ALLOW_ONE = Plan(name="allow-one", bounds=(31, 54))


def runs(*outcomes: RunOutcome) -> dict[int, RunOutcome]:
    return dict(enumerate(outcomes, 1))


def clean(count: int) -> list[RunOutcome]:
    return ["clean"] * count


def test_the_plan_zero_needs_29_at_the_defaults() -> None:
    assert ZERO.bounds == (29,)


def test_a_plan_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageRefused, match="allow-one"):
        plan_for("allow-one", "0.10", "0.05")


def test_nothing_run_is_undecided() -> None:
    result = decide(ZERO, {})
    assert (result.outcome, result.clean, result.need, result.missing) == ("undecided", 0, 29, ())


def test_the_29th_clean_run_is_accepted_and_28_are_not() -> None:
    assert decide(ZERO, runs(*clean(28))).outcome == "undecided"
    accepted = decide(ZERO, runs(*clean(29)))
    assert (accepted.outcome, accepted.clean) == ("accepted", 29)


def test_the_first_failure_refutes_and_what_lies_behind_changes_nothing() -> None:
    refuted = decide(ZERO, runs("clean", "clean", "failed"))
    assert (refuted.outcome, refuted.clean, refuted.refuted_by_run) == ("refuted", 2, 3)
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


def test_a_plan_that_allows_one_failure_fits_the_same_reading() -> None:
    one_failed = decide(ALLOW_ONE, runs("failed", *clean(30)))
    assert (one_failed.outcome, one_failed.need, one_failed.refuted_by_run) == ("undecided", 53, 1)
    assert decide(ALLOW_ONE, runs("failed", *clean(53))).outcome == "accepted"
    assert decide(ALLOW_ONE, runs(*clean(31))).outcome == "accepted"
    assert decide(ALLOW_ONE, runs("failed", "clean", "failed")).outcome == "refuted"


def test_the_next_runs_fill_holes_first_and_stop_at_what_is_needed() -> None:
    assert wanted_runs(ZERO, {}, 3) == (1, 2, 3)
    assert wanted_runs(ZERO, {1: "clean", 2: "unknown", 3: "passed-over", 4: "clean"}, 3) == (2, 5, 6)
    assert wanted_runs(ZERO, runs(*clean(27)), 100) == (28, 29)
    assert wanted_runs(ZERO, runs(*clean(29)), 100) == ()
    assert wanted_runs(ZERO, {5: "failed"}, 100) == ()
    assert wanted_runs(ZERO, {}, 0) == ()
    assert wanted_runs(ZERO, {40: "clean"}, 100) == tuple(range(1, 30))
    assert len(wanted_runs(ALLOW_ONE, {5: "failed"}, 100)) == 53


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
