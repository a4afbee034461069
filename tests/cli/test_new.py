"""`regcase new` as it is typed: what it prints, its JSON, its exit codes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_regcase.case_files import load_case
from pytest_regcase.cli import main

GOLD = Path(__file__).parent.parent / "gold"
FAILED = str(GOLD / "mini-swe-agent" / "call_failed.traj.json")


@pytest.fixture(autouse=True)
def _empty_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.regcase]\n")


def test_it_says_what_was_written_missing_removed_proposed_and_next(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--from-trial", FAILED, "--id", "one", "--owner", "me"]) == 0
    out = capsys.readouterr().out
    symptom = "one: model answered step 2, then gave no usable reply at step 3: TimeoutError was raised"
    assert symptom in " ".join(out.split())
    assert "cause unknown" in out
    for name in ("case.toml", "recorded/transcript.jsonl", "recorded/task.txt"):
        assert os.path.join("cases", "one", name) in out
    assert "Owner: me (from --owner)" in out
    assert "Removed before writing: nothing" in out
    assert "partial patch" in out
    for hypothesis in ("deadline", "resource-exhaustion", "auth", "hidden"):
        assert f"  {hypothesis}: " in out
    assert "regcase init --harness mini-swe-agent" in out
    assert out.rstrip().endswith(f"pytest --regcase {os.path.join('cases', 'one')}")
    assert load_case(Path("cases/one")).id == "one"


def test_a_configured_agent_needs_no_init(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text('[tool.regcase.agents.default]\ncommand = ["x"]\n')
    assert main(["new", "--from-trial", FAILED, "--owner", "me"]) == 0
    out = capsys.readouterr().out
    assert "regcase init" not in out
    assert "pytest --regcase" in out


def test_json_is_one_document_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--from-trial", FAILED, "--id", "one", "--owner", "me", "--json"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert set(document) == {"schema", "cases", "missing", "redactions", "warnings"}
    assert document["schema"] == 1
    (case,) = document["cases"]
    assert case["id"] == "one"
    assert [Path(name).is_file() for name in case["files"]] == [True] * 3
    assert captured.err == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--from-trial", "no-such-file"], "there is no such file"),
        (["--from-trial", str(GOLD / "mini-swe-agent" / "submitted.traj.json")], "--outcome failed"),
        (["--from-trial", str(GOLD / "inspect" / "sweep.eval"), "--sample", "good"], "scored as passed"),
        (["--from-trial", str(GOLD / "inspect" / "sweep.eval"), "--sample", "3"], "another sample failed the run"),
        (["--from-trial", str(GOLD)], "--trial KEY"),
        (["--from-trial", FAILED, "--id", "Not An Id"], "lower-case"),
        (["--from-trial", FAILED, "--importer", "none"], "Known: "),
        (["--from-trial", FAILED, "--outcome", "passed"], "you say that the trial passed"),
        (["--from-trial", FAILED, "--outcome", "other"], "undetermined"),
        (["--from-trial", FAILED, "--harness", "other"], "the log says 'mini-swe-agent"),
        (["--from-trial", FAILED, "--attach", FAILED], "Couldn't attach"),
        (["--from-trial", FAILED, "--attach", "absent"], "does not exist"),
        (["--from-trial", FAILED, "--keep", "email"], "no reason is given"),
        (["--from-trial", FAILED, "--trial", "absent"], "no trial in it fits"),
        (["--from-trial", FAILED, "--all", "--failed"], "--failed and --all cannot stand together"),
        (["--from-trial", FAILED, "--all", "--id", "x"], "--all and --id cannot stand together"),
        (["--from-trial", FAILED, "--failed", "--attach", FAILED], "--failed and --attach cannot stand together"),
        ([], "--from-trial"),
    ],
)
def test_a_refusal_is_exit_2_words_on_stderr_and_no_file(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert main(["new", *arguments, "--owner", "me"]) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert not Path("cases").exists()


def test_a_person_can_say_that_it_failed(capsys: pytest.CaptureFixture[str]) -> None:
    source = str(GOLD / "mini-swe-agent" / "submitted.traj.json")
    assert main(["new", "--from-trial", source, "--outcome", "failed", "--owner", "me", "--id", "one"]) == 0
    assert load_case(Path("cases/one")).case.observation.outcome_from == "person"


def test_other_folders_and_samples_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    Path("tree").mkdir()
    Path("tree/calc.py").write_text("x")
    arguments = [
        "--cases",
        "elsewhere",
        "--sample",
        "bad",
        "--epoch",
        "1",
        "--work-tree",
        "tree",
        "--title",
        "seen",
    ]
    source = str(GOLD / "inspect" / "sweep.eval")
    assert main(["new", "--from-trial", source, *arguments, "--owner", "me", "--id", "one"]) == 0
    out = capsys.readouterr().out
    assert f"{os.path.join('elsewhere', 'one', 'recorded', 'work_tree')} (1 file)" in out
    case = load_case(Path("elsewhere/one")).case
    assert (case.title, case.observation.task_id) == ("seen", "greeting/bad")


def test_twice_is_refused_with_a_free_id(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["new", "--from-trial", FAILED, "--owner", "me", "--id", "one"]
    assert main(arguments) == 0
    before = Path("cases/one/case.toml").read_bytes()
    capsys.readouterr()
    assert main(arguments) == 2
    assert "--id one-2" in capsys.readouterr().err
    assert Path("cases/one/case.toml").read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["--from-trial", ""],
        ["--from-trial", FAILED, "--cases", ""],
        ["--from-trial", FAILED, "--work-tree", ""],
        ["--from-trial", FAILED, "--attach", ""],
    ],
)
def test_an_empty_path_is_not_the_folder_that_one_is_in(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(["new", *arguments, "--owner", "me"]) == 2
    assert "would be the folder that you are in" in capsys.readouterr().err
    assert not Path("cases").exists()


@pytest.mark.parametrize("option", ["--owner", "--title"])
@pytest.mark.parametrize(("given", "says"), [("\udcff", "is not UTF-8 text"), ("  ", "is empty")])
def test_words_that_no_file_can_hold_are_a_usage_error(
    option: str, given: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "--from-trial", FAILED, "--id", "one", option, given]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert option in err
    assert not Path("cases").exists()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_stream_that_cannot_show_a_name_is_no_failure(encoding: str) -> None:
    folder = "c\udce9 \u6f22" if sys.getfilesystemencoding() == "utf-8" else "c"
    code = "import sys; from pytest_regcase.cli import main; sys.exit(main())"
    arguments = ["new", "--from-trial", FAILED, "--id", "one", "--owner", "\u6f22", "--cases", folder]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": f"{encoding}:strict"},
        check=False,
    )
    assert done.stderr == b""
    assert done.returncode == 0
    assert b"Owner: " in done.stdout
    assert load_case(Path(folder) / "one").case.handover.owner == "\u6f22"  # type: ignore[union-attr]


def test_what_is_said_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--from-trial", FAILED, "--id", "one", "--owner", "me"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [each for each in lines if len(each) > 80 and " " in each.strip()] == []


def test_a_project_without_case_folders_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text("[tool.regcase]\ncases = []\n")
    assert main(["new", "--from-trial", FAILED, "--owner", "me"]) == 2
    assert (
        capsys.readouterr().err == "pyproject.toml:2: tool.regcase.cases is empty; allowed: at least one folder\n"
    )


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Four logs in three formats: two of one signature, one that passed, one that cannot be read."""
    folder = tmp_path / "sweep"
    (folder / "deep").mkdir(parents=True)
    content = Path(FAILED).read_text()
    (folder / "a.json").write_text(content)
    (folder / "deep" / "b.json").write_text(content.replace("Look first.", "Look second."))
    shutil.copy(GOLD / "inspect" / "sweep.eval", folder / "run.eval")
    (folder / "broken.json").write_text('{"info": {}, "messages": [')
    return folder


def test_failed_trials_are_listed_in_80_columns(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--from-trial", str(sweep), "--failed"]) == 0
    captured = capsys.readouterr()
    assert captured.out == (
        "3 of 5 trials failed by themselves.\n"
        "trial            step  outcome       signature\n"
        "a.json           3     undetermined  error:TimeoutError:no-reply\n"
        "deep/b.json      3     undetermined  error:TimeoutError:no-reply\n"
        "run.eval::bad#1  3     undetermined  error:ConnectionError:no-reply\n"
        "Next: --trial KEY makes a case of one; --all makes one a signature.\n"
    )
    assert "broken.json" in captured.err
    assert not Path("cases").exists()


def test_failed_as_json_names_each_trial(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--from-trial", str(sweep), "--failed", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[2] == {
        "trial": "run.eval::bad#1",
        "task_id": "greeting/bad",
        "attempt": 1,
        "failing_step": 3,
        "error_type": "ConnectionError",
        "outcome": "undetermined",
        "signature": "error:ConnectionError:no-reply",
    }
    assert "task_id" not in rows[0]  # a trajectory has none: absent, not null


def test_nothing_failed_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    passed = str(GOLD / "mini-swe-agent" / "submitted.traj.json")
    assert main(["new", "--from-trial", passed, "--failed"]) == 0
    assert capsys.readouterr().out == "0 of 1 trial failed by themselves.\n"


def test_a_trial_is_picked_by_the_listed_key(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["new", "--from-trial", str(sweep), "--trial", "run.eval::bad#1", "--owner", "me", "--id", "one"]
    assert main(arguments) == 0
    assert load_case(Path("cases/one")).case.observation.task_id == "greeting/bad"
    assert "broken.json" in capsys.readouterr().out


def test_all_makes_one_case_a_signature_and_says_so(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--from-trial", str(sweep), "--all", "--owner", "me"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Wrote 2 cases, one a failure signature:\n")
    assert "    baseline: 2 of 4 trials of the sweep\n" in out
    assert "    1 further trial of this signature listed in it\n" in out
    assert "broken.json" in " ".join(out.split())
    assert max(len(line) for line in out.splitlines() if "/" not in line) <= 80
    assert len(list(Path("cases").iterdir())) == 2
    assert main(["new", "--from-trial", str(sweep), "--all", "--owner", "me"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("Looks like") == 2


def test_replies_that_call_no_tool_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = [("user", "Count."), ("assistant", "One."), ("user", "Go on.")]
    log = tmp_path / "talk.json"
    log.write_text(json.dumps([{"role": role, "content": text} for role, text in said]))
    assert main(["new", "--from-trial", str(log), "--owner", "me"]) == 0
    assert "no recorded reply calls a tool" in " ".join(capsys.readouterr().out.split())


def test_all_names_the_trials_that_it_passes_over(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = ["new", "--from-trial", str(sweep), "--trial", "a.json", "--owner", "me"]
    assert main(one) == 0
    capsys.readouterr()
    assert main(["new", "--from-trial", str(sweep), "--all", "--owner", "me"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "error:TimeoutError:no-reply (a.json): Looks like" in told
    assert "error:TimeoutError:no-reply (deep/b.json): Looks like" in told


def test_all_as_json_is_one_document(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--from-trial", str(sweep), "--trial", "a.json", "--owner", "me", "--id", "one"]) == 0
    capsys.readouterr()
    assert main(["new", "--from-trial", str(sweep), "--all", "--owner", "me", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"schema", "cases", "missing", "redactions", "warnings", "passed_over"}
    assert len(document["cases"]) == 1
    over = [(each["signature"], each["trials"]) for each in document["passed_over"]]
    assert over == [
        ("error:TimeoutError:no-reply", ["a.json"]),
        ("error:TimeoutError:no-reply", ["deep/b.json"]),
    ]


def test_what_looks_like_a_case_asks_for_new(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = str(sweep / "a.json"), str(sweep / "deep" / "b.json")
    assert main(["new", "--from-trial", one, "--owner", "me", "--id", "one"]) == 0
    assert main(["new", "--from-trial", two, "--owner", "me"]) == 2
    assert "Looks like one: the same symptom on the same task" in capsys.readouterr().err
    assert main(["new", "--from-trial", two, "--owner", "me", "--new"]) == 0


def test_no_progress_where_there_is_no_terminal(sweep: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--from-trial", str(sweep / "a.json"), "--failed"]) == 0
    assert capfd.readouterr().err == ""
