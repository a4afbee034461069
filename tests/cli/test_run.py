import json
from pathlib import Path

import pytest

from pytest_regcase.cli import main
from pytest_regcase.cli.run_progress import shown_progress, time_left
from pytest_regcase.session.batches.batch import Progress
from tests.session.batches.run_project import make_project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    make_project(root, one="work", two="crash")
    return root


@pytest.fixture(autouse=True)
def _in_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def test_a_run_without_a_terminal_says_one_line_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--out", "two"]) == 1
    said = capsys.readouterr()
    assert said.out.splitlines() == ["2 tasks: 1 agent_error, 1 unscored", "Next: regcase summary two"]
    first, second, why = said.err.splitlines()
    assert first.startswith("[1/2] one: unscored (1 unscored; about ")
    assert second == "[2/2] two: agent_error (1 agent_error, 1 unscored)"
    assert why.startswith("  AgentFailed: the agent ended with exit code 1")
    assert all(len(each) <= 80 for each in said.err.splitlines())


def test_quiet_says_nothing_and_a_clean_run_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "one", "--out", "quiet", "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["summary", "quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["unscored"] == 1


def test_a_declared_stand_in_makes_a_controlled_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "one", "--out", "controlled", "--controlled"]) == 0
    assert "this run is a check and no result" in capsys.readouterr().err
    assert main(["summary", "controlled"]) == 0
    assert "1 controlled check, not a result" in capsys.readouterr().out
    assert main(["run", "--out", "controlled", "--resume", "--replies", "tasks.toml"]) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nope", "nor-this"], "unknown: nope, nor-this"),
        (["one", "--crashed"], "--crashed goes with --resume"),
        (["--resume", "--seed", "1"], "--seed is that of the run"),
        (["--resume"], "holds no run.json"),
        (["--jobs", "0"], "--jobs"),
        (["--tasks", "agent.sh"], ".toml"),
    ],
)
def test_what_cannot_be_run_is_refused_and_nothing_is_made(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    assert main(["run", "--out", "never", *arguments]) == 2
    assert says in capsys.readouterr().err
    assert not (project / "never").exists()


@pytest.mark.parametrize(
    ("seconds", "says"),
    [(None, ""), (12.4, "about 12 s left"), (61.0, "about 1 min left"), (7320.0, "about 2 h 2 min left")],
)
def test_the_time_that_is_left_in_words(seconds: float | None, says: str) -> None:
    assert time_left(Progress("finished", 1, 3, left_seconds=seconds)) == says
    assert time_left(Progress("finished", 3, 3, left_seconds=seconds)) == ""


def test_a_terminal_gets_a_bar_that_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    from io import StringIO

    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with shown_progress(quiet=False) as show:
        show(Progress("started", 0, 2, task_id="one"))
        show(
            Progress(
                "finished",
                1,
                2,
                task_id="one",
                status="agent_error",
                says="[red]Error: no",
                left_seconds=3.0,
                counts={"agent_error": 1},
            )
        )
    shown = screen.getvalue()
    assert "1/2" in shown
    assert "1 agent_error; about 3 s left" in shown
    assert "one: [red]Error: no" in shown
