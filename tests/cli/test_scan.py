"""`regcase scan` as it is typed: its table, its JSON, its Markdown, its exit codes."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_regcase.case_files import append_record
from pytest_regcase.cli import main
from pytest_regcase.records.case import Closed

GOLD = Path(__file__).parent.parent / "gold"
FAILED = GOLD / "mini-swe-agent" / "call_failed.traj.json"


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the case `known`; a sweep in which it came back, with what else a sweep may hold."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.regcase]\n")
    assert main(["new", "--from-trial", str(FAILED), "--owner", "me", "--id", "known"]) == 0
    folder = tmp_path / "sweep"
    folder.mkdir()
    content = FAILED.read_text()
    (folder / "back.json").write_text(content.replace("Look first.", "Look again."))
    (folder / "first.json").write_text(content)
    (folder / "other.json").write_text(content.replace("add() in calc.py subtracts", "another task"))
    shutil.copy(GOLD / "mini-swe-agent" / "submitted.traj.json", folder / "submitted.json")
    shutil.copy(GOLD / "inspect" / "sweep.eval", folder / "run.eval")
    (folder / "broken.json").write_text('{"info": {}, "messages": [')
    return folder


@pytest.fixture
def _closed(sweep: Path) -> None:
    at = datetime(2020, 1, 1, tzinfo=UTC)
    append_record(Path("cases/known"), "closed", Closed(at=at, by="me", revision="r", numbers={"n": 29}))


def scanned(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["scan", *arguments])
    return code, capsys.readouterr().out


def test_the_table_fits_and_says_what_came_back_is_new_or_undetermined(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = scanned(capsys, str(sweep))
    assert code == 0
    lines = out.splitlines()
    assert lines[:3] == ["Came back:", "case   state  trials", "known  open   1"]
    assert "  back.json" in lines
    assert "  error:TimeoutError:no-reply (1)" in lines
    assert "    looks like known (another task): no recurrence of it" in lines
    assert "  submitted.json" in lines
    assert "Already in known: 1 trial that the case was made of or lists." in lines
    assert "Passed: 1 trial." in lines
    assert any(line.startswith("Not counted: 1 trial (it was cancelled") for line in lines)
    assert any(line.startswith("Not read: ") for line in lines)
    assert max(len(line) for line in lines if "/" not in line) <= 80


def test_json_is_one_document_and_nothing_else(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = scanned(capsys, str(sweep), "--json")
    document = json.loads(out)
    assert code == 0
    assert document["schema"] == 1
    assert document["known"] == [
        {"case_id": "known", "state": "open", "trials": ["back.json"], "since_closed": False}
    ]
    assert document["new"] == [
        {
            "signature": "error:TimeoutError:no-reply",
            "trials": ["other.json"],
            "looks_like": {"known": "other-task"},
        },
        {"signature": "error:ConnectionError:no-reply", "trials": ["run.eval::bad#1"], "looks_like": {}},
    ]
    assert document["undetermined"] == ["submitted.json"]
    assert document["recorded"] == [{"case_id": "known", "trials": ["first.json"]}]
    assert [each["trial"] for each in document["not_counted"]] == ["run.eval::3#1"]
    assert document["passed"] == 1
    assert len(document["unreadable"]) == 1


@pytest.mark.usefixtures("_closed")
def test_a_closed_case_that_came_back_is_exit_1(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = scanned(capsys, str(sweep))
    assert code == 1
    assert "known  closed  1" in out
    assert scanned(capsys, str(sweep / "other.json"))[0] == 0


@pytest.mark.usefixtures("_closed")
def test_markdown_has_both_tables(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = scanned(capsys, str(sweep), "--markdown")
    assert code == 1
    assert "| known | closed | 1 | back.json |" in out
    assert "| error:TimeoutError:no-reply | 1 | known (another task) |" in out
    assert "Undetermined: 1 trial." in out
    assert "Already in known: 1 trial that" in out


def test_a_name_cannot_leave_its_cell_nor_become_a_link(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (sweep / "back.json").rename(sweep / "a|b [x](y) *z*\n<b>`.json")
    (sweep / "broken.json").rename(sweep / "![p](q).json")
    _, out = scanned(capsys, str(sweep), "--markdown")
    assert r"| known | open | 1 | a\|b \[x\](y) \*z\*?&lt;b>'.json |" in out
    assert r"!\[p\](q).json: it is no valid JSON" in out


def test_nothing_came_back(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = scanned(capsys, str(sweep / "run.eval"))
    assert code == 0
    assert out.startswith("No known failure came back.\nNew failure signatures:\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "Missing argument"),
        (["absent"], "there is no such file"),
        (["sweep", ""], "it is empty, and would be the folder that you are in"),
        (["pyproject.toml"], "is in no format that we read"),
        (["sweep", "--json", "--markdown"], "cannot stand together"),
    ],
)
def test_a_refusal_is_exit_2_and_words_on_stderr(
    sweep: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    capsys.readouterr()
    assert main(["scan", *arguments]) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.out == ""
