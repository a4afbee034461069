import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_regcase.cli import main
from pytest_regcase.lint.codes import CODES
from tests.session.reviews.checked_project import (
    CASE_ID,
    REPLY,
    append,
    case_path,
    edit,
    few_simulations,
    write_project,
)

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("written")
    write_project(root)
    return root


@pytest.fixture
def project(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The committed project, in the current folder."""
    root = tmp_path / "project"
    shutil.copytree(written, root)
    monkeypatch.chdir(root)
    monkeypatch.delenv("REGCASE_LEDGER", raising=False)
    few_simulations(root, monkeypatch)
    return root


def run(capsys: pytest.CaptureFixture[str], arguments: Sequence[str] = ()) -> tuple[int, str, str]:
    code = main(["check", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_nothing_found(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys) == (0, "1 case, 2 simulations: no problems\n", "")
    assert run(capsys, ["--json"]) == (0, "[]\n", "")


def test_what_is_found_reads_well(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(case_path(project), "no answer from step 2 on", "we think it was a timeout, please add a retry")
    edit(case_path(project), "max_retries = 3", "max_retries = 9")
    append(case_path(project).parent / "recorded" / "script.jsonl", REPLY.format("ls"))
    code, out, err = run(capsys, ["--against", "main"])
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0].startswith("compared with main (")
    assert lines[1:5] == [
        f"cases/{CASE_ID}/case.toml:3: cause-asserted",
        '  title says why it failed ("it was a timeout"), and the evidence does not carry',
        "    that; say what was seen, ask it as a question, or cite a log with `regcase",
        "    evidence`",
    ]
    assert f"cases/{CASE_ID}/case.toml:33: expectation-loosened" in lines
    assert f"cases/{CASE_ID}/recorded/script.jsonl: call-to-review" in lines
    assert lines[-1] == "1 case, 2 simulations: 2 problems, 1 to read"
    assert max(map(len, lines)) <= 80


def test_json_has_the_keys_of_the_interface(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(case_path(project), "max_retries = 3", "max_retries = 9")
    edit(project / "fixtures" / "one-v1.toml", '"deadline"', '"auth"')
    code, out, err = run(capsys, ["--against", "main", "--json"])
    assert (code, err) == (1, "")
    first, second = json.loads(out)
    assert list(first) == ["code", "case_id", "file", "line", "text"]
    assert (first["code"], first["case_id"], first["line"]) == ("expectation-loosened", CASE_ID, 33)
    # What does not apply is absent.
    assert list(second) == ["code", "file", "text"]
    assert (second["code"], second["file"]) == ("simulation-changed", "fixtures/one-v1.toml")


def test_what_is_only_listed_is_not_wrong(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hidden = "x" * 200 + "\\\\u001b[2K"
    append(case_path(project).parent / "recorded" / "script.jsonl", REPLY.format(hidden))
    code, out, _ = run(capsys)
    assert code == 0
    assert "\x1b" not in out
    assert f"`regcase show {CASE_ID} --calls`)" in " ".join(out.split())
    assert out.endswith(": no problems, 1 to read\n")


@pytest.mark.parametrize(
    "arguments",
    [["--against", "nowhere"], ["no-such-case"], [CASE_ID, "--against", "main"], ["--against"]],
)
def test_usage(project: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


def test_the_page_lists_every_code() -> None:
    page = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    assert {name.strip("`"): (says, red) for name, red, says in rows} == {
        name: (code.says, "red" if code.red else "to read") for name, code in CODES.items()
    }


def test_the_hook_definition_is_valid() -> None:
    pytest.importorskip("pre_commit")
    manifest = str(ROOT / ".pre-commit-hooks.yaml")
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-manifest", manifest],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_hook_runs_for_the_files_that_it_reads() -> None:
    yaml = pytest.importorskip("yaml")
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert (hook["id"], hook["entry"], hook["pass_filenames"]) == ("regcase-check", "regcase check", False)
    wanted = ("cases/x/case.toml", "pyproject.toml", "fixtures/a-v1.toml", "cases/x/recorded/work_tree/a.py")
    unwanted = ("README.md", "cases/x/notes.toml", "src/case.tomlx", "my_fixtures/a.toml")
    assert [name for name in (*wanted, *unwanted) if re.search(hook["files"], name)] == list(wanted)
