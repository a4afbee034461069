import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import FileError, ImportRefused, UsageRefused
from pytest_regcase.records.words import TrialStatus
from pytest_regcase.session.batches.run_folder import RunFolder
from pytest_regcase.session.batches.summary import STATUSES, Summary, runs_in, summarise
from tests.session.batches.run_samples import (
    CRASHED,
    FAILED_GRADER,
    LOST_SNAPSHOT,
    NO_PATCH,
    NOTHING,
    PATCH,
    WORKED,
    graded,
    make_run,
    write_trial,
)

REPORT: dict[str, Any] = {
    "total_instances": 500,
    "submitted_instances": 1,
    "completed_instances": 1,
    "resolved_instances": 0,
    "unresolved_instances": 0,
    "empty_patch_instances": 0,
    "error_instances": 0,
    "schema_version": 2,
}


def report(folder: Path, name: str = "model.run.json", **lists: Any) -> Path:
    """Write a run report with these keys beside the usual counts, and return its folder."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps({**REPORT, **lists}))
    return folder


def status(summary: Summary, task_id: str) -> TrialStatus:
    """Return the status of one task."""
    return next(each.status for each in summary.tasks if each.task_id == task_id)


def test_one_status_a_task_and_the_counts_add_up(tmp_path: Path) -> None:
    run = make_run(
        tmp_path / "run",
        {
            "a": None,
            "c": CRASHED,
            "d": NO_PATCH,
            "e": FAILED_GRADER,
            "f": LOST_SNAPSHOT,
            "g": graded(passed=True),
            "h": graded(passed=False),
        },
    )
    summary = summarise(run)
    assert [(each.task_id, each.status, each.degraded, each.quality, each.retry) for each in summary.tasks] == [
        ("a", "not_reached", False, None, None),
        ("c", "agent_error", False, "agent-failed", "now"),
        ("d", "patch_capture_failed", True, "degraded", "never"),
        ("e", "unscored", False, "unscored", "now"),
        ("f", "unscored", True, "degraded", "never"),
        ("g", "resolved", False, "complete", None),
        ("h", "unresolved", False, "complete", None),
    ]
    assert tuple(summary.counts) == STATUSES
    assert sum(summary.counts.values()) == 7
    assert summary.degraded == 2
    assert summary.attempts == 6
    assert summary.tasks[1].cause == "transient (rate_limit)"
    assert summary.tasks[3].lost == ("grade (grader, transient)",)


@pytest.mark.parametrize("begun", [b"", b'{"kind": "tri', b'{"kind": "trial", "schema": 1, "task_id": "a"}\n{"ki'])
def test_a_trial_that_nobody_ended_is_interrupted_however_little_of_it_there_is(
    tmp_path: Path, begun: bytes
) -> None:
    run = make_run(tmp_path / "run", {"a": None, "b": None})
    (run / "a").mkdir()
    (run / "a" / "trial.jsonl").write_bytes(begun)
    summary = summarise(run)
    assert (status(summary, "a"), status(summary, "b")) == ("interrupted", "not_reached")
    assert summary.tasks[0].retry == "now"


def test_not_reached_follows_from_our_records_alone(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"a": None})
    line = {"instance_id": "a", "model_name_or_path": "m", "model_patch": PATCH, "status": "submitted"}
    (run / "predictions.jsonl").write_text(json.dumps(line) + "\n")
    found = summarise(run, report(tmp_path / "reports", resolved_ids=["a"]))
    assert status(found, "a") == "not_reached"


def test_a_crash_by_the_mark_alone_and_whatever_the_scorer_says(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"a": CRASHED, "b": WORKED})
    line = {"instance_id": "b", "model_name_or_path": "m", "model_patch": None, "status": "agent_error"}
    (run / "predictions.jsonl").write_text('{"half a li\n' + json.dumps(line) + "\n")
    summary = summarise(run, report(tmp_path / "reports", resolved_ids=["a", "b"]))
    assert (status(summary, "a"), status(summary, "b")) == ("agent_error", "agent_error")


LABELS: tuple[tuple[dict[str, Any], TrialStatus, tuple[str, ...]], ...] = (
    ({"resolved_ids": ["a"]}, "resolved", ("swe-bench:resolved",)),
    ({"unresolved_ids": ["a"]}, "unresolved", ("swe-bench:unresolved",)),
    ({"empty_patch_ids": ["a"]}, "empty_patch", ("swe-bench:empty_patch",)),
    ({"error_ids": ["a"]}, "unscored", ("swe-bench:error",)),
    ({"incomplete_ids": ["a"]}, "unscored", ("swe-bench:incomplete",)),
    ({"pending_ids": ["a"]}, "unscored", ("swe-bench:pending",)),
    ({"failed_ids": ["a"]}, "unscored", ("swe-bench:failed",)),
    (
        {"unresolved_ids": ["a"], "infra_failure_ids": ["a"], "failure_reasons": {"a": "out_of_memory"}},
        "unresolved",
        ("swe-bench:infra_failure", "infra:out_of_memory"),
    ),
    (
        {"error_ids": ["a"], "ambiguous_failure_ids": ["a"], "failure_reasons": {"a": "no_tests_collected"}},
        "unscored",
        ("swe-bench:ambiguous_failure", "infra:no_tests_collected"),
    ),
    ({"resolved_ids": ["a"], "unresolved_ids": ["a"]}, "unscored", ()),
)


@pytest.mark.parametrize(("lists", "expected", "clues"), LABELS, ids=[str(each) for each in range(len(LABELS))])
def test_each_label_of_a_report(
    tmp_path: Path, lists: dict[str, Any], expected: TrialStatus, clues: tuple[str, ...]
) -> None:
    run = make_run(tmp_path / "run", {"a": WORKED})
    summary = summarise(run, report(tmp_path / "reports", **lists))
    assert summary.tasks[0].status == expected
    assert set(clues) <= set(summary.tasks[0].clues)


def test_an_empty_patch_is_one_also_where_a_scorer_has_it_resolved(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"a": NOTHING})
    assert status(summarise(run), "a") == "unscored"
    assert status(summarise(run, report(tmp_path / "reports", resolved_ids=["a"])), "a") == "empty_patch"


def test_the_scorers_word_counts_before_our_own_graders_which_is_named(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"a": graded(passed=True)})
    summary = summarise(run, report(tmp_path / "reports", unresolved_ids=["a"]))
    assert summary.tasks[0].status == "unresolved"
    assert "our own grader: resolved" in summary.tasks[0].clues


def test_reports_of_two_runs_are_refused_and_of_one_run_are_joined(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"a": WORKED, "b": WORKED})
    reports = report(tmp_path / "reports", unresolved_ids=["a"])
    instance = {"patch_is_None": False, "patch_exists": True, "resolved": False, "infra_failure": True}
    (reports / "report.json").write_text(json.dumps({"a": {**instance, "infra_failure_reason": "out_of_memory"}}))
    (task, other) = summarise(run, reports).tasks
    assert task.status == "unresolved"
    assert {"swe-bench:unresolved", "infra:out_of_memory"} <= set(task.clues)
    assert other.status == "unscored"
    report(reports, "other.run.json", resolved_ids=["a"])
    with pytest.raises(UsageRefused, match="score a differently"):
        summarise(run, reports)


def test_what_the_reports_do_not_name_and_what_they_name_besides_is_said(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"a": WORKED, "b": WORKED})
    reports = report(tmp_path / "reports", resolved_ids=["a", "x", "y"])
    (reports / "cut.json").write_text(json.dumps(REPORT)[:-20])
    summary = summarise(run, reports)
    assert any("no report names 1 of the 2 tasks" in each for each in summary.notices)
    assert any("the reports name 2 tasks" in each for each in summary.notices)


def test_the_files_of_a_public_run(tmp_path: Path, shared_trials: Path) -> None:
    samples = shared_trials / "public" / "swe-bench"
    ids = {
        "sympy__sympy-16766": "resolved",
        "sympy__sympy-13974": "unresolved",
        "pylint-dev__pylint-4551": "unresolved",
        "django__django-13513": "empty_patch",
        "pydata__xarray-6992": None,  # in the run report it is scored; the folder beside it is of another run
        "astropy__astropy-12907": "unscored",
    }
    run = make_run(tmp_path / "run", {each: NOTHING if "13513" in each else WORKED for each in ids})
    summary = summarise(run, samples)
    found = {each.task_id: each.status for each in summary.tasks}
    assert {each: word for each, word in found.items() if ids[each] is not None} == {
        each: word for each, word in ids.items() if word is not None
    }
    assert sum(summary.counts.values()) == len(ids)


def test_a_folder_of_runs_and_one_that_is_none(tmp_path: Path) -> None:
    make_run(tmp_path / "b", {"x": WORKED}, kind="controlled")
    make_run(tmp_path / "a", {"x": WORKED})
    assert runs_in(tmp_path) == (tmp_path / "a", tmp_path / "b")
    assert runs_in(tmp_path / "a") == (tmp_path / "a",)
    with pytest.raises(UsageRefused, match=r"holds no run\.json"):
        runs_in(tmp_path / "a" / "x")
    (tmp_path / "a" / "run.json").write_text('{"schema": 2}')
    with pytest.raises(FileError, match=r"run\.json: "):
        summarise(tmp_path / "a")


def test_a_folder_without_a_report_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"a": WORKED})
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImportRefused, match="no report of SWE-bench"):
        summarise(run, tmp_path / "empty")


def test_a_run_under_way_is_said_to_be(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", {"a": None})
    assert summarise(folder).notices == ()
    with RunFolder(folder).locked():
        (notice,) = summarise(folder).notices
        assert notice.startswith(f"process {os.getpid()} is at this run")
    assert summarise(folder).notices == ()


def test_attempts_that_were_put_aside_count_as_attempts(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"a": WORKED})
    (run / "earlier-attempts").mkdir()
    write_trial(run / "earlier-attempts" / "a-1", "a", CRASHED)
    summary = summarise(run)
    assert summary.attempts == 2
    assert summary.tasks[0].earlier_attempts == 1
