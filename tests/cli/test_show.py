import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.cli import main
from pytest_regcase.session.case_life.amend import amend_case
from pytest_regcase.session.case_life.fix import claim_fix
from tests.session.attempt_project import make_project
from tests.session.case_life.stories import ID, make_life_project

KEY = "sk-" + "a1B2" * 8


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one case, in the current folder."""
    make_project(tmp_path, [sys.executable, "-c", ""])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(project: Path, replies: Sequence[dict[str, Any]], name: str = "script.jsonl") -> None:
    path = project / "cases" / "calc-step-3" / "recorded" / name
    path.write_text("".join(json.dumps({"role": "assistant", **each}) + "\n" for each in replies))


def call(command: str, name: str = "bash") -> dict[str, Any]:
    return {"name": name, "arguments": json.dumps({"command": command})}


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["show", "calc-step-3", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_a_planted_touch_is_reported_before_it_runs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planted = Path("/planted-by-a-reply")  # a short place: a long one is cut
    write(project, [{"tool_calls": [call("cat sums.py")]}, {"tool_calls": [call(f"touch {planted}"), call("ls")]}])
    text = shown(capsys, "--calls")
    assert text.startswith(
        "calc-step-3, replies: 2 from a script, with 3 tool calls\n"
        "step 1\n  bash\n    command: cat sums.py\nstep 2\n  bash\n    command: touch "
    )
    assert f"! names a place outside the work folder: {planted} bash command: ls" in " ".join(text.split())
    assert "3 tool calls, 1 flagged." in text
    assert "A reading aid, no sandbox." in " ".join(text.split())
    assert "Not read here: the work tree" in text
    assert not planted.exists()


def test_nothing_is_left_out_and_nothing_is_obeyed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hidden = "ls" + " " * 300 + "; rm -r x\n\x1b[2K\x1b[1Aecho \u202efdp\tend"
    write(project, [{"tool_calls": [call(hidden)]}])
    text = shown(capsys, "--calls")
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "; rm -r x" in text
    assert r"\x1b[2K\x1b[1Aecho \u202efdp" in text
    assert max(map(len, text.splitlines())) <= 80


def test_secrets_are_not_shown(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, [{"tool_calls": [call(f"curl https://h.example/{KEY}"), call("x", name=KEY)]}])
    text = shown(capsys, "--calls")
    assert KEY not in text
    assert "https://h.example/REDACTED-api-key-1" in " ".join(text.split())


def test_a_text_from_which_an_agent_may_take_commands(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replies: list[dict[str, Any]] = [
        {"text": "I look at it.", "tool_calls": [call("ls")]},
        {"text": "Now:\n```bash\ntouch here\n```"},
        {"text": "<execute_bash>\nls\n</execute_bash>"},
        {"text": "See /etc/hosts."},
    ]
    write(project, replies)
    text = shown(capsys, "--calls")
    assert "I look at it." not in text
    assert "step 2\n  text of the reply, from which an agent may read commands\n    Now:\n    ```bash" in text
    assert "<execute_bash>" in text
    assert "  ! names a place outside the work folder: /etc/hosts." in text
    assert "1 tool call and 3 texts, 1 flagged." in text


def test_replies_after_a_healed_fault_are_listed_too(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = project / "cases" / "calc-step-3" / "case.toml"
    case.write_text(case.read_text().replace("[replies]\n", '[replies]\nafter_fault = "recorded/after.jsonl"\n'))
    write(project, [{"tool_calls": [call("rm x")]}], "after.jsonl")
    text = shown(capsys, "--calls")
    assert text.startswith("calc-step-3, replies: 2 from a script and 1 after the fault, with 3 tool calls\n")
    assert "reply 1 after the fault\n  bash\n    command: rm x\n  ! may remove things" in text


def test_arguments_that_are_no_object(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls = [
        {"name": "bash", "arguments": "cat /etc/x"},
        {"name": "edit", "arguments": '{"line": 3, "text": "a\\nb"}'},
    ]
    write(project, [{"tool_calls": calls}])
    assert "  bash\n    cat /etc/x\n  ! names" in (text := shown(capsys, "--calls"))
    assert "  edit\n    line: 3\n    text: a\n    b\n" in text


def test_a_failed_model_call_drives_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, [{"error": "timeout", "tool_calls": [call("rm x")]}])
    assert "no tool calls, 0 flagged" in shown(capsys, "--calls")


def test_what_a_real_supplier_will_call_is_not_known(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = project / "cases" / "calc-step-3" / "case.toml"
    text = case.read_text().replace('source = "script"\nfile = "recorded/script.jsonl"', 'source = "pass-through"')
    case.write_text(text)
    assert shown(capsys, "--calls") == (
        "calc-step-3: its replies are those of a real supplier, so what they will call is not known.\n"
    )
    assert "passed through to a real supplier" in shown(capsys)


def test_a_case_on_one_screen(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys)
    assert text.splitlines()[:10] == [
        "calc-step-3: no reply at step 3",
        "  state     open",
        "  symptom   the model answered step 2, then no reply at step 3 is recorded",
        "  event     sweep-9/trial-4",
        "  failed at step 3",
        "  cause     unknown (no citations)",
        "  replies   2 from a script, with 2 tool calls",
        "  task      1 line, a work tree of 1 file",
        "  simulated all: deadline-no-answer-v1, oom-killed-v1, oom-server-error-v1,",
        "            auth-rejected-v1, hidden-rejection-v1",
    ]
    assert "  owner     eval-harness-oncall\n" in text
    assert text.endswith("  next      read the server's own logs\n")
    assert not (project / ".regcase").exists()
    assert len(text.splitlines()) <= 24
    assert not (project / ".regcase").exists()


def test_what_is_recorded_of_the_end_is_shown_without_secrets(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository)
    assert main(["show", "inspect-ai-calcfix-calc-1-cemmrbx6"]) == 0
    text = capsys.readouterr().out
    assert "  error     AuthenticationError: Error code: 401" in text
    assert "  failed at step 3, error\n" in text
    assert "(raised by: supplier)" in text


def test_claims_and_quarantine_are_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = project / "cases" / "calc-step-3" / "case.toml"
    added = """
[quarantine]
owner = "oncall"
reason = "the tool image is gone"
kind = "broken"
since = 2026-01-02
expires = 2026-01-09
[[fix]]
number = 1
revision = "r1"
ledger_id = "l1"
rows = 0
at = 2026-01-02T03:04:05Z
by = "oncall"
"""
    case.write_text(case.read_text() + added)
    text = shown(capsys)
    assert "  set aside quarantined until 2026-01-09: the tool image is gone\n" in text
    assert "  fixes     1 claimed, the last one by oncall\n" in text


def test_a_transcript_that_is_not_what_was_recorded_is_refused(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    name = "mini-swe-agent-trial-234752a4"
    shutil.copytree(repository / "cases" / name, tmp_path / "cases" / name)
    with (tmp_path / "cases" / name / "recorded" / "transcript.jsonl").open("a") as transcript:
        transcript.write(json.dumps({"step": 9, "role": "assistant", "tool_calls": [call("touch /tmp/x")]}) + "\n")
    monkeypatch.chdir(tmp_path)
    assert main(["show", name, "--calls"]) == 2
    assert "is not what was recorded" in capsys.readouterr().err


def test_a_claimed_fix_is_shown_with_its_count_and_amendments_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    life = make_life_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    amend_case(life.project, life.path, why="w", by="mina", fields=["expected_recovery.max_retries=2"])
    claim_fix(life.project, life.path, by="mina")
    life.live("clean", started_at=datetime.now(UTC))
    assert main(["show", ID]) == 0
    text = capsys.readouterr().out
    assert "  state     verifying: 1 of 2 clean live runs of fix 1\n" in text
    assert f"  amended   1 time: regcase history {ID}\n" in text
    monkeypatch.setenv("REGCASE_LEDGER", "not-there.sqlite3")
    assert main(["show", ID]) == 0
    assert "  state     verifying by its file (there is no ledger here," in capsys.readouterr().out
