from pathlib import Path

import pytest

from pytest_regcase.case_files import load_case
from pytest_regcase.cli import main
from tests.case_files.conftest import MINIMUM


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Trial 37, written by hand with the minimum keys, in a project that is the current folder."""
    path = tmp_path / "cases" / "trial-37" / "case.toml"
    path.parent.mkdir(parents=True)
    path.write_text(MINIMUM)
    monkeypatch.chdir(tmp_path)
    return path


@pytest.mark.parametrize("name", ["cases/trial-37", "cases/trial-37/case.toml", "sweep-0412-trial-37"])
def test_a_case_by_hand_is_valid_once_sealed(case: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["seal", name]) == 0
    loaded = load_case(case)
    assert loaded.case.seal is not None
    assert capsys.readouterr().out == f"sealed: cases/trial-37/case.toml\n  {loaded.case.seal.observation}\n"
    assert main(["seal", name]) == 0
    assert capsys.readouterr().out.startswith("sealed already: cases/trial-37/case.toml\n")


def test_an_edit_after_the_seal_is_refused(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["seal", str(case)])
    case.write_text(case.read_text().replace("step 5", "step 4"))
    assert main(["seal", str(case)]) == 2
    error = capsys.readouterr().err
    assert "is not what was sealed" in error
    assert "never edited, only amended" in error


def test_each_case_stands_for_itself(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["seal", "no-such", str(case)]) == 2
    captured = capsys.readouterr()
    assert "Couldn't find the case 'no-such'" in captured.err
    assert captured.out.startswith("sealed: ")


def test_a_case_that_is_not_right_is_not_sealed(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case.write_text(MINIMUM.replace("title", "titel"))
    assert main(["seal", str(case)]) == 2
    assert capsys.readouterr().err == (
        'cases/trial-37/case.toml:3: unknown key "titel"; did you mean "title"? It is required.\n'
    )
