import json
from pathlib import Path
from typing import get_args

import pytest

from pytest_regcase.cli import main
from pytest_regcase.records.words import HypothesisClass
from tests.session.case_life.evidence_project import LOGS

CLASSES = get_args(HypothesisClass)


@pytest.fixture(autouse=True)
def _somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for log in LOGS.iterdir():
        (tmp_path / log.name).write_bytes(log.read_bytes())
    monkeypatch.chdir(tmp_path)


def test_every_class_is_listed_with_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fingerprints"]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if not line.startswith(" ")] == list(CLASSES)
    assert "    - the kernel killed a process for want of memory\n" in out
    assert "    - the kernel log says that it killed the server's process for want of memory\n" in out
    assert "not there" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_with_logs_it_says_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fingerprints", "--log", "kern.log", "test-output.txt"]) == 0
    out = capsys.readouterr().out
    assert "  kern.log: a kernel log (5 lines)\n" in out
    assert "    + the kernel killed a process for want of memory\n      kern.log:2-5\n" in out
    assert "    - not there: the inference engine died\n" in out
    assert "test-output.txt:" not in out.split("\ndeadline\n")[1]
    assert max(map(len, out.splitlines())) <= 80


def test_that_a_log_tells_no_time_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fingerprints", "--log", "dmesg.txt"]) == 0
    assert "seconds since boot need the line that sets the clock" in " ".join(capsys.readouterr().out.split())


def test_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fingerprints", "--log", "vllm.log", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert [each["id"] for each in document["classes"]] == list(CLASSES)
    found = {sign["id"]: sign["found"] for each in document["classes"] for sign in each["signs"]}
    assert {id_: places for id_, places in found.items() if places} == {"engine-dead": ["vllm.log:5"]}
    assert all(each["supports"] and each["refutes"] for each in document["classes"])
    assert main(["fingerprints", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert all("found" not in sign for each in document["classes"] for sign in each["signs"])


def test_a_file_without_its_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fingerprints", "kern.log"]) == 2
    assert "--log FILE" in capsys.readouterr().err
