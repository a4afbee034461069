"""`regcase gate` on GitHub Actions: it tells the runner what no pytest of this run could tell it."""

import json
from pathlib import Path

import pytest

from pytest_regcase.cli import main
from tests.cli.test_gate import CAPTURE, Sessions
from tests.plugin.gate_project import write_case

BROKEN = {"trial-2::stall-v1": "not-recovered"}


@pytest.fixture
def hosted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sessions:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REGCASE_RUN_ID", raising=False)
    for name, value in (
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_RUN_ID", "7"),
        ("GITHUB_WORKSPACE", str(tmp_path)),
        ("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md")),
    ):
        monkeypatch.setenv(name, value)
    sessions = Sessions(tmp_path)
    for name in ("trial-1", "trial-2"):
        write_case(tmp_path, name, ["stall-v1"])
    return sessions


def commands(capsys: CAPTURE, *args: str) -> list[str]:
    """Run the gate; return the runner's commands in its output."""
    capsys.readouterr()
    main(["gate", *args])
    said = capsys.readouterr()
    return [line for line in f"{said.out}\n{said.err}".splitlines() if line.startswith("::")]


def test_pytest_told_of_its_one_whole_session(hosted: Sessions, capsys: CAPTURE) -> None:
    hosted.run(BROKEN)
    assert commands(capsys) == []
    assert not (hosted.root / "summary.md").exists()


@pytest.mark.parametrize("option", [(), ("--json",)], ids=str)
def test_over_shards(hosted: Sessions, capsys: CAPTURE, option: tuple[str, ...]) -> None:
    for number in (1, 2):
        hosted.run(BROKEN, shard=f"{number}/2")
    (command,) = commands(capsys, *option)
    assert command.startswith(
        "::error file=cases/trial-2/case.toml,line=13,title=regcase check-broken%3A trial-2::"
    )
    assert (hosted.root / "summary.md").read_text().startswith("## regcase: FAIL\n")


def test_with_json_stdout_stays_one_document(hosted: Sessions, capsys: CAPTURE) -> None:
    hosted.run(shard="1/2")
    capsys.readouterr()
    assert main(["gate", "--json"]) == 3
    said = capsys.readouterr()
    assert json.loads(said.out)["decision"] == "unproven"
    assert "\n::error title=regcase no-session::shard 2/2 left no session" in said.err


def test_a_session_without_an_end_and_a_run_without_a_session(
    hosted: Sessions, capsys: CAPTURE, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosted.run(ends=False)
    assert any("regcase interrupted" in each for each in commands(capsys))
    monkeypatch.setenv("GITHUB_RUN_ID", "8")
    assert any("the CI run 8 left no session" in each for each in commands(capsys))


def test_a_release_looks_at_what_other_runs_did(
    hosted: Sessions, capsys: CAPTURE, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosted.run(BROKEN)
    assert [each.split("::")[1][:5] for each in commands(capsys, "--profile", "release")] == ["error"]
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(hosted.root / "no" / "summary.md"))
    main(["gate", "--profile", "release"])
    assert "Couldn't add to the step summary" in capsys.readouterr().err
