"""The doctor over agents that meet the supplier in different ways, or never."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_regcase.config import Project, load_project
from pytest_regcase.errors import UnknownName
from pytest_regcase.session.doctor import diagnose

PYPROJECT = """
[tool.regcase.agents.default]
command = {command}
output = "{{out_dir}}"
deadline_seconds = {deadline}
cap_seconds = 60
revision_paths = ["pyproject.toml"]
env = {{ OPENAI_BASE_URL = "{{openai_base_url}}", OPENAI_API_KEY = "{{api_key}}" }}
"""
DEMO = ("python", "-m", "pytest_regcase.demo.agent")
PLACES = ("--task", "{task_file}", "--out", "{out_dir}")


def project_of(root: Path, command: Sequence[str], deadline: float = 20) -> Project:
    (root / "pyproject.toml").write_text(PYPROJECT.format(command=json.dumps(command), deadline=deadline))
    return load_project(root)


def test_says_how_the_client_waits_and_retries(tmp_path: Path) -> None:
    found = diagnose(project_of(tmp_path, (*DEMO, "--timeout", "0.5", *PLACES)), "default")
    assert found.reached
    assert (found.wire, found.streaming) == ("openai-chat", False)
    assert found.answered.verdict == "finished"
    assert found.client_timeout_seconds == pytest.approx(0.5, abs=0.4)
    assert found.retries == 2
    assert found.stopped_seconds is not None
    assert found.proposed_stop_within_seconds is not None
    assert found.proposed_stop_within_seconds % 5 == 0
    assert found.proposed_stop_within_seconds >= found.stopped_seconds
    assert {"log_failure", "max_retries", "stop_within_seconds", "mark_failure"} <= set(found.shows)
    assert found.folder.is_relative_to(tmp_path)


def test_a_client_without_a_time_out_is_told_and_nothing_is_proposed(tmp_path: Path) -> None:
    command = ("python", "-m", "pytest_regcase.demo.behaviours", "no-client-time-out", *PLACES)
    found = diagnose(project_of(tmp_path, command, deadline=2), "default")
    assert found.reached
    assert found.stopped_seconds is None
    assert found.client_timeout_seconds is None
    assert found.proposed_stop_within_seconds is None
    assert found.silent.exit.ended_by == "deadline"


def test_an_agent_that_never_comes_is_not_reached(tmp_path: Path) -> None:
    found = diagnose(project_of(tmp_path, (sys.executable, "-c", "raise SystemExit(3)")), "default")
    assert not found.reached
    assert found.wire is None
    assert found.silent.exit.code == 3


def test_an_unknown_agent_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="'other'"):
        diagnose(project_of(tmp_path, ("true",)), "other")


SENDS = """
import sys, urllib.error, urllib.request
for path in sys.argv[2:]:
    request = urllib.request.Request(sys.argv[1] + path, data=b'{"model": "m", "input": "x"}')
    try:
        urllib.request.urlopen(request, timeout=5)
    except urllib.error.HTTPError:
        pass
"""


def test_a_wire_that_we_do_not_speak_is_not_taken_for_one_that_we_do(tmp_path: Path) -> None:
    command = (sys.executable, "-c", SENDS, "{openai_base_url}", "/responses", "/models", "/responses")
    found = diagnose(project_of(tmp_path, command), "default")
    assert not found.reached
    assert found.other_requests == ("/v1/responses", "/v1/models")
    assert (found.wire, found.streaming, found.startup_seconds, found.retries) == (None, None, None, None)
    assert (found.stopped_seconds, found.proposed_stop_within_seconds) == (None, None)
    assert found.shows == ()
