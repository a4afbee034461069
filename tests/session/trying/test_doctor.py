"""The doctor over agents that meet the supplier in different ways, or never."""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_regcase.config import Project, load_project
from pytest_regcase.errors import UnknownName, UsageRefused
from pytest_regcase.session.trying.doctor import diagnose

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
    assert found.client_timeout_seconds is not None
    # Less where we read the request late, more where we see late that the client let go.
    assert 0 < found.client_timeout_seconds < 15
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
    command = (sys.executable, "-c", SENDS, "{openai_base_url}", "/completions", "/models", "/completions")
    found = diagnose(project_of(tmp_path, command), "default")
    assert not found.reached
    assert found.other_requests == ("/v1/completions", "/v1/models")
    assert (found.wire, found.streaming, found.startup_seconds, found.retries) == (None, None, None, None)
    assert (found.stopped_seconds, found.proposed_stop_within_seconds) == (None, None)
    assert found.shows == ()


def compressed(root: Path, library: Path, command: Sequence[str]) -> Project:
    """A project whose agent lives two hundred times as fast from the fault on."""
    project_of(root, command)
    path = root / "pyproject.toml"
    budgets = "deadline_seconds = 4000\ncap_seconds = 60000\ntime_scale = 200\n"
    path.write_text(path.read_text().replace("deadline_seconds = 20\ncap_seconds = 60\n", budgets))
    (root / ".regcase" / "clock").mkdir(parents=True)
    shutil.copy(library, root / ".regcase" / "clock")
    return load_project(root)


def test_in_compressed_time_it_measures_the_agents_time(tmp_path: Path, clock_library: Path) -> None:
    found = diagnose(compressed(tmp_path, clock_library, (*DEMO, "--timeout", "60", *PLACES)), "default")
    assert (found.reached, found.time_scale, found.clock_missed) == (True, 200, None)
    assert found.retries == 2
    assert found.client_timeout_seconds is not None
    # Not quite 60: what passes until we have read the request counts for the client, and not for us.
    assert found.client_timeout_seconds > 6
    assert found.stopped_seconds is not None
    assert found.stopped_seconds > found.silent.duration_seconds
    assert found.proposed_stop_within_seconds is not None
    assert found.proposed_stop_within_seconds > found.stopped_seconds


def test_a_clock_that_does_not_reach_the_agent_is_found(tmp_path: Path, clock_library: Path) -> None:
    command = ("env", "-u", "LD_PRELOAD", *DEMO, "--timeout", "60", *PLACES)
    found = diagnose(compressed(tmp_path, clock_library, command), "default")
    assert found.reached
    assert found.clock_missed is not None
    assert "did not load it" in found.clock_missed
    assert found.silent.reason == "machinery-broke"
    assert found.proposed_stop_within_seconds is None


def test_a_clock_that_cannot_be_had_is_refused_before_anything_runs(
    tmp_path: Path, clock_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = compressed(tmp_path, clock_library, ("true",))
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UsageRefused, match="that works on Linux, and this is darwin"):
        diagnose(project, "default")
