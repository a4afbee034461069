import json
from pathlib import Path

import pytest

from pytest_regcase.case_files import json_schema
from pytest_regcase.cli import main


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


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "config", "--out", str(tmp_path / "no" / "s.json")]) == 2
    assert "no such file or directory" in capsys.readouterr().err
