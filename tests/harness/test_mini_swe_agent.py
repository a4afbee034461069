"""The real mini-swe-agent command line under two simulations: what it does is known from recorded runs."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.mini_project import make_mini_project


@pytest.fixture
def mini_project(tmp_path: Path) -> Path:
    """A case with two recorded replies, its fix half done at the fault, and mini-swe-agent as the agent."""
    make_mini_project(
        tmp_path,
        ["auth-rejected-v1", "deadline-no-answer-v1"],
        settings="deadline_seconds = 90\ncap_seconds = 200",
        arguments=["-c", "model.model_kwargs.timeout=3"],
        env='MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT = "2"',
    )
    return tmp_path


@pytest.mark.harness
@pytest.mark.slow
def test_the_command_line_with_two_tries(mini_project: Path, harness_python: str) -> None:
    regcase = str(Path(harness_python).parent / "regcase")
    subprocess.run([regcase, "seal", "calc-step-3"], cwd=mini_project, check=True, capture_output=True)
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "--regcase", "-v", "-p", "no:randomly", "-p", "no:rerunfailures"],
        cwd=mini_project,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    records = _records(mini_project)
    assert records["control"]["verdict"] == "finished", result.stdout

    rejected = records["auth-rejected-v1"]
    assert rejected["verdict"] == "recovered", rejected
    assert rejected["wire"]["delivered"] is True
    assert rejected["wire"]["retries"] == 0

    silent = records["deadline-no-answer-v1"]
    assert silent["wire"]["delivered"] is True
    assert silent["verdict"] == "not-recovered", silent
    assert _broken(silent) == ["max_retries"], silent["findings"]
    # Two tries of the harness, three requests of the client library each.
    assert silent["wire"]["retries"] == 5
    assert result.returncode == 1


def _broken(record: dict[str, Any]) -> list[str]:
    return [each["expectation"] for each in record["findings"] if each["status"] == "broken"]


def _records(project: Path) -> dict[str, dict[str, Any]]:
    from pytest_regcase.config import load_project
    from pytest_regcase.ledger.store import Ledger

    ledger = Ledger.open(load_project(project).ledger_url())
    try:
        return {row.record.scenario: row.record.to_plain() for row in ledger.rows()}
    finally:
        ledger.close()
