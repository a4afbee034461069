import json
from pathlib import Path
from typing import Any, get_args

import pytest

from pytest_regcase.case_files import load_simulations
from pytest_regcase.cli import main
from pytest_regcase.cli.simulations import CLASSES
from pytest_regcase.config import load_project
from pytest_regcase.records.words import HypothesisClass


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without a project, which has the built-in simulations."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["simulations", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(listed(capsys, "--json", *arguments))
    assert [each["id"] for each in found] == sorted(each["id"] for each in found)
    return {each["id"]: each for each in found}


def test_the_document_is_that_of_the_interfaces(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys)
    assert set(found) == set(load_simulations(load_project(elsewhere)))
    assert found["deadline-no-answer-v1"] == {
        "id": "deadline-no-answer-v1",
        "hypothesis": "deadline",
        "title": "the supplier takes the request and never answers",
        "fault": {"kind": "no_answer", "at": "failing-step", "lasts": "for-ever"},
        "wires": ["anthropic-messages", "openai-chat", "openai-responses"],
        "sources": ["openai/openai-python#3828", "vllm-project/vllm#17972"],
    }
    assert found["credit-too-low-v1"]["wires"] == ["anthropic-messages"]
    assert found["null-answer-v1"]["wires"] == ["openai-chat"]
    assert found["heals-after-two-timeouts-v1"]["fault"]["lasts"] == 2


def test_every_one_stands_in_its_class_and_fits(capsys: pytest.CaptureFixture[str]) -> None:
    known = document(capsys)
    lines = listed(capsys).splitlines()
    assert max(map(len, lines)) <= 80
    group, found = "", dict[str, str]()
    for line in lines[:-1]:
        if not line.startswith(" "):
            group = line.partition(" (")[0]
        elif line.startswith("  ") and line[2] != " ":
            found[line.strip()] = group
    assert found == {name: each["hypothesis"] for name, each in known.items()}
    assert lines[-1].startswith(f"{len(known)} simulations; each tests one hypothesis")


def test_what_is_not_the_usual_is_said(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (elsewhere / "fixtures").mkdir()
    for name, fault in {
        "third-v1": 'kind = "no_answer"\nat = 3',
        "second-v1": 'kind = "no_answer"\nat = { request = 2 }\nlasts = 1',
    }.items():
        (elsewhere / "fixtures" / f"{name}.toml").write_text(
            f'schema = 1\nid = "{name}"\nhypothesis = "deadline"\ntitle = "mine"\n[fault]\n{fault}\n'
        )
    text = listed(capsys)
    assert "  third-v1\n    mine [from step 3 on]\n" in text
    assert "  second-v1\n    mine [from request 2 on; heals after 1 request]\n" in text
    assert "[heals after 2 requests]" in text
    assert "[only in streams]" in text
    assert "[only anthropic-messages]" in " ".join(text.split())


@pytest.mark.parametrize("name", CLASSES)
def test_one_class(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--class", name)
    assert found
    assert {each["hypothesis"] for each in found.values()} == {name}
    assert listed(capsys, "--class", name).startswith(f"{name} ({len(found)})\n")


def test_the_help_lists_every_class(capsys: pytest.CaptureFixture[str]) -> None:
    assert get_args(HypothesisClass) == CLASSES
    text = " ".join(listed(capsys, "--help").split())
    assert text.endswith(", ".join(CLASSES))


def test_another_class_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulations", "--class", "gremlins"]) == 2
    assert "'gremlins' is not one of 'deadline'" in capsys.readouterr().err


def test_a_setting_that_no_fault_has_is_told_with_its_simulation(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (elsewhere / "fixtures").mkdir()
    for name in ("a-v1", "b-v1"):
        (elsewhere / "fixtures" / f"{name}.toml").write_text(
            f'schema = 1\nid = "{name}"\nhypothesis = "deadline"\ntitle = "mine"\n'
            '[fault]\nkind = "no_answer"\n[fault.settings]\nspeed = 3\n'
        )
    assert main(["simulations"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [line.partition(";")[0].split()[1] for line in captured.err.splitlines()] == ["a-v1:", "b-v1:"]
