"""What `regcase doctor` prints, and its exit codes."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_regcase.cli import main
from pytest_regcase.cli.doctor import doctor
from tests.session.trying.test_doctor import DEMO, PLACES, SENDS, compressed, project_of
from tests.supplier.engines import FakeDocker


def test_prints_what_it_saw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project_of(tmp_path, (*DEMO, "--timeout", "0.5", *PLACES))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(doctor, [])
    assert result.exit_code == 0, result.output
    assert "reached our port: yes" in result.stdout
    assert "wire: openai-chat, not streaming" in result.stdout
    assert "requests after the first: 2" in result.stdout
    assert "proposed: stop_within_seconds = " in result.stdout
    # The folder may be longer than a terminal is wide; nothing else is.
    assert [line for line in result.stdout.splitlines() if len(line) > 80 and str(tmp_path) not in line] == []


def test_says_what_to_set_when_the_agent_never_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project_of(tmp_path, (sys.executable, "-c", "raise SystemExit('no module my_agent')"))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(doctor, [])
    assert result.exit_code == 1
    assert "| no module my_agent" in result.stdout
    assert "reached our port: no" in result.stdout
    assert 'OPENAI_BASE_URL = "{openai_base_url}"' in result.stdout
    said, advice = result.stdout.index("no module my_agent"), result.stdout.index("Correct what it says there.")
    assert said < advice < result.stdout.index("Give the agent our address")


ASKS_AND_GIVES_UP = """
import sys, urllib.request
body = b'{"model": "m", "messages": [{"role": "user", "content": "Write it."}]}'
asked = urllib.request.Request(sys.argv[1] + "/chat/completions", body)
try:
    urllib.request.urlopen(asked, timeout=0.3).read()
except OSError as error:
    sys.exit("ERROR: " + str(error))
"""


def test_says_what_to_write_where_the_output_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project_of(tmp_path, (sys.executable, "-c", ASKS_AND_GIVES_UP, "{openai_base_url}"))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(doctor, [])
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    assert "cannot see no_fabricated_output: Couldn't import" in told
    assert "let it write trial.jsonl into {out_dir}, as the README shows" in told
    assert "Looked for" not in told
    assert "not asked by this task: no_partial_submission, keep_partial_patch" in told


def test_says_how_a_container_gets_to_us(
    tmp_path: Path, fake_docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_docker.says(run=(125, "", "docker: no such image\n"), ps=(1, "", "no engine\n"))
    project_of(tmp_path, ("docker", "run", "my-agent"))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(doctor, [])
    assert result.exit_code == 1
    assert "| docker: no such image" in result.stdout
    assert '    reach = "docker"\n' in result.stdout
    assert "  Give the agent our address" not in result.stdout
    assert result.stdout.endswith(
        "  Whether a container was left behind cannot be said: docker ps says: no engine.\n"
    )


def test_the_json_is_one_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project_of(tmp_path, (sys.executable, "-c", "raise SystemExit(3)"))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(doctor, ["--json"])
    document = json.loads(result.stdout)
    assert (document["schema"], document["reached"], document["wire"]) == (1, False, None)
    assert document["silent"]["exit"]["code"] == 3
    assert document["containers"] is None


def test_an_agent_that_is_not_there_is_all_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "--agent", "nobody"]) == 2
    assert capsys.readouterr().err.startswith("Couldn't find the agent 'nobody'")


def test_a_project_that_takes_no_files_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project_of(tmp_path, (sys.executable, "-c", "raise SystemExit(3)"))
    (tmp_path / ".regcase").write_text("")
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Couldn't write .regcase/doctor/")


def test_requests_that_are_none_of_a_model_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project_of(tmp_path, (sys.executable, "-c", SENDS, "{openai_base_url}", "/completions"))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(doctor, [])
    assert result.exit_code == 1
    assert (
        "reached our port: yes, but with no model request that we can answer: it asked\n    for /v1/completions"
        in (result.stdout)
    )
    assert "still waiting" not in result.stdout
    assert "OPENAI_BASE_URL" not in result.stdout


def test_compressed_time_is_told(tmp_path: Path, clock_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compressed(tmp_path, clock_library, (*DEMO, "--timeout", "60", *PLACES))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(doctor, [])
    assert result.exit_code == 0, result.output
    assert "the second may take up to 20 s" in result.stderr
    assert "its clock ran 200 times as fast from then on; the run took" in result.stdout
    assert "proposed: stop_within_seconds = " in result.stdout


def test_a_clock_that_does_not_reach_the_agent_is_refused(
    tmp_path: Path, clock_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("env", "-u", "LD_PRELOAD", *DEMO, "--timeout", "60", *PLACES)
    compressed(tmp_path, clock_library, command)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(doctor, [])
    assert result.exit_code == 1
    assert "time_scale = 200 does not reach the agent: the process that asks us" in " ".join(result.stdout.split())
    assert "set time_scale = 1 in [tool.regcase.agents.default]" in " ".join(result.stdout.split())
    assert "proposed" not in result.stdout
    assert "still waiting" not in result.stdout
