"""The report of a SWE-bench run: an outcome an instance, and labels that are no causes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import find_trials, read_one
from pytest_regcase.importers.swe_bench_run_report import SweBenchRunReport
from pytest_regcase.records.trial import Trial

GOLD = Path(__file__).parent.parent / "gold" / "swe-bench-report" / "run.json"
NAME = "calc__calc-"


@pytest.fixture
def edited(tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    def made(changes: dict[str, Any]) -> Path:
        path = tmp_path / "x"
        path.write_text(json.dumps(json.loads(GOLD.read_text()) | changes))
        return path

    return made


def read(path: Path, key: str) -> Trial:
    (ref,) = [each for each in SweBenchRunReport().list_trials(path) if each.key == key]
    return SweBenchRunReport().read(path, ref)


def test_each_instance_has_the_outcome_of_its_list() -> None:
    found = find_trials(GOLD)
    assert found.importer == "swe-bench-report"
    assert {ref.key: (ref.outcome, ref.failed, ref.refusal) for ref in found.refs} == {
        f"{NAME}1": ("passed", False, "passed"),
        f"{NAME}2": ("failed", True, None),
        f"{NAME}3": ("failed", True, None),
        f"{NAME}4": ("failed", True, None),
        f"{NAME}5": ("undetermined", True, None),
        f"{NAME}6": ("undetermined", True, None),
        f"{NAME}7": ("undetermined", False, "no-record"),
    }
    assert all(ref.joins_by == ref.task_id == ref.key for ref in found.refs)


def test_labels_are_the_harnesss_own_and_no_error() -> None:
    assert {key: read(GOLD, f"{NAME}{key}").labels for key in range(1, 8)} == {
        1: ("swe-bench:resolved",),
        2: ("swe-bench:unresolved",),
        3: ("swe-bench:unresolved", "swe-bench:infra_failure", "infra:out_of_memory"),
        4: ("swe-bench:unresolved", "swe-bench:ambiguous_failure", "infra:tests_timed_out"),
        5: ("swe-bench:error",),
        6: ("swe-bench:empty_patch",),
        7: ("swe-bench:incomplete",),
    }
    trial = read(GOLD, f"{NAME}3")
    assert (trial.outcome, trial.outcome_from, trial.error, trial.termination, trial.steps) == (
        "failed",
        "log",
        None,
        None,
        (),
    )


def test_what_was_never_handed_in_has_no_record() -> None:
    with pytest.raises(ImportRefused, match="no prediction was handed in") as caught:
        read_one(GOLD, key=f"{NAME}7")
    assert caught.value.slug == "no-record"


def test_a_report_and_a_trajectory_of_one_instance_are_one_trial(
    edited: Callable[[dict[str, Any]], Path], tmp_path: Path
) -> None:
    trajectory = json.loads((GOLD.parent.parent / "mini-swe-agent" / "submitted.traj.json").read_text())
    (tmp_path / "t.traj.json").write_text(json.dumps(trajectory | {"instance_id": f"{NAME}4"}))
    edited({"unresolved_ids": [f"{NAME}4"]})
    trial = read_one(tmp_path, sample=f"{NAME}4")
    assert (trial.format, trial.termination, trial.outcome, trial.failing_step) == (
        "mini-swe-agent",
        "finished",
        "failed",
        3,
    )
    assert trial.labels == (
        "mini:exit_status:Submitted",
        "swe-bench:unresolved",
        "swe-bench:ambiguous_failure",
        "infra:tests_timed_out",
    )


def test_a_report_of_sb_cli(edited: Callable[[dict[str, Any]], Path]) -> None:
    path = edited({"pending_ids": ["a"], "failed_ids": ["b"], "empty_patch_ids": None})
    found = {ref.key: (ref.outcome, ref.failed, ref.refusal) for ref in find_trials(path).refs}
    assert found["a"] == ("undetermined", False, "no-sign-of-failure")
    assert found["b"] == ("undetermined", True, None)


def test_lists_that_contradict_one_another_decide_nothing(edited: Callable[[dict[str, Any]], Path]) -> None:
    path = edited({"resolved_ids": [f"{NAME}2"]})
    trial = read(path, f"{NAME}2")
    assert (trial.outcome, trial.labels) == ("undetermined", ("swe-bench:resolved", "swe-bench:unresolved"))
    assert "contradict" in trial.missing[0]


def test_an_unknown_version_is_read_and_said(edited: Callable[[dict[str, Any]], Path]) -> None:
    assert (
        read(edited({"schema_version": 3}), f"{NAME}2").missing[0]
        == "schema_version 3 is not one that we know (2)"
    )


@pytest.mark.parametrize("wrong", [None, 1, "x", [[]], [None, "", 1], {}])
def test_lists_of_another_type_name_nobody(edited: Callable[[dict[str, Any]], Path], wrong: Any) -> None:
    names = ("resolved", "unresolved", "empty_patch", "error", "incomplete", "infra_failure", "ambiguous_failure")
    path = edited({f"{name}_ids": wrong for name in names} | {"failure_reasons": wrong})
    with pytest.raises(ImportRefused) as caught:
        read_one(path)
    assert caught.value.slug == "no-trial"
