import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from pytest_regcase.case_files import seal_case
from pytest_regcase.cli import main
from pytest_regcase.session.case_life.fix import claim_fix
from pytest_regcase.session.case_life.life import retire_case
from tests.session.case_life.stories import CASE, ID, LifeProject, make_life_project

AT = datetime(2026, 5, 10, 12, tzinfo=UTC)
QUARANTINE = f"""
[quarantine]
owner = "omar"
reason = "r"
kind = "flaky"
since = {date(2026, 5, 1)}
expires = {date(2026, 6, 1)}
"""


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LifeProject:
    life = make_life_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return life


def add(life: LifeProject, name: str, text: str = CASE, **changes: str) -> Path:
    path = life.root / "cases" / name / "case.toml"
    path.parent.mkdir()
    for old, new in {ID: name, **changes}.items():
        text = text.replace(old, new)
    path.write_text(text)
    seal_case(path)
    return path


def ids(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    capsys.readouterr()
    assert main(["list", "--json", *arguments]) == 0
    return [each["id"] for each in json.loads(capsys.readouterr().out)]


def test_every_case_with_its_state_owner_and_title(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    add(life, "a-first")
    claim_fix(life.project, life.path, by="mina", at=AT)
    life.live("clean")
    assert main(["list"]) == 0
    assert capsys.readouterr().out == (
        "open              a-first\n"
        "                  no answer from step 6 on; eval-harness-oncall\n"
        f"verifying 1 of 2  {ID}\n"
        "                  no answer from step 6 on; eval-harness-oncall\n"
        "2 of 2 cases\n"
    )


def test_the_document_is_as_the_interfaces_say(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "id": ID,
            "state": "open",
            "owner": "eval-harness-oncall",
            "hypotheses": ["deadline", "key"],
            "title": "no answer from step 6 on",
        }
    ]


def test_filters(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    add(life, "mine", **{"eval-harness-oncall": "Team Mina", '["auth-rejected-v1"]': "[]"})
    retired = add(life, "old")
    retire_case(life.project, retired, why="gone", by="omar")
    add(life, "set-aside", CASE + QUARANTINE)
    assert ids(capsys) == ["mine", "old", "set-aside", ID]
    assert ids(capsys, "--owner", "mina") == ["mine"]
    assert ids(capsys, "--state", "retired") == ["old"]
    assert ids(capsys, "--state", "open") == ["mine", "set-aside", ID]
    assert ids(capsys, "--state", "quarantined") == ["set-aside"]
    assert ids(capsys, "--class", "auth") == ["old", "set-aside", ID]
    assert ids(capsys, "--class", "auth", "--state", "open", "--owner", "oncall") == ["set-aside", ID]
    assert ids(capsys, "--class", "budget") == []
    assert main(["list", "--class", "no-such"]) == 2
    assert "resource-exhaustion" in capsys.readouterr().err


def test_a_file_that_does_not_load_is_listed_and_hides_no_other(
    life: LifeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = life.root / "cases" / "bad" / "case.toml"
    bad.parent.mkdir()
    bad.write_text("schema = 1\nx = 1\n")
    assert main(["list", "--owner", "nobody"]) == 1
    out = capsys.readouterr().out
    assert 'invalid  cases/bad/case.toml:2: unknown key "x"' in out
    assert out.endswith("0 of 1 cases, and 1 invalid: `regcase show` says why\n")
    assert max(map(len, out.splitlines())) <= 80
    assert main(["list", "--json"]) == 1
    good, invalid = json.loads(capsys.readouterr().out)
    assert good["id"] == ID
    assert (invalid["id"], invalid["state"], invalid["file"]) == ("bad", "invalid", "cases/bad/case.toml")
    assert invalid["problems"][0].startswith("cases/bad/case.toml:2: ")


def test_a_recurrence_in_the_ledger_and_a_ledger_that_is_not_there(
    life: LifeProject, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    claim_fix(life.project, life.path, by="mina", at=AT)
    life.live("recurred")
    assert ids(capsys, "--state", "regressed") == [ID]
    monkeypatch.setenv("REGCASE_LEDGER", "not-there.sqlite3")
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"verifying  {ID}\n")
    assert "note: there is no ledger here" in out
    assert not (life.root / "not-there.sqlite3").exists()


def test_a_project_without_cases_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["list"]) == 0
    assert "regcase new --from-trial PATH" in capsys.readouterr().out
    assert ids(capsys) == []
