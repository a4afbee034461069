"""A name that nothing has is answered with the one that was meant, wherever names are given."""

from pathlib import Path

import pytest

from pytest_regcase.cli import main
from pytest_regcase.config import load_project
from pytest_regcase.errors import UnknownName, did_you_mean
from pytest_regcase.registry import load
from pytest_regcase.session.plan import agent_config
from tests.session.case_life.stories import ID, make_life_project


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["quarantin"], "quarantine"),
        (["ledger", "exprt"], "export"),
        (["list", "--state", "verifing"], "verifying"),
        (["simulations", "--class", "autth"], "auth"),
        (["show", "sweep-0412-trial-73"], ID),
        (["serve", "--simulation", "deadline-no-answr-v1"], "deadline-no-answer-v1"),
        (["init", "--harness", "mini-swe-agnt"], "mini-swe-agent"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else each,
)
def test_a_slip_on_the_command_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    meant: str,
) -> None:
    make_life_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert f"Did you mean '{meant}'?" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("words", [["zzz"], ["list", "--state", "zzz"], ["show", "zzz"], ["ledger", "zzz"]])
def test_what_is_like_nothing_is_answered_with_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    make_life_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    err = capsys.readouterr().err
    assert "Did you mean" not in err
    assert err.rstrip(" \n") + "\n" == err


def test_an_agent_and_an_extension(tmp_path: Path) -> None:
    project = load_project(make_life_project(tmp_path).root)
    with pytest.raises(UnknownName, match=r"Did you mean 'default'\? Name one that is there"):
        agent_config(project, "defualt")
    with pytest.raises(UnknownName, match=r"Did you mean 'no_answer'\? Known: "):
        load("faults", "no_anser")


def test_it_is_a_question_that_a_text_can_begin_with() -> None:
    assert did_you_mean("opn", ["closed", "open"]) == "Did you mean 'open'? "
    assert did_you_mean("zzz", ["closed", "open"]) == ""
