"""SWE-bench's own record of one instance: a report, or the folder of its logs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import find_trials, read_one

GOLD = Path(__file__).parent.parent / "gold" / "swe-bench-instance"
RUN = "2026-04-12 09:31:00,123 - INFO - "


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[str], Path]:
    def copied(name: str) -> Path:
        return Path(shutil.copytree(GOLD / name, tmp_path / "trial"))

    return copied


def test_unresolved_is_failed_and_says_which_tests() -> None:
    trial = read_one(GOLD / "unresolved.json")
    assert (trial.format, trial.harness, trial.task_id, trial.run_id) == (
        "swe-bench-instance",
        "SWE-bench",
        "calc__calc-2",
        None,
    )
    assert (trial.outcome, trial.outcome_from, trial.termination, trial.error) == ("failed", "log", None, None)
    assert trial.labels == ("swe-bench:resolved=false", "swe-bench:FAIL_TO_PASS:failure=1 of 1")
    assert (trial.steps, trial.failing_step, trial.can_show) == ((), None, ())


def test_resolved_is_passed() -> None:
    with pytest.raises(ImportRefused) as caught:
        read_one(GOLD / "resolved.json")
    assert caught.value.slug == "passed"


def test_a_folder_adds_the_patch_the_run_and_what_its_log_marks() -> None:
    trial = read_one(GOLD / "timed_out")
    assert (trial.task_id, trial.run_id, trial.model) == ("calc__calc-4", "nightly-7", "small-agent")
    assert trial.outcome == "failed"
    assert trial.labels == (
        "swe-bench:Tests Timed Out",
        "swe-bench:resolved=false",
        "swe-bench:patch_successfully_applied=false",
        "swe-bench:ambiguous_failure",
        "infra:tests_timed_out",
    )
    assert trial.submission is not None
    assert trial.submission.patch == (GOLD / "timed_out" / "patch.diff").read_text()
    assert list(trial.source_digests) == ["report.json", "run_instance.log", "patch.diff", "test_output.txt"]


def test_a_folder_without_a_report_is_undetermined_and_importable() -> None:
    (ref,) = find_trials(GOLD / "no_report").refs
    assert (ref.key, ref.joins_by, ref.failed, ref.outcome) == (
        "calc__calc-5",
        "calc__calc-5",
        True,
        "undetermined",
    )
    trial = read_one(GOLD / "no_report")
    assert (trial.outcome, trial.outcome_from, trial.labels) == ("undetermined", None, ())
    assert trial.missing[0] == "outcome: there is no report.json, so the evaluation was cut off or broke"


@pytest.mark.parametrize("content", ["", "{", '{"calc__calc-4": 1}', "[]"])
def test_a_report_that_cannot_be_read_leaves_the_outcome_open(folder: Callable[[str], Path], content: str) -> None:
    place = folder("timed_out")
    (place / "report.json").write_text(content)
    trial = read_one(place)
    assert (trial.outcome, trial.task_id) == ("undetermined", "calc__calc-4")
    assert trial.missing[0].startswith("outcome: report.json cannot be read")


def test_a_label_of_the_environment_is_a_label(tmp_path: Path) -> None:
    report = json.loads((GOLD / "unresolved.json").read_text())
    report["calc__calc-2"] |= {"infra_failure": True, "infra_failure_reason": "out_of_memory"}
    path = tmp_path / "x"
    path.write_text(json.dumps(report))
    trial = read_one(path)
    assert trial.labels[-2:] == ("swe-bench:infra_failure", "infra:out_of_memory")
    assert (trial.outcome, trial.error, trial.termination) == ("failed", None, None)


def test_a_null_patch_and_one_that_did_not_apply_are_labelled(tmp_path: Path) -> None:
    report: dict[str, Any] = {
        "a": {"patch_is_None": True, "patch_exists": False, "resolved": False},
        "b": {"patch_is_None": False, "patch_exists": True, "patch_successfully_applied": False, "resolved": None},
    }
    path = tmp_path / "x"
    path.write_text(json.dumps(report))
    assert [(ref.key, ref.outcome) for ref in find_trials(path).refs] == [("a", "failed"), ("b", "undetermined")]
    assert read_one(path, key="a").labels == ("swe-bench:resolved=false", "swe-bench:patch_is_None")
    assert read_one(path, key="b").labels == ("swe-bench:patch_successfully_applied=false",)


@pytest.mark.parametrize(
    ("log", "instance"), [(f"{RUN}Creating container for a__b-1...\n".encode(), "a__b-1"), (b"\xff\xfe\n", None)]
)
def test_the_log_names_the_instance_where_no_report_does(tmp_path: Path, log: bytes, instance: str | None) -> None:
    place = tmp_path / "x"
    place.mkdir()
    (place / "run_instance.log").write_bytes(log)
    if instance is None:
        with pytest.raises(ImportRefused, match="names its instance") as caught:
            find_trials(place)
        assert caught.value.slug == "corrupt"
    else:
        assert [ref.key for ref in find_trials(place).refs] == [instance]


def test_a_link_in_the_folder_is_not_followed(folder: Callable[[str], Path], tmp_path: Path) -> None:
    place = folder("timed_out")
    secret = tmp_path / "secret"
    secret.write_text("diff --git secret")
    (place / "patch.diff").unlink()
    (place / "patch.diff").symlink_to(secret)
    assert read_one(place).submission is None
