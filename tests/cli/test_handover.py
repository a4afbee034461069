import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_regcase.cli import COMMANDS, main
from pytest_regcase.session.case_life.fix import claim_fix
from tests.session.case_life.stories import CASE, ID, LifeProject, make_life_project

AT = datetime(2026, 5, 10, 12, tzinfo=UTC)
SIX = ["owner", "source_event", "cause_status", "simulation_ids", "rerun_rule", "next_decision"]
KEY = "sk-" + "a1B2" * 8


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LifeProject:
    life = make_life_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return life


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["handover", ID, *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_the_six_fields_come_first(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys)
    assert [line.split()[0] for line in text.splitlines()[1:7]] == SIX
    assert max(map(len, text.splitlines())) <= 80
    assert "  cause_status    unknown\n" in text
    assert "\nEvidence\n  unknown: no lower-level evidence is cited\n" in text
    assert text.count("no simulation tests what happened in eval-sweep-0412/trial-37\n") == 1
    assert text.count("this fixture tests one hypothesis only") == 1
    assert "  limits: a hung server, a slow one and a lost network path look the same" in text
    assert "  no fix is claimed, so no live run is counted yet\n" in text
    assert "\nOpen questions\n  a deadline, or a rejected key?\n" in text


def test_the_document_has_exactly_those_names_first(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(shown(capsys, "--json"))
    assert list(document)[:6] == SIX
    assert document["owner"] == "eval-harness-oncall"
    assert document["simulation_ids"] == ["deadline-no-answer-v1", "auth-rejected-v1"]
    assert document["rerun_rule"] == {"max_failure_rate": "0.50", "risk": "0.30", "clean_reruns": 2}
    assert (document["schema"], document["id"], document["state"]) == (1, ID, "open")
    assert document["evidence"] == []
    assert document["unresolved_questions"] == ["a deadline, or a rejected key?"]
    assert "claim" not in document
    assert None not in document.values()


def test_where_the_rule_stands(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    claim_fix(life.project, life.path, by="mina", at=AT)
    life.live("clean")
    text = shown(capsys)
    assert "\nWhere the rerun rule stands\n  fix 1: 1 of 2 clean live runs\n" in text
    assert "was planned" not in text
    document = json.loads(shown(capsys, "--json"))
    assert (document["claim"]["clean"], document["claim"]["need"]) == (1, 2)


def test_every_command_is_one_that_there_is(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    words: set[str] = set()
    for _ in range(2):
        document = json.loads(shown(capsys, "--json"))
        for each in document["commands"]:
            found = re.fullmatch(r"(?:regcase (\w+)|pytest --regcase) .+", each["command"])
            assert found is not None
            words |= {found[1]} - {None}
        claim_fix(life.project, life.path, by="mina")
    assert words <= {*COMMANDS}
    assert {"fix", "close", "reopen", "show", "history"} <= words
    assert "  regcase show sweep-0412-trial-37 --calls\n" in shown(capsys)


def test_markdown_cannot_be_steered_by_what_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = "![x](http://example.com) <b>*a*</b> \\u001b[2J"
    make_life_project(tmp_path, CASE.replace("a deadline, or a rejected key?", odd))
    monkeypatch.chdir(tmp_path)
    text = shown(capsys, "--markdown")
    assert text.startswith(f"# {ID}: no answer from step 6 on\n\n- **owner**: eval-harness-oncall\n")
    assert "- !\\[x\\](http://example.com) \\<b\\>\\*a\\*\\</b\\>" in text
    assert f"- see what happened so far: `regcase history {ID}`\n" in text
    assert "\x1b" not in text
    assert "\x1b" not in shown(capsys)


@pytest.mark.parametrize("form", [[], ["--markdown"], ["--json"]])
def test_a_secret_that_stayed_in_a_case_is_not_shown(
    form: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_life_project(tmp_path, CASE.replace("a deadline, or a rejected key?", f"was {KEY} rejected?"))
    monkeypatch.chdir(tmp_path)
    text = shown(capsys, *form)
    assert KEY not in text
    assert "rejected?" in text


def test_two_forms_at_once_are_a_usage_error(life: LifeProject, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["handover", ID, "--markdown", "--json"]) == 2
    assert "choose one" in capsys.readouterr().err


def test_one_simulation_has_all_its_limits_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_life_project(tmp_path, CASE.replace('["auth-rejected-v1"]', '["no-such-v1"]'))
    monkeypatch.chdir(tmp_path)
    text = " ".join(shown(capsys).split())
    assert "limits: this fixture tests one hypothesis only; a hung server" in text
    assert "no simulation tests what happened in eval-sweep-0412/trial-37" in text
    assert "no-such-v1: tests nothing: there is no such simulation here" in text
    assert "limits of each" not in text
