from dataclasses import replace
from typing import get_args

import pytest

from pytest_regcase.records.words import FailureCauseWord, TrialStatus
from pytest_regcase.rules.trial_status import Loss, TrialFacts, run_quality, trial_status

EVERYTHING = TrialFacts(
    reached=False, interrupted=True, agent_failed=True, patch_capture_failed=True, resolved=None, empty_patch=True
)
"""Every status holds; each step below takes away the first one."""
STEPS: tuple[dict[str, bool], ...] = (
    {},
    {"reached": True},
    {"interrupted": False},
    {"agent_failed": False},
    {"patch_capture_failed": False},
    {"resolved": True},
    {"empty_patch": False},
    {"resolved": False},
)


def test_the_first_status_that_holds_in_the_order_of_the_words() -> None:
    facts, found = EVERYTHING, []
    for step in STEPS:
        facts = replace(facts, **step)
        found.append(trial_status(facts))
    assert tuple(found) == get_args(TrialStatus)


def test_a_crash_stays_one_whatever_a_scorer_says() -> None:
    assert trial_status(TrialFacts(reached=True, agent_failed=True, resolved=True)) == "agent_error"


@pytest.mark.parametrize(
    ("cause", "retry"),
    [("transient", "now"), ("key_budget", "after-budget-reset"), ("key_auth", "never"), ("unknown", "never")],
)
def test_whether_a_retry_makes_sense_follows_from_the_cause(cause: FailureCauseWord, retry: str) -> None:
    failed = run_quality([], agent_failed=cause, interrupted=False)
    assert (failed.quality, failed.retry) == ("agent-failed", retry)
    unscored = run_quality([Loss("grader", cause)], agent_failed=None, interrupted=False)
    assert (unscored.quality, unscored.retry) == ("unscored", retry)
    degraded = run_quality([Loss("evidence", cause)], agent_failed=None, interrupted=False)
    assert (degraded.quality, degraded.retry) == ("degraded", retry)


def test_of_several_losses_the_worst_word_and_the_least_hope() -> None:
    lost = [Loss("evidence", "transient"), Loss("grader", "key_budget"), Loss("grader", "transient")]
    found = run_quality(lost, agent_failed=None, interrupted=False)
    assert (found.quality, found.retry) == ("unscored", "after-budget-reset")
    found = run_quality([*lost, Loss("grader", "key_auth")], agent_failed=None, interrupted=False)
    assert found.retry == "never"


def test_a_whole_run_needs_no_retry_and_an_interrupted_one_only_time() -> None:
    whole = run_quality([Loss("other", "unknown")], agent_failed=None, interrupted=False)
    assert (whole.quality, whole.retry) == ("complete", None)
    cut = run_quality([], agent_failed="unknown", interrupted=True)
    assert (cut.quality, cut.retry) == ("agent-failed", "now")
