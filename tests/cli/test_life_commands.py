"""`close`, `reopen`, `retire` and `amend` as a person calls them."""

import json
from pathlib import Path

import pytest

from pytest_regcase.case_files import load_case
from pytest_regcase.cli import main
from tests.session.case_life.stories import ID, LifeProject, make_life_project


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LifeProject:
    life = make_life_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return life


def said(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_a_case_from_fix_to_close(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["close", ID, "--by", "omar"]) == 2
    assert said(capsys) == (
        "",
        f"Couldn't close {ID}: no fix has been claimed yet.\nWhen there is one: regcase fix {ID}\n",
    )
    assert main(["fix", ID, "--by", "mina"]) == 0
    said(capsys)
    life.live("clean")
    assert main(["close", ID, "--by", "omar"]) == 1
    assert said(capsys) == (
        "",
        f"Couldn't close {ID}: 1 of 2 clean live runs of fix 1.\n"
        "Nothing was written. The missing runs cost model calls:\n"
        "  pytest --regcase --regcase-profile=nightly --regcase-live=1\n",
    )
    life.live("clean", first=2)
    assert main(["close", ID, "--by", "omar"]) == 0
    out, err = said(capsys)
    assert out.startswith(
        "wrote cases/trial-37/case.toml: closed by omar\n  fix 1: 2 of 2 clean live runs. BOUNDED:"
    )
    assert "failure rate below 50 % at 30 % risk" in " ".join(out.split())
    assert "note: all clean live runs" not in out
    assert err == ""
    assert main(["close", ID, "--by", "omar"]) == 2
    assert f"regcase history {ID}" in said(capsys)[1]


def test_a_refused_close_as_a_document(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    main(["fix", ID, "--by", "mina"])
    said(capsys)
    life.live("recurred")
    assert main(["close", ID, "--by", "omar", "--json"]) == 1
    out, err = said(capsys)
    document = json.loads(out)
    assert (document["schema"], document["case_id"], document["fix_number"]) == (1, ID, 1)
    assert document["refused"] == ["the symptom came back in live run 1; red until a new fix is claimed"]
    assert "closed" not in document
    assert err == ""
    assert main(["close", ID, "--by", "omar"]) == 1
    assert said(capsys)[1].endswith(f"Nothing was written. When there is another fix:\n  regcase fix {ID}\n")


def test_a_close_without_its_ledger_says_where_to_close(
    life: LifeProject, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["fix", ID, "--by", "mina"])
    monkeypatch.setenv("REGCASE_LEDGER", "another.sqlite3")
    life.live("clean", "clean")
    said(capsys)
    assert main(["close", ID, "--by", "omar"]) == 1
    err = said(capsys)[1]
    assert "not there: the ledger that fix 1 was claimed on" in err
    assert "Close it where that ledger is (REGCASE_LEDGER names one)" in " ".join(err.split())
    assert max(map(len, err.splitlines())) <= 80


def test_a_case_is_retired_and_brought_back(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retire", ID, "--why", "the task is gone", "--by", "omar"]) == 0
    assert said(capsys)[0] == (
        "wrote cases/trial-37/case.toml: retired by omar; it is retired now\n"
        f"To bring it back:\n  regcase reopen {ID} --why ...\n"
    )
    assert main(["reopen", ID, "--why", "the task is back", "--by", "omar", "--json"]) == 0
    document = json.loads(said(capsys)[0])
    assert (document["schema"], document["case_id"], document["state"]) == (1, ID, "regressed")
    assert document["file"] == "cases/trial-37/case.toml"
    assert load_case(life.path).case.reopened[0].why == "the task is back"


def test_an_amendment_says_from_what_to_what(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["amend", ID, "--field", "observation.failing_step=7", "--why", "misread", "--by", "omar"]
    assert main([*arguments, "--field", "expected_recovery.max_retries=4"]) == 0
    assert said(capsys)[0] == (
        "wrote cases/trial-37/case.toml: amended by omar\n"
        "  observation.failing_step 6 -> 7\n"
        "  expected_recovery.max_retries 3 -> 4\n"
        "  the observation is sealed anew\n"
        "  note: live attempts are counted anew, since what they are about has changed\n"
        "Next:\n  pytest --regcase\n"
    )
    assert main(["amend", ID, "--field", "observation.failing_step=8", "--why", "again", "--json"]) == 0
    document = json.loads(said(capsys)[0])
    assert [each["what"] for each in document["amendments"]] == ["observation.failing_step 7 -> 8"]
    assert document["amendments"][0]["old_digest"].startswith("sha256:")
    assert document["counts_anew"] is True


def test_since_is_for_an_edit_by_hand(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    before = life.path.read_bytes()
    assert main(["amend", ID, "--field", "a.b=1", "--since", "main", "--why", "w"]) == 2
    assert "--since is for an edit by hand" in said(capsys)[1]
    assert life.path.read_bytes() == before


@pytest.mark.parametrize("command", ["reopen", "retire", "amend"])
@pytest.mark.parametrize(
    ("why", "says"), [(None, "Missing option '--why'"), ("", "is empty"), ("\udcff", "not UTF-8")]
)
def test_without_a_reason_nothing_is_written(
    life: LifeProject, command: str, why: str | None, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = life.path.read_bytes()
    assert main([command, ID, *(["--why", why] if why is not None else [])]) == 2
    assert says in said(capsys)[1]
    assert life.path.read_bytes() == before


@pytest.mark.parametrize("command", ["close", "reopen", "retire", "amend", "history", "handover"])
def test_a_case_that_is_not_there_is_one_error(
    life: LifeProject, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    why = ["--why", "w"] if command in ("reopen", "retire", "amend") else []
    assert main([command, "no-such-case", *why]) == 2
    out, err = said(capsys)
    assert out == ""
    assert f"Known: {ID}." in err
    assert "Traceback" not in err
