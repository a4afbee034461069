import json
from pathlib import Path

import pytest

from pytest_regcase.cli import main
from tests.session.batches.run_samples import CRASHED, LOST_SNAPSHOT, WORKED, graded, make_run


def test_a_run_reads_well_at_80_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(
        tmp_path / "run",
        {"django__django-1": graded(passed=True), "two": CRASHED, "three": LOST_SNAPSHOT, "four": None},
    )
    assert main(["summary", str(run)]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[1].split() == ["task", "status", "run", "again"]
    assert ["two", "agent_error", "now"] in [each.split() for each in lines]
    assert "three             unscored, degraded  no use as it is" in lines
    assert "4 requested: 1 not_reached, 1 agent_error, 1 unscored, 1 resolved" in lines
    assert "1 degraded: evidence of them was lost; failed_step in trial.jsonl says how" in lines
    assert "  two: openai.RateLimitError: slow down [transient (rate_limit)]" in lines
    assert "3 real attempts" in lines
    assert lines[-2] == f"Next: regcase run --out {run} --resume --crashed"
    assert all(len(each) <= 80 for each in lines if str(tmp_path) not in each)


def test_attempts_and_controlled_checks_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "runs" / "real", {f"task-{number}": WORKED for number in range(13)})
    make_run(tmp_path / "runs" / "check", {f"task-{number}": WORKED for number in range(3)}, kind="controlled")
    assert main(["summary", str(tmp_path / "runs")]) == 0
    assert "13 real attempts; 3 controlled checks, not results" in capsys.readouterr().out.splitlines()
    assert main(["summary", str(tmp_path / "runs"), "--json"]) == 0
    kinds = [each["kind"] for each in json.loads(capsys.readouterr().out)["runs"]]
    assert kinds == ["controlled", "real"]
    assert main(["summary", str(tmp_path / "runs"), "--reports", str(tmp_path)]) == 2


def test_the_document_has_the_published_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", {"a": CRASHED, "b": None})
    assert main(["summary", str(run), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == 1
    assert (found["requested"], found["kind"], found["degraded"]) == (2, "real", 0)
    assert list(found["counts"]) == [
        "not_reached",
        "interrupted",
        "agent_error",
        "patch_capture_failed",
        "unscored",
        "empty_patch",
        "resolved",
        "unresolved",
    ]
    assert sum(found["counts"].values()) == found["requested"]
    assert [(each["id"], each["status"]) for each in found["tasks"]] == [
        ("a", "agent_error"),
        ("b", "not_reached"),
    ]


def test_a_scorers_labels_are_shown_as_clues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", {"a": WORKED})
    counts = dict.fromkeys(("total_instances", "resolved_instances", "submitted_instances"), 0)
    report = {
        **counts,
        "unresolved_ids": ["a"],
        "infra_failure_ids": ["a"],
        "failure_reasons": {"a": "network_unreachable"},
    }
    (tmp_path / "report.json").write_text(json.dumps(report))
    assert main(["summary", str(run), "--reports", str(tmp_path / "report.json")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "a: clues, not causes: swe-bench:infra_failure, infra:network_unreachable" in out
    assert "1 requested: 1 unresolved" in out


def test_what_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summary", str(tmp_path)]) == 2
    assert "holds no run.json" in capsys.readouterr().err
