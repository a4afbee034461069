"""A folder of 60 mixed trials: each planted recurrence of two shipped cases is found, and nothing else."""

import json
import shutil
import zipfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.case_files import append_record
from pytest_regcase.config import Project, RegcaseConfig
from pytest_regcase.errors import ImportRefused
from pytest_regcase.records.case import Closed, Reopened, Retired
from pytest_regcase.session.sweeps.scan import Scan, scan

ROOT = Path(__file__).parents[3]
GOLD = ROOT / "tests" / "gold"
AUTH = "inspect-ai-calcfix-calc-1-cemmrbx6"
MEMORY = "mini-swe-agent-trial-234752a4"
MINI_TASK = (ROOT / "cases" / MEMORY / "recorded" / "task.txt").read_text()


def mini(path: Path, number: int, *, task: str, error: str | None) -> None:
    """A mini-swe-agent trajectory whose third call failed; without an error it was cut off there."""
    name = "call_failed" if error else "cut_off"
    content = (GOLD / "mini-swe-agent" / f"{name}.traj.json").read_text()
    content = content.replace("add() in calc.py subtracts", task).replace("TimeoutError", error or "")
    path.write_text(content.replace("Look first.", f"Look first ({number})."))


def submitted(path: Path, number: int) -> None:
    content = (GOLD / "mini-swe-agent" / "submitted.traj.json").read_text()
    path.write_text(content.replace("Look first.", f"Look first ({number})."))


def inspect(path: Path, number: int, *, task: str, sample: str, error: str) -> None:
    """An Inspect log: `sample` failed in its third call, `good` passed, `3` was cancelled because of that."""
    document = json.loads((GOLD / "inspect" / "sweep.json").read_text())
    document["eval"].update(task=task, run_id=f"run-{number}")
    for each in document["samples"]:
        each["uuid"] = f"uuid-{number}-{each['id']}"
        if each["id"] == "bad":
            each["id"] = sample
    document["eval"]["dataset"]["sample_ids"] = [each["id"] for each in document["samples"]]
    path.write_text(json.dumps(document).replace("ConnectionError", error))


def ours(
    path: Path, number: int, *, task: str, step: int, error: str | None, outcome: str = "undetermined"
) -> None:
    """A `trial.jsonl` whose call for `step` failed, or one that finished."""
    lines: list[dict[str, Any]] = [
        {"kind": "trial", "schema": 1, "harness": "h", "run_id": f"r{number}", "task_id": task, "task_text": task},
        {"kind": "step", "step": 0, "role": "user", "text": task},
    ]
    for each in range(1, step):
        call = {"id": f"c{each}", "name": "bash", "arguments": "{}"}
        lines.append({"kind": "step", "step": each, "role": "assistant", "tool_calls": [call]})
        lines.append({"kind": "step", "step": each, "role": "tool", "tool_call_id": f"c{each}", "text": "ok"})
    if error is not None:
        lines.append({"kind": "error", "type": error, "message": "x", "raised_by": "supplier"})
    lines.append({"kind": "end", "termination": "error" if error else "finished", "outcome": outcome})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@dataclass
class Planted:
    """The sweep, and what was put into it."""

    folder: Path
    known: dict[str, list[str]] = field(default_factory=lambda: {AUTH: [], MEMORY: []})
    trials: int = 0


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    made = Planted(tmp_path_factory.mktemp("sweep"))
    folder = made.folder
    for place in ("inspect", "mini/a/b", "ours"):
        (folder / place).mkdir(parents=True)
    number = 0
    # Inspect: three trials a log; a log with the case's failure, one of another task, one with another error.
    for task, sample, error, here in [
        ("calcfix", "calc", "AuthenticationError", True),
        ("calcfix", "calc", "AuthenticationError", True),
        ("calcfix", "other", "AuthenticationError", False),
        ("greeting", "calc", "AuthenticationError", False),
        ("calcfix", "calc", "RateLimitError", False),
        ("calcfix", "calc", "ConnectionError", False),
    ]:
        number += 1
        inspect(folder / "inspect" / f"{number}.json", number, task=task, sample=sample, error=error)
        if here:
            made.known[AUTH].append(f"inspect/{number}.json::{sample}#1")
    made.trials += 3 * number
    trajectories: list[tuple[str, str | None, bool]] = [
        (MINI_TASK, "InternalServerError", True),
        (MINI_TASK, "InternalServerError", True),
        (MINI_TASK, "InternalServerError", True),
        ("another task", "InternalServerError", False),
        (MINI_TASK, "BadRequestError", False),
        (MINI_TASK, None, False),
        ("another task", None, False),
    ]
    for about, raised, here in trajectories:
        number += 1
        mini(folder / "mini" / "a" / "b" / f"{number}.json", number, task=about, error=raised)
        made.trials += 1
        if here:
            made.known[MEMORY].append(f"mini/a/b/{number}.json")
    for _ in range(7):
        number += 1
        submitted(folder / "mini" / f"{number}.json", number)
        made.trials += 1
    kinds: list[dict[str, Any]] = [
        {"task": "calcfix/calc", "step": 5, "error": "AuthenticationError"},
        {"task": "calcfix/calc", "step": 3, "error": "OtherError"},
        {"task": "t", "step": 3, "error": None, "outcome": "passed"},
        {"task": "calcfix/calc", "step": 3, "error": None, "outcome": "failed"},
    ]
    while made.trials < 59:
        number += 1
        ours(folder / "ours" / f"{number}.jsonl", number, **kinds[number % 4])
        made.trials += 1
    number += 1
    ours(folder / "ours" / f"{number}.jsonl", number, task="calcfix/calc", step=3, error="AuthenticationError")
    made.known[AUTH].append(f"ours/{number}.jsonl")
    made.trials += 1
    (folder / "notes.md").write_text("no log")
    (folder / "ours" / "broken.json").write_text('{"info": {}, "messages": [')
    return made


@pytest.fixture
def project(tmp_path: Path) -> Project:
    for name in (AUTH, MEMORY):
        shutil.copytree(ROOT / "cases" / name, tmp_path / "cases" / name)
    return Project(root=tmp_path, config=RegcaseConfig())


@pytest.fixture(scope="module")
def found(planted: Planted, tmp_path_factory: pytest.TempPathFactory) -> Scan:
    root = tmp_path_factory.mktemp("project")
    for name in (AUTH, MEMORY):
        shutil.copytree(ROOT / "cases" / name, root / "cases" / name)
    return scan(Project(root=root, config=RegcaseConfig()), [planted.folder])


def test_each_planted_recurrence_is_found_and_nothing_else(planted: Planted, found: Scan) -> None:
    assert planted.trials == 60
    assert {name: each.trials for name, each in found.known.items()} == planted.known
    assert {each.state for each in found.known.values()} == {"open"}
    assert not found.closed_recurred
    assert found.recorded == {}


def test_every_trial_is_in_one_list(planted: Planted, found: Scan) -> None:
    known = [name for each in found.known.values() for name in each.trials]
    new = [name for each in found.new.values() for name in each.trials]
    listed = [*known, *new, *found.undetermined, *found.not_counted]
    assert len(listed) == len(set(listed))
    assert len(listed) + found.passed == planted.trials
    assert len(found.undetermined) == 7  # submitted, and no report says whether it was right
    assert len(found.not_counted) == 6  # the cancelled siblings
    assert [each.path.name for each in found.unreadable] == ["broken.json"]


def test_look_alikes_are_named_beside_the_new_signature(found: Scan) -> None:
    likes = {name: each.looks_like for name, each in found.new.items() if each.looks_like}
    assert likes == {
        # Another task twice, and the same task at another step: one word a case, that of the closest trial.
        "error:AuthenticationError:no-reply": {AUTH: "other-step"},
        "error:InternalServerError:no-reply": {MEMORY: "other-task"},
    }
    assert set(found.new) - set(likes) == {
        "error:RateLimitError:no-reply",
        "error:ConnectionError:no-reply",
        "error:BadRequestError:no-reply",
        "error:OtherError:no-reply",
        "cut-off:no-reply",
        "finished:failed",
    }


def closed(project: Project, year: int) -> None:
    at = datetime(year, 1, 1, tzinfo=UTC)
    append_record(
        project.root / "cases" / MEMORY, "closed", Closed(at=at, by="me", revision="r", numbers={"n": 29})
    )


@pytest.mark.parametrize(("year", "recurred"), [(2020, True), (2090, False)])
def test_only_what_came_after_the_close_brings_a_closed_case_back(
    project: Project, planted: Planted, year: int, recurred: bool
) -> None:
    closed(project, year)
    result = scan(project, [planted.folder / "mini"])
    (back,) = result.known.values()
    assert (back.case_id, back.state, len(back.trials)) == (MEMORY, "closed", 3)
    assert result.closed_recurred is recurred


def test_a_case_that_was_reopened_is_no_closed_one(project: Project, planted: Planted) -> None:
    closed(project, 2020)
    at = datetime(2021, 1, 1, tzinfo=UTC)
    append_record(project.root / "cases" / MEMORY, "reopened", Reopened(at=at, by="me", why="came back"))
    result = scan(project, [planted.folder / "mini"])
    (back,) = result.known.values()
    assert (back.case_id, back.state, len(back.trials)) == (MEMORY, "regressed", 3)
    assert not result.closed_recurred


def test_a_retired_case_is_matched_with_nothing(project: Project, planted: Planted) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    append_record(project.root / "cases" / MEMORY, "retired", Retired(at=at, by="me", why="gone"))
    assert scan(project, [planted.folder / "mini"]).known == {}


def test_the_trial_that_a_case_was_made_of_is_no_recurrence(project: Project, tmp_path: Path) -> None:
    from pytest_regcase.session.adopt import adopt
    from pytest_regcase.session.new_cases.making import Settings

    path = tmp_path / "x.jsonl"
    ours(path, 1, task="own", step=2, error="OwnError")
    adopted = adopt(project, path, Settings(owner="me"))
    assert scan(project, [path]).recorded == {adopted.case.id: ["trial"]}
    ours(path, 2, task="own", step=2, error="OwnError")
    assert list(scan(project, [path]).known) == [adopted.case.id]


def test_several_logs_are_named_and_a_bad_one_costs_no_other(
    project: Project, planted: Planted, tmp_path: Path
) -> None:
    one, two = planted.folder / "inspect" / "1.json", tmp_path / "logs.zip"
    with zipfile.ZipFile(two, "w") as file:
        file.write(planted.folder / "inspect" / "2.json", "2.json")
    result = scan(project, [one, tmp_path / "absent", two])
    assert result.known[AUTH].trials == [f"{one}::calc#1", f"{two}::calc#1"]
    assert [each.refusal.slug for each in result.unreadable] == ["no-such-file"]
    with pytest.raises(ImportRefused):
        scan(project, [tmp_path / "absent"])
