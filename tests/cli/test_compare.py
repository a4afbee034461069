import json
from pathlib import Path

import pytest

from pytest_regcase.cli import main
from tests.session.case_life.evidence_project import make_project


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = make_project(tmp_path)
    monkeypatch.chdir(tmp_path / "outside")
    (tmp_path / "outside" / "pyproject.toml").write_bytes((tmp_path / "pyproject.toml").read_bytes())
    return path


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_candidates_are_shown_and_nothing_is_written(
    case: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = everything(tmp_path)
    logs = ["kern.log", "access.log", "vllm.log", "test-output.txt", "dmesg.txt"]
    assert main(["compare", str(case), "--log", *logs]) == 0
    out = capsys.readouterr().out
    assert everything(tmp_path) == before
    assert "confirmed" not in out
    assert out.startswith("t37: compared with 5 logs\n")
    assert "2026-04-12T09:14:07Z to 2026-04-12T09:33:07Z" in " ".join(out.split())
    assert "  kern.log: a kernel log (5 lines, 3 counted, 2 of another time)\n" in out
    assert "  test-output.txt: the output of a test run: nothing in it counts (14 lines)\n" in out
    assert "resource-exhaustion: supports\n  supports\n    kern.log:2-4\n" in out
    assert "auth: supports\n  supports\n    access.log:3\n" in out
    assert "  not placed in time\n    dmesg.txt:1-2\n" in out
    assert "test-output.txt:" not in out.split("deadline: ")[1]
    assert out.endswith(
        "  regcase evidence "
        + str(case)
        + " --hypothesis resource-exhaustion \\\n    --supports kern.log:2-4 --why TEXT\n"
    )
    assert [line for line in out.splitlines() if len(line) > 80 and str(case) not in line] == []


def test_what_it_says_to_run_is_taken(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(case), "--log", "kern.log"]) == 0
    command = capsys.readouterr().out.split("regcase ")[-1].replace("\\\n", " ").split()
    assert main([*command, "--who", "mina"]) == 0


def test_silence_is_said(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(case), "--log", "agent.log", "--log", "transcript.jsonl"]) == 0
    out = capsys.readouterr().out
    assert out.count(": silent\n") == 3
    assert "regcase evidence" not in out
    assert "Silence refutes nothing." in out


def test_the_document_holds_every_place(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(case), "--log", "kern.log", "--skew", "0", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["case_id"], document["skew_seconds"]) == (1, "t37", 0)
    assert document["window"] == {"start": "2026-04-12T09:16:07Z", "end": "2026-04-12T09:31:07Z"}
    (log,) = document["logs"]
    assert (log["file"], log["lines"], log["in_window"], log["kinds"]) == ("kern.log", 5, 3, {"kernel": 3})
    says = {each["id"]: each["says"] for each in document["hypotheses"]}
    assert says == {"deadline": "refutes", "resource-exhaustion": "supports", "auth": "silent"}
    (hit,) = document["hypotheses"][1]["supports"]
    assert (hit["place"], hit["sign"], hit["at"]) == ("kern.log:2-4", "kernel-oom-kill", "2026-04-12T09:31:04Z")


def test_secrets_of_a_log_are_not_shown(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = "sk-proj-" + "Ab3" * 16
    Path("proxy.log").write_text(
        f"2026/04/12 09:31:05 [error] 7#7: *1 upstream sent invalid_api_key {key}\x1b[2J\n"
    )
    for more in ([], ["--json"]):
        assert main(["compare", str(case), "--log", "proxy.log", *more]) == 0
        out = capsys.readouterr().out
        assert "invalid_api_key" in out
        assert "Ab3" not in out
        assert "\x1b" not in out


@pytest.mark.parametrize(("more", "meant"), [(["kern.log"], "kern.log"), ([], "FILE")])
def test_a_log_is_given_with_log(
    case: Path, capsys: pytest.CaptureFixture[str], more: list[str], meant: str
) -> None:
    assert main(["compare", str(case), *more]) == 2
    assert f"Give it with --log: regcase compare {case} --log {meant}\n" in capsys.readouterr().err


def test_a_log_that_is_not_there_is_refused(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(case), "--log", "none.log"]) == 2
    assert (
        capsys.readouterr().err == "Couldn't read the log none.log: no such file or directory.\nCheck the file.\n"
    )


def test_an_observation_without_a_time_counts_nothing(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from pytest_regcase.case_files import seal_case

    text = (
        case.read_text().replace("observed_at = 2026-04-12T09:31:07Z\n", "").replace("auth-rejected-v1", "own-v1")
    )
    case.write_text(text[: text.index("[seal]")])
    seal_case(case)
    assert main(["compare", str(case), "--log", "kern.log"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "counted: nothing, since the observation records no time" in out
    assert "--field observation.observed_at=TIME --why TEXT " in out
    assert "deadline: silent" in out
    assert "note: no simulation has the id own-v1" in out
