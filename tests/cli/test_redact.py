import io
import json
import sys
from pathlib import Path

import pytest

from pytest_regcase.case_files import load_case, seal_case
from pytest_regcase.cli import main
from tests.case_files.conftest import MINIMUM

SECRET = "--hunter2 of the zoo"


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cases" / "trial-37" / "case.toml"
    path.parent.mkdir(parents=True)
    path.write_text(MINIMUM.replace("then stopped", f"said {SECRET}, then stopped"))
    seal_case(path)
    monkeypatch.chdir(tmp_path)
    return path


def test_what_was_done_and_what_is_left_to_do_is_said(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["redact", "sweep-0412-trial-37", SECRET, "--by", "omar", "--why", "a key of ours"]) == 0
    out = capsys.readouterr().out
    assert "hunter2" not in out
    assert "redacted cases/trial-37/case.toml\n  removed 1 by_hand\n  1 in case.toml\n" in out
    assert "  amendment by omar: a key of ours\n" in out
    assert "still in the history of your version control" in " ".join(out.split())
    assert "revoke the secret" in " ".join(out.split())
    assert "counted anew" not in out
    assert [line for line in out.splitlines() if len(line) > 80 and " " in line.strip()[14:]] == []
    assert (
        load_case(case).case.symptom
        == "model answered step 5, said REDACTED-by-hand-1, then stopped responding at step 6"
    )


def test_it_is_read_from_stdin(
    case: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{SECRET}\n"))
    assert main(["redact", str(case), "-", "--by", "omar", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert (document["case_id"], document["file"]) == ("sweep-0412-trial-37", "cases/trial-37/case.toml")
    assert (document["files"], document["redactions"]) == ({"case.toml": 1}, {"by_hand": 1})
    assert document["looked_at"] == ["case.toml"]
    assert document["amendment"]["who"] == "omar"
    assert document["digest"] == load_case(case).case.seal.observation  # type: ignore[union-attr]
    assert "version control" in document["notice"]
    assert SECRET not in case.read_text()


def test_nothing_found_by_the_patterns_is_no_error(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = case.read_bytes()
    assert main(["redact", str(case)]) == 0
    assert capsys.readouterr().out.startswith("nothing to remove: cases/trial-37/case.toml\n")
    assert main(["redact", str(case), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert "amendment" not in document
    assert document["files"] == {}
    assert case.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["giraffe-secret"], "the text is in none of its files"),
        (["--giraffe-secret"], "the text is in none of its files"),
        (["gir"], "fewer than 4 characters"),
        ([""], "fewer than 4 characters"),
        (["giraffe", "secret"], "more than one PATTERN"),
    ],
)
def test_a_refusal_does_not_repeat_it(
    case: Path, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = case.read_bytes()
    assert main(["redact", str(case), *arguments]) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert "gir" not in said.out + said.err
    assert case.read_bytes() == before


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["redact", "--help"]) == 0
    out = capsys.readouterr().out
    assert "regcase redact sweep-0412-trial-37" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A failed trial with an address in it."""
    path = tmp_path / "trial.jsonl"
    gold = Path(__file__).parent.parent / "gold" / "trial-jsonl" / "failed.jsonl"
    lines = [json.loads(line) for line in gold.read_text().splitlines()]
    lines[0]["task_text"] = "ask ada@mail.corp.io or bob@mail.corp.io"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    monkeypatch.chdir(tmp_path)
    return path


def test_a_reason_is_asked_for_what_is_kept(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--from-trial", str(log), "--keep", "email"]) == 2
    assert "--keep-reason" in capsys.readouterr().err
    assert not (log.parent / "cases").exists()


@pytest.mark.parametrize("mode", [["--id", "one"], ["--all"]])
def test_what_is_kept_is_said_and_recorded_with_its_reason(
    log: Path, mode: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    keep = ["--keep", "ada@.*", "--keep", "cookie", "--keep-reason", "hers is public", "--owner", "me"]
    assert main(["new", "--from-trial", str(log), *keep, *mode]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert (
        "Removed before writing: 1 email Kept as you said: 1 ada@.* (hers is public); each case records it" in out
    )
    assert "--keep 'cookie' kept nothing" in out or mode == ["--all"]
    (path,) = (log.parent / "cases").glob("*/case.toml")
    loaded = load_case(path)
    assert [each.to_plain() for each in loaded.case.observation.kept] == [
        {"what": "ada@.*", "count": 1, "why": "hers is public"}
    ]
    assert loaded.task_text() == "ask ada@mail.corp.io or REDACTED-email-1"
    assert main(["redact", str(path)]) == 0
    assert load_case(path).task_text() == loaded.task_text()
