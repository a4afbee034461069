"""Planted secrets over every format: in no written file, no output, no log and no exception.

The formats are those of `tests/gold`: one that is added there is covered here without an edit.
"""

import json
import logging
from pathlib import Path

import pytest

from pytest_regcase.cli import main
from pytest_regcase.importers.collection import collect
from tests.redaction.planted import PLANTED
from tests.redaction.planting import planted_copy

GOLD = Path(__file__).parent.parent / "gold"
FORMATS = sorted(path.name for path in GOLD.iterdir() if path.is_dir() and path.name != "__pycache__")
BLOCK = "\n".join(each.line for each in PLANTED)
FORMS = {
    each.name: {form for part in each.secret.splitlines() for form in (part, json.dumps(part)[1:-1])}
    for each in PLANTED
}


def samples(name: str) -> list[Path]:
    return sorted(path for path in (GOLD / name).iterdir() if path.name not in ("README.md", "SOURCES.md"))


def first_key(source: Path) -> str:
    with collect(source) as found:
        return found.entries[0].key


def leaked(text: str) -> list[str]:
    """Return the names of the secrets that are in `text`, or a line of them, also as JSON escapes it."""
    return [name for name, forms in FORMS.items() if any(form in text for form in forms)]


def test_there_are_forty_of_them() -> None:
    assert len({each.secret for each in PLANTED}) >= 40
    assert len(FORMATS) >= 3


@pytest.mark.parametrize("name", FORMATS)
def test_no_planted_secret_is_written_or_said(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("REGCASE_TRACEBACK", "1")
    removed = written = 0
    with_text = False
    for number, sample in enumerate(samples(name)):
        project = tmp_path / f"project-{number}"
        project.mkdir()
        monkeypatch.chdir(project)
        source = planted_copy(sample, tmp_path / f"source-{number}" / sample.name, BLOCK)
        # Where no trial failed by itself, a person says so of one.
        for options in (["--all"], ["--outcome", "failed", "--trial", first_key(source)]):
            code = main(["new", "--from-trial", str(source), "--new", "--owner", "me", "--json", *options])
            said = capsys.readouterr()
            assert code in (0, 2), said.err
            assert leaked(said.out) == []
            assert leaked(said.err) == []
            if code == 0:
                written += 1
                removed += sum(json.loads(said.out)["redactions"].values())
                break
        for path in sorted(project.rglob("*")):
            assert leaked(path.name) == []
            if path.is_file():
                assert leaked(path.read_text()) == [], path
                with_text |= path.name == "transcript.jsonl"
    assert leaked(caplog.text) == []
    assert written > 0
    if with_text:
        assert removed >= len(PLANTED), "none of its samples became a case with the planted text in it"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All formats in one sweep."""
    folder = tmp_path_factory.mktemp("planted")
    for name in FORMATS:
        for sample in samples(name):
            planted_copy(sample, folder / name / sample.name, BLOCK)
    return folder


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (["new", "--failed", "--from-trial"], 0),
        (["new", "--trial", "no-such-trial", "--from-trial"], 2),
        (["scan", "--json"], 0),
        (["scan", "--markdown"], 0),
    ],
)
def test_what_is_said_of_a_sweep_holds_none_of_them(
    sweep: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], exit_code: int
) -> None:
    assert main([*arguments, str(sweep)]) == exit_code
    said = capsys.readouterr()
    assert leaked(said.out) == []
    assert leaked(said.err) == []
