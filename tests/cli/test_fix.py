import json
import subprocess
from pathlib import Path

import pytest

from pytest_regcase.case_files import load_case, seal_case
from pytest_regcase.cli import main
from tests.case_files.conftest import MINIMUM

PYPROJECT = """\
[tool.regcase.agents.default]
command = ["my-agent"]
revision_paths = ["agent.py"]
"""


@pytest.fixture(autouse=True)
def _nobody_in_particular(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No name from git's settings of whoever runs the tests."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("USER", "mina")


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cases" / "trial-37" / "case.toml"
    path.parent.mkdir(parents=True)
    path.write_text(MINIMUM)
    seal_case(path)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "agent.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    return path


def test_a_claim_is_appended_and_says_what_comes_next(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = case.read_bytes()
    assert main(["fix", "sweep-0412-trial-37", "--note", "client time-out lowered"]) == 0
    assert case.read_bytes().startswith(before + b"\n[[fix]]\n")
    (fix,) = load_case(case).case.fix
    assert (fix.number, fix.by, fix.rows, fix.note) == (1, "mina", 0, "client time-out lowered")
    assert fix.revision.startswith("sha256:")
    assert fix.at.microsecond == 0
    out = capsys.readouterr().out
    assert "wrote cases/trial-37/case.toml: fix 1, claimed by mina\n" in out
    assert f"ledger {fix.ledger_id}, 0 attempts so far" in out
    assert "The claim needs 29 clean live attempts: failure rate below 0.10 at risk 0.05." in out
    assert out.endswith("  pytest --regcase --regcase-profile=nightly --regcase-live=29\n")


def test_the_next_claim_has_the_next_number_and_the_same_ledger(case: Path) -> None:
    main(["fix", str(case)])
    (case.parents[2] / "agent.py").write_text("x = 2\n")
    assert main(["fix", str(case), "--by", "omar", "--json"]) == 0
    one, two = load_case(case).case.fix
    assert (one.number, two.number, two.by) == (1, 2, "omar")
    assert one.ledger_id == two.ledger_id
    assert one.revision != two.revision


def test_a_claim_at_the_same_revision_is_noted(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["fix", str(case), "--revision", "server config v8"])
    capsys.readouterr()
    assert main(["fix", str(case), "--revision", "server config v8", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["case_id"], document["need"]) == (1, "sweep-0412-trial-37", 29)
    assert document["fix"]["number"] == 2
    assert document["notices"] == [
        "fix 1 was claimed at this same revision; every further claim adds to the risk over all",
        "no [baseline] says how often the case failed before; `regcase check` is red without one",
    ]


def test_the_rule_of_the_case_wins(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = case.read_text()
    case.write_text(
        text.replace("[seal]", '[handover.rerun_rule]\nmax_failure_rate = "0.20"\nrisk = "0.05"\n[seal]')
    )
    assert main(["fix", str(case)]) == 0
    assert "needs 14 clean live attempts: failure rate below 0.20" in capsys.readouterr().out


def test_who_claims_it_is_known_to_git(case: Path) -> None:
    root = case.parents[2]
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for key, value in (("user.name", "Omar"), ("user.email", "omar@example.com")):
        subprocess.run(["git", "-C", str(root), "config", key, value], check=True)
    assert main(["fix", str(case)]) == 0
    assert load_case(case).case.fix[0].by == "Omar <omar@example.com>"


def test_nobody_can_claim_nothing(
    case: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("USER")
    monkeypatch.delenv("LOGNAME", raising=False)
    before = case.read_bytes()
    assert main(["fix", str(case)]) == 2
    assert "Pass --by NAME." in capsys.readouterr().err
    assert case.read_bytes() == before


def test_a_ledger_that_cannot_be_opened_leaves_the_case(
    case: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (case.parents[2] / "ledger").write_text("this is no database, and long enough to be seen as none" * 100)
    monkeypatch.setenv("REGCASE_LEDGER", "ledger")
    before = case.read_bytes()
    assert main(["fix", str(case)]) == 4
    assert "Traceback" not in capsys.readouterr().err
    assert case.read_bytes() == before


def test_an_agent_that_is_not_configured_is_named(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case.write_text(case.read_text().replace("title =", 'agent = "other"\ntitle ='))
    assert main(["fix", str(case)]) == 2
    assert "Couldn't find the agent 'other'" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--by", "--note", "--revision"])
@pytest.mark.parametrize(("given", "says"), [("\udcff", "is not UTF-8 text"), ("", "is empty")])
def test_words_that_no_file_can_hold_are_a_usage_error(
    case: Path, option: str, given: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = case.read_bytes()
    assert main(["fix", str(case), option, given]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert option in err
    assert case.read_bytes() == before


def test_what_is_said_fits_80_columns(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["fix", str(case), "--by", "omar"])
    main(["fix", str(case), "--by", "omar"])
    out = capsys.readouterr().out
    assert "note: fix 1 was claimed at this same revision" in " ".join(out.split())
    assert [each for each in out.splitlines() if len(each) > 80 and " " in each.strip()] == []
