from pathlib import Path

import pytest

from pytest_regcase.cli import main
from pytest_regcase.config import load_project


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("harness", ["mini-swe-agent", "inspect", "python"])
def test_each_entry_is_what_we_read(harness: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--harness", harness, "--agent", "mine"]) == 0
    agent = load_project(tmp_path).config.agents["mine"]
    assert agent.env["OPENAI_BASE_URL"] == "{openai_base_url}"
    assert agent.output == "{out_dir}"
    assert agent.deadline_seconds > 60
    assert capsys.readouterr().out == (
        "wrote pyproject.toml\nwrote .gitattributes\nwrote .gitignore\n"
        "Next: look through [tool.regcase.agents.mine], then\n  regcase doctor --agent mine\n"
    )


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"[project]\r\nname = 'x'")
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    (tmp_path / ".gitattributes").write_text("*.png binary\ncases/**/recorded/** -text\n")
    assert main(["init"]) == 0
    content = (tmp_path / "pyproject.toml").read_bytes()
    assert content.startswith(b"[project]\r\nname = 'x'\r\n\r\n[tool.regcase]\r\n")
    assert content.count(b"\n") == content.count(b"\r\n")
    assert (tmp_path / ".gitignore").read_text() == "*.pyc\n.regcase/\n"
    assert (tmp_path / ".gitattributes").read_text() == "*.png binary\ncases/**/recorded/** -text\n"


def test_a_second_time_is_refused_and_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["init"])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert main(["init", "--harness", "inspect"]) == 2
    assert "pyproject.toml has a [tool.regcase] already" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("content", ["[tool\n", "tool = { x = 1 }\n"])
def test_a_pyproject_that_cannot_take_it_is_left_alone(
    tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text(content)
    assert main(["init"]) == 2
    assert "pyproject.toml" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"pyproject.toml": content}


def test_a_name_that_no_case_could_refer_to_is_refused(tmp_path: Path) -> None:
    assert main(["init", "--agent", "My Agent"]) == 2
    assert list(tmp_path.iterdir()) == []
