"""A report and a trajectory of one task id are one trial: the steps of the one, the outcome of the other."""

from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.importers.joining import joined_ref, joined_trial, nearest, outcomes_agree
from pytest_regcase.records.trial import Submission, TranscriptLine, Trial, TrialRef

NO_SIGN = TrialRef(key="t", task_id="a", why_not="no score", refusal="no-sign-of-failure")


def report(**facts: Any) -> TrialRef:
    return TrialRef(**{"key": "r", "task_id": "a", "joins_by": "a", **facts})


def trial(**facts: Any) -> Trial:
    return Trial(**{"format": "x", "event_id": "e", "event_id_from": "recorded", **facts})


def test_the_nearest_shares_the_longest_beginning() -> None:
    here = Path("/s/m1/reports/r.json")
    assert nearest(here, [Path("/s/m1/t.json"), Path("/s/m2/t.json")]) == [0]
    assert nearest(here, [Path("/s/x/t.json"), Path("/s/m2/t.json")]) == [0, 1]
    assert nearest(here, [Path("/s/m1/t"), Path("/s/m1/reports/t")]) == [1]


@pytest.mark.parametrize(
    ("said", "agree"),
    [(["failed", "undetermined"], True), (["failed", "failed"], True), (["failed", "passed"], False), ([], True)],
)
def test_a_record_that_says_nothing_contradicts_none(said: list[Any], agree: bool) -> None:
    assert outcomes_agree([report(outcome=each) for each in said]) is agree


def test_what_the_report_calls_failed_is_a_failed_trial() -> None:
    ref = joined_ref(NO_SIGN, [report(outcome="failed", failed=True)])
    assert (ref.failed, ref.outcome, ref.why_not, ref.refusal) == (True, "failed", None, None)
    assert ref.key == "t"


def test_what_the_report_calls_passed_is_none_even_with_an_error() -> None:
    ref = joined_ref(
        TrialRef(key="t", failed=True), [report(outcome="passed", why_not="resolved", refusal="passed")]
    )
    assert (ref.failed, ref.outcome, ref.why_not, ref.refusal) == (False, "passed", "resolved", "passed")


def test_where_the_report_leaves_it_open_the_trajectory_decides() -> None:
    assert joined_ref(NO_SIGN, [report()]) == NO_SIGN
    failed = TrialRef(key="t", failed=True, termination="error")
    assert joined_ref(failed, [report()]) == failed
    assert joined_ref(NO_SIGN, [report(failed=True)]).failed  # the evaluation broke off: a sign of failure


def test_the_joined_trial_says_where_each_part_is_from() -> None:
    steps = (TranscriptLine(step=1, role="assistant", text="x"),)
    trajectory = trial(
        steps=steps,
        labels=("mini:x",),
        missing=("a patch",),
        source_digests={"t.json": "sha256:1", "same": "sha256:2"},
        can_show=("log_failure",),
    )
    record = trial(
        format="swe-bench",
        outcome="failed",
        outcome_from="log",
        labels=("swe:unresolved", "mini:x"),
        submission=Submission(patch="diff"),
        run_id="run-1",
        source_digests={"same": "sha256:3", "r.json": "sha256:4"},
        can_show=("mark_failure",),
    )
    whole = joined_trial(trajectory, [record])
    assert whole.steps == steps
    assert (whole.format, whole.event_id, whole.run_id) == ("x", "e", "run-1")
    assert (whole.outcome, whole.outcome_from) == ("failed", "log")
    assert whole.labels == ("mini:x", "swe:unresolved")
    assert whole.submission == Submission(patch="diff")
    assert whole.can_show == ("log_failure", "mark_failure")
    assert whole.source_digests == {
        "t.json": "sha256:1",
        "same": "sha256:2",
        "same (of the swe-bench record)": "sha256:3",
        "r.json": "sha256:4",
    }
    assert whole.missing[0] == "a patch"
    assert "swe-bench record of the same task id" in whole.missing[-1]


def test_only_what_a_record_adds_is_said_to_be_its() -> None:
    mine = trial(submission=Submission(patch="diff"), model="m", labels=("a",), missing=("x",))
    silent = trial(
        format="predictions",
        submission=Submission(patch="diff"),
        model="m",
        labels=("a",),
        missing=("predictions hold no steps",),
        source_digests={"preds": "sha256:1"},
    )
    alone = joined_trial(mine, [silent])
    assert alone == mine.model_copy(update={"source_digests": {"preds": "sha256:1"}})
    whole = joined_trial(mine, [silent, trial(format="report", outcome="failed", run_id="r", missing=("y",))])
    assert whole.missing == (
        "x",
        "y",
        "outcome, run id in this record alone: joined from the report record of the same task id",
    )


def test_a_trajectory_keeps_what_it_holds_itself() -> None:
    trajectory = trial(run_id="mine", submission=Submission(text="x"), outcome="failed", outcome_from="log")
    whole = joined_trial(trajectory, [trial(run_id="other"), trial(run_id="third", model="m")])
    assert (whole.run_id, whole.submission, whole.outcome, whole.model) == (
        "mine",
        Submission(text="x"),
        "failed",
        "m",
    )
