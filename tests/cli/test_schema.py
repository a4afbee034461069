import json
from pathlib import Path

import pytest

from pytest_regcase.case_files import json_schema
from pytest_regcase.cli import main
from pytest_regcase.reporters.json_schemas import DocumentName, document_schema


def test_the_case_schema_is_printed_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema("case")


def test_a_file_is_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text("old")
    assert main(["schema", "simulation", "--out", "s.json"]) == 0
    assert json.loads((tmp_path / "s.json").read_text()) == json_schema("simulation")
    assert capsys.readouterr().out == "wrote s.json\n"


@pytest.mark.parametrize("name", ["report", "decision"])
def test_the_schemas_of_what_a_gate_writes(name: DocumentName, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", name]) == 0
    assert json.loads(capsys.readouterr().out) == document_schema(name)


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "config", "--out", str(tmp_path / "no" / "s.json")]) == 2
    assert "no such file or directory" in capsys.readouterr().err
