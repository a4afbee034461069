"""The whole loop with the demo agent, the real supplier and the real judge."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.real_project import RealProject

FAST = ("auth-rejected-v1", "oom-server-error-v1")


@pytest.fixture
def real(pytester: pytest.Pytester) -> RealProject:
    return RealProject(pytester)


def _gate(project: RealProject, *args: str) -> dict[str, Any]:
    project.run("--regcase-report=report.json", *args)
    document: dict[str, Any] = json.loads((project.root / "report.json").read_text())["gate"]
    return document


def _files(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def test_a_good_agent_passes_serially_and_under_xdist_and_no_case_file_changes(real: RealProject) -> None:
    real.add_real_case("trial-37", ["deadline-no-answer-v1", *FAST])
    before = _files(real.root / "cases")
    serial = _gate(real, "-W", "error")
    assert serial["decision"] == "pass", serial
    # On the same ledger a second session has two runs of each to compare, and says so.
    shutil.rmtree(real.root / ".regcase")
    assert _gate(real, "-n", "2") == serial
    assert _files(real.root / "cases") == before
    for row in real.rows():
        assert row.wire.delivered is (None if row.scenario == "control" else True)
        assert (real.root / (row.folder or "missing") / "wire.jsonl").is_file()


def test_an_agent_that_swallows_failures_is_red_after_three_tries(real: RealProject) -> None:
    real.use_agent("behaviours", "swallow")
    real.add_real_case("trial-37", ["oom-server-error-v1"])
    gate = _gate(real)
    assert gate["decision"] == "fail"
    assert real.verdicts() == {
        "trial-37::control": ["finished"],
        "trial-37::oom-server-error-v1": ["not-recovered"] * 3,
    }
    (case,) = gate["cases"]
    broken = {each["expectation"] for each in case["scenarios"][1]["broken"]}
    assert {"log_failure", "no_partial_submission", "mark_failure"} <= broken
