"""The pitfalls of counting reruns, each with its test: most stand elsewhere and are named, the others are here."""

from fractions import Fraction
from functools import reduce
from importlib import import_module

import pytest

from pytest_regcase.rules.evidence_process import e_point
from pytest_regcase.rules.many_claims import ebh
from pytest_regcase.rules.suite import suite_green, suite_green_bb

PITFALLS = {
    1: ("ties are rounded up", "rules.test_rerun.test_clean_reruns"),
    2: ("rates and risks of 0 and 1", "rules.test_rerun.test_a_rate_or_risk_that_is_none_is_refused_by_its_name"),
    3: ("a two-sided interval read as one-sided", "rules.test_binomial.test_a_bound_is_one_sided"),
    4: ("rows for columns", "rules.test_comparison.test_boschloo_takes_before_and_after_as_the_groups"),
    5: (
        "the counter starts again at a failure",
        "rules.test_operating.test_a_counter_that_starts_again_after_each_failure_is_no_test",
    ),
    6: (
        "allowed failures chosen after the fact",
        "rules.test_plans.test_allowing_a_failure_after_it_was_seen_is_refused",
    ),
    7: ("reruns merged into the rate", "rules.test_flake.test_reruns_are_not_merged_into_the_rate"),
    8: (
        "the triggering failure as the baseline",
        "rules.test_comparison.test_a_case_with_the_failure_that_made_it_as_its_baseline_passes_far_too_often",
    ),
    9: (
        "what did not run counted as clean",
        "rules.test_flake.test_what_proved_nothing_is_unknown_and_never_clean",
    ),
    10: (
        "revisions pooled",
        "rules.test_quarantine.test_revisions_that_fail_at_different_rates_are_not_pooled",
    ),
    11: (
        "one transcript repeated",
        "rules.test_independence.test_distinct_counts_the_lowest_run_of_each_transcript",
    ),
    12: ("simulated runs counted", "rules.test_flake.test_simulated_runs_have_no_recurrence_rate"),
    13: (
        "fix attempts not counted",
        "rules.test_spending.test_fix_attempts_that_are_not_counted_raise_the_risk",
    ),
    14: (
        "a point estimate quarantines",
        "rules.test_quarantine.test_one_failure_in_ten_is_no_rate_of_ten_percent",
    ),
    15: (
        "the way out wider than the way in",
        "rules.test_quarantine.test_the_way_out_is_not_wider_than_the_way_in",
    ),
    16: (
        "reruns taken as independent",
        "rules.test_pitfalls.test_reruns_that_fail_together_do_not_keep_a_suite_green",
    ),
    17: ("more uses than trials", "rules.test_pass_at_k.test_counts_that_cannot_be_are_refused"),
    18: (
        "cases pooled to reach the number",
        "rules.test_claims.test_reruns_of_one_task_are_not_compared_with_a_sweep",
    ),
    19: (
        "Wald's threshold called exact",
        "rules.test_plans.test_walds_test_does_not_hold_its_risk_and_is_no_plan",
    ),
    20: (
        "an interval for one look read at each",
        "rules.test_evidence_process"
        ".test_an_interval_for_a_fixed_number_of_runs_does_not_hold_when_it_is_read_after_each_run",
    ),
    21: (
        "the highest e-value ever, not the present one",
        "rules.test_pitfalls.test_the_highest_value_of_an_e_process_is_no_e_value",
    ),
    22: (
        "flaky verdicts taken for failures",
        "rules.test_flake.test_half_of_the_runs_failing_is_a_rate_of_one_half_not_of_a_quarter",
    ),
    23: (
        "writers that lose one another's rows",
        "ledger.test_store.test_two_first_sessions_at_once_make_one_ledger_and_lose_nothing",
    ),
    24: (
        "the case changed between baseline and reruns",
        "session.test_gate.TestLiveRows.test_another_case_digest_is_another_count",
    ),
}
"""Number in the list of pitfalls -> what goes wrong, and the test that holds against it."""


@pytest.mark.parametrize("number", range(1, 25))
def test_every_pitfall_has_its_test(number: int) -> None:
    """The test that is named exists, so that renaming it away is noticed."""
    path = PITFALLS[number][1].split(".")
    assert callable(reduce(getattr, path[2:], import_module(".".join(("tests", *path[:2])))))


def test_reruns_that_fail_together_do_not_keep_a_suite_green() -> None:
    """A suite planned for 5 % false red with one rerun is red in half of its runs at a correlation of 0.2."""
    assert float(1 - suite_green("0.016", 200, 1)) == pytest.approx(0.05, abs=0.001)
    assert float(1 - suite_green_bb("0.016", "0.2", 200, 1)) == pytest.approx(0.495, abs=0.001)


def test_the_highest_value_of_an_e_process_is_no_e_value() -> None:
    """At exactly the rate that is to be ruled out an e-value has mean 1; the highest one so far has 1 + n * rate.

    So it is the value at each case's own stopping time that goes into the claims over many cases.
    """
    rate, runs = Fraction(1, 10), 29
    path = [e_point(0, run, rate, Fraction(0)) for run in range(runs + 1)]
    fails_behind = [rate * (1 - rate) ** run for run in range(runs)]
    none_fails = (1 - rate) ** runs
    assert none_fails * path[runs] == 1
    assert sum(chance * path[run] for run, chance in enumerate(fails_behind)) + none_fails * path[
        runs
    ] == Fraction(39, 10)
    assert ebh([20.0] * 8, "0.05") == tuple(range(8))
    assert ebh([20.0] + [1.0] * 7, "0.05") == ()
