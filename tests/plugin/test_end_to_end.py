"""The whole loop with the demo agent, the real supplier and the real judge."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.real_project import FAILING_STEP, LocalUpstream, RealProject

FAST = ("auth-rejected-v1", "oom-server-error-v1")
NIGHTLY = "--regcase-profile=nightly"


@pytest.fixture
def real(pytester: pytest.Pytester) -> RealProject:
    return RealProject(pytester)


def _gate(project: RealProject, *args: str) -> dict[str, Any]:
    project.run("--regcase-report=report.json", *args)
    document: dict[str, Any] = json.loads((project.root / "report.json").read_text())["gate"]
    return document


def _files(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def _never(_draw: int, _step: int) -> bool:
    return False


def _live(project: RealProject) -> Counter[str]:
    return Counter(row.verdict for row in project.rows() if row.scenario == "live")


def test_a_good_agent_passes_serially_and_under_xdist_and_no_case_file_changes(real: RealProject) -> None:
    real.add_real_case("trial-37", ["deadline-no-answer-v1", *FAST])
    before = _files(real.root / "cases")
    serial = _gate(real, "-W", "error")
    assert serial["decision"] == "pass", serial
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


def test_a_claimed_fix_is_refuted_at_the_first_recurrence_and_stays_red(real: RealProject) -> None:
    """The upstream fails 30 % of the draws, at the recorded failing step."""
    luck = random.Random(9)
    fails = [luck.random() < 0.3 for _ in range(29)]
    first = fails.index(True) + 1
    assert 1 < first < 29
    with LocalUpstream(lambda draw, step: fails[draw] and step == FAILING_STEP) as upstream:
        real.use_upstream(upstream.base_url)
        real.add_real_case("trial-37", [])
        real.claim_fix("trial-37")
        gate = _gate(real, NIGHTLY, "--regcase-live=29")
        assert gate["decision"] == "fail"
        assert _live(real) == {"clean": first - 1, "recurred": 1}
        again = _gate(real, NIGHTLY, "--regcase-live=29")
    assert again["decision"] == "fail"
    assert [each["code"] for each in again["reasons"] if each["red"]] == ["recurred"]
    assert _live(real) == {"clean": first - 1, "recurred": 1}


@pytest.mark.slow
def test_against_a_clean_upstream_the_29th_draw_completes_the_count(real: RealProject) -> None:
    with LocalUpstream(_never) as upstream:
        real.use_upstream(upstream.base_url)
        real.add_real_case("trial-37", [])
        real.claim_fix("trial-37")
        first = _gate(real, NIGHTLY, "--regcase-live=15")
        second = _gate(real, NIGHTLY, "--regcase-live=15", "-n", "2")
    claims = [each["cases"][0]["claim"] for each in (first, second)]
    assert [(each["clean"], each["need"], each["kind"]) for each in claims] == [
        (15, 29, "none"),
        (29, 29, "BOUNDED"),
    ]
    assert second["decision"] == "pass"
    assert second["cases"][0]["state"] == "verifying"


@pytest.mark.parametrize(
    ("step", "symptom"),
    [(FAILING_STEP + 1, ""), (FAILING_STEP, 'error_type = "^AnotherError$"\n')],
    ids=["one step later", "another exception"],
)
def test_another_failure_is_not_the_symptom_and_not_clean(real: RealProject, step: int, symptom: str) -> None:
    with LocalUpstream(lambda _, asked: asked == step) as upstream:
        real.use_upstream(upstream.base_url)
        real.add_real_case("trial-37", [], symptom)
        real.claim_fix("trial-37")
        gate = _gate(real, NIGHTLY, "--regcase-live=1")
    assert _live(real) == {"failed-otherwise": 1}
    assert gate["decision"] == "fail"
