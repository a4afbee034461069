import json
from pathlib import Path

import pytest

from pytest_regcase.case_files import load_case
from pytest_regcase.cli import main
from tests.session.case_life.evidence_project import make_project


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = make_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return path


CITE = ["evidence", "t37", "--hypothesis", "resource-exhaustion", "--why", "pid 4242 was it", "--who", "mina"]


def test_a_citation_and_its_withdrawal_are_told(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CITE, "--supports", "outside/kern.log:4"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "wrote cases/t37/case.toml\n  ev-1: outside/kern.log:4 supports resource-exhaustion, by mina\n"
    )
    assert "    Apr 12 09:31:04 gpu1 kernel: Out of memory: Killed process 4242 (python3)...\n" in out
    assert "cause status: confirmed, was unknown\n" in out
    assert "is the reviewer's call" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    assert main(["show", "t37"]) == 0
    assert "  cause     confirmed: resource-exhaustion (1 citation)\n" in capsys.readouterr().out
    assert main(["evidence", "t37", "--withdraw", "ev-1", "--why", "another host", "--by", "omar"]) == 0
    out = capsys.readouterr().out
    assert "ev-1 withdrawn by omar: another host\ncause status: unknown, was confirmed\n" in out
    assert load_case(case).case.cause_status == "unknown"


def test_the_document_holds_what_was_written(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main([*CITE, "--refutes", "outside/dmesg.txt:1-2", "--why-outside", "the clock is set later", "--json"])
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert (document["case_id"], document["file"]) == ("t37", "cases/t37/case.toml")
    assert document["cause_status"] == {"before": "unknown", "after": "unknown"}
    assert document["evidence"]["why_outside"] == "the clock is set later"
    assert document["evidence"]["id"] == "ev-1"
    assert "reviewer" in document["notices"][-1]


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--supports", ".regcase/sessions/s1/a1/wire.jsonl:1"], 1, "never evidence"),
        (["--supports", "outside/kern.log:5"], 1, "--why-outside TEXT"),
        (["--supports", "outside/kern.log:50"], 2, "has 5 lines"),
        (["--supports", "outside/kern.log"], 2, "names no lines"),
        ([], 2, "one of --supports and --refutes"),
        (["--supports", "a:1", "--refutes", "b:1"], 2, "one of --supports and --refutes"),
        (["--withdraw", "ev-1"], 2, "--withdraw takes"),
    ],
)
def test_refusals_are_one_clear_block(
    options: list[str], code: int, says: str, case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = case.read_bytes()
    assert main([*CITE, *options]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert says in " ".join(captured.err.split())
    assert case.read_bytes() == before


def test_a_reason_is_always_given(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evidence", "t37", "--hypothesis", "auth", "--supports", "outside/kern.log:4"]) == 2
    assert "--why" in capsys.readouterr().err
