"""`regcase count` as a person and a program see it; what counts is tested where it is decided."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.cli import main
from tests.session.sweeps.count_project import (
    CASE,
    ID,
    TASK,
    CountProject,
    Made,
    make_count_project,
    recurred,
    sweep,
)

GOLD = Path(__file__).parent.parent / "gold"


@pytest.fixture(scope="module")
def _written(tmp_path_factory: pytest.TempPathFactory) -> CountProject:
    made = make_count_project(tmp_path_factory.mktemp("count") / "project")
    made.claim()
    return made


@pytest.fixture
def made(_written: CountProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CountProject:
    root = shutil.copytree(_written.root, tmp_path / "project")
    monkeypatch.chdir(root)
    return CountProject(root, _written.broken, _written.fixed)


def test_it_says_what_counted_what_did_not_and_where_the_claim_stands(
    made: CountProject, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = [
        *(Made(number, made.fixed) for number in (1, 2, 3)),
        Made(4, made.fixed, termination="cancelled"),
        Made(5, "deadbeef"),
        Made(6, made.broken),
        Made(7, made.fixed, task="calc-2"),
        Made(8, made.fixed, ended=False),
        Made(9, made.fixed, with_ids=False),
    ]
    logs = sweep(made.root / "logs", trials)
    assert main(["count", ID, "--from-trials", str(logs)]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    said = " ".join(out.split())
    for each in [
        "no-answer: 7 trials of its task, 5 counted, 1 not run.",
        "clean 5; from 1 run of a harness",
        "not run: termination = cancelled: trial-run-1-4.jsonl",
        "set aside: it ran at the revision that the case failed at, before fix 1: trial-run-1-6.jsonl",
        "of other tasks: 1 trial",
        "nothing of trial-run-1-8.jsonl counts: it is cut off: what is lost of it may be what failed",
        "note: commit deadbeef is not in this repository (is the clone shallow?): 1 trial kept under the log's",
        "note: 1 clean trial without the supplier's own id of each reply",
        "no-answer, fix 1: 3 of 5 clean live runs",
    ]:
        assert each in said
    assert out.endswith("  pytest --regcase --regcase-profile=nightly --regcase-live=2\n")


def test_a_second_count_adds_nothing_and_says_so(made: CountProject, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (Made(number, made.fixed).write(made.root / "logs") for number in (1, 2))
    assert main(["count", ID, "--from-trials", str(one), str(two)]) == 0
    capsys.readouterr()
    assert main(["count", ID, "--from-trials", str(one), "--from-trials", str(two)]) == 0
    out = capsys.readouterr().out
    assert "already in the ledger, so nothing is added for them: 2 trials\n" in out
    assert "no-answer: 2 trials of its task, 0 counted, 0 not run.\n" in out


def test_after_a_recurrence_it_says_that_the_case_is_regressed(
    made: CountProject, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = sweep(made.root / "logs", [Made(1, made.fixed), recurred(2, made.fixed)])
    assert main(["count", ID, "--from-trials", str(logs)]) == 1
    out = capsys.readouterr().out
    assert "clean 1, recurred 1; from 1 run of a harness\n" in out
    assert "recurred: " in out
    assert out.endswith("  regcase fix no-answer\n")


def test_enough_clean_trials_can_be_closed(made: CountProject, capsys: pytest.CaptureFixture[str]) -> None:
    logs = sweep(made.root / "logs", [Made(number, made.fixed) for number in range(1, 6)])
    assert main(["count", ID, "--from-trials", str(logs)]) == 0
    assert capsys.readouterr().out.endswith("The rerun rule is met:\n  regcase close no-answer\n")
    assert main(["close", ID, "--by", "mina"]) == 0
    capsys.readouterr()
    later = Made(9, made.fixed, run_id="run-9").write(made.root / "logs")
    assert main(["count", ID, "--from-trials", str(later)]) == 0
    assert capsys.readouterr().out.endswith("  regcase history no-answer\n")


def test_without_a_fix_it_says_what_to_do_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = make_count_project(tmp_path / "project")
    monkeypatch.chdir(made.root)
    assert main(["count", ID, "--from-trials", str(Made(1, made.fixed).write(tmp_path / "logs"))]) == 0
    out = capsys.readouterr().out
    assert "No fix is claimed: what was counted now ran before one" in out
    assert out.endswith("  regcase fix no-answer\n")


def test_json_is_one_document_and_a_dry_run_writes_nothing(
    made: CountProject, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = [Made(1, made.fixed), recurred(2, None), Made(3, made.fixed, termination="cancelled")]
    logs = sweep(made.root / "logs", trials)
    assert main(["count", ID, "--from-trials", str(logs), "--dry-run", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["dry_run"], document["trials"]) == (1, True, 3)
    assert [(each["trial"], each["verdict"], each["run"], each["present"]) for each in document["counted"]] == [
        ("trial-run-1-1.jsonl", "clean", 1, True),
        ("trial-run-1-2.jsonl", "recurred", 1, False),
    ]
    assert document["not_run"] == [{"trial": "trial-run-1-3.jsonl", "why": "termination = cancelled"}]
    assert document["unknown"] == [{"why": "the log names no revision", "trials": 1}]
    assert document["claim"]["clean"] == 0
    assert made.rows() == []


def test_what_cannot_be_read_is_refused(made: CountProject, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", ID, "--from-trials", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err
    assert main(["count", "no-such-case", "--from-trials", "nowhere"]) == 2
    assert main(["count", ID]) == 2


def test_29_epochs_of_an_inspect_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sample, 29 epochs, two of them cancelled because another one failed the run."""
    document = json.loads((GOLD / "inspect" / "sweep.json").read_text())
    task = f"{document['eval']['task']}/good"
    case = CASE.replace(f'task_id = "{TASK}"', f'task_id = "{task}"').replace('"0.50"', '"0.10"')
    made = make_count_project(tmp_path / "project", case=case.replace("failing_step = 3", "failing_step = 1"))
    made.claim()
    monkeypatch.chdir(made.root)
    (good,) = (each for each in document["samples"] if each["id"] == "good")
    document["samples"] = [epoch(good, number) for number in range(1, 30)]
    document["eval"]["revision"] = {"type": "git", "origin": "here", "commit": made.fixed[:7]}
    document["eval"]["dataset"].update(samples=1, sample_ids=["good"])
    document["eval"]["config"]["epochs"] = 29
    path = tmp_path / "log.json"
    path.write_text(json.dumps(document))
    assert main(["count", ID, "--from-trials", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("no-answer: 29 trials of its task, 27 counted, 2 not run.\n  clean 27; from 1 run")
    assert "no-answer, fix 1: 27 of 29 clean live runs\n" in out


def epoch(sample: dict[str, Any], number: int) -> dict[str, Any]:
    """The sample as its epoch `number`: every answer has an id of its own; epochs 7 and 8 were cancelled."""
    made: dict[str, Any] = json.loads(json.dumps(sample))
    made |= {"epoch": number, "uuid": f"uuid-of-epoch-{number:04}"}
    began = f"2026-05-20T10:{number:02}:"
    made |= {"started_at": f"{began}00+00:00", "completed_at": f"{began}30+00:00"}
    for place, event in enumerate(made["events"]):
        if event["event"] == "model":
            event["call"] = {"request": {}, "response": {"id": f"chatcmpl-{number}-{place}"}}
    if number in (7, 8):
        error = {"message": "CancelledError('Cancelled via cancel scope')", "traceback": "", "traceback_ansi": ""}
        made |= {"error": error, "scores": {}}
    return made
