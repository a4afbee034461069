"""Attempts without a supplier: a command and where it runs."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pytest_regcase.agents.launch import Launch, Places
from pytest_regcase.agents.process import AgentProcess

Start = Callable[..., AgentProcess]


@pytest.fixture
def places(tmp_path: Path) -> Places:
    found = Places.below(tmp_path / "attempt")
    for folder in (found.work_dir, found.out_dir):
        folder.mkdir(parents=True)
    return found


@pytest.fixture
def start(places: Places, request: pytest.FixtureRequest) -> Start:
    """Start a Python program as the agent; it is ended after the test."""

    def started(program: str, *words: str, env: Mapping[str, str] | None = None) -> AgentProcess:
        launch = Launch(
            argv=(sys.executable, "-c", program, *words),
            env={"PATH": "/usr/bin:/bin"} if env is None else env,
            cwd=places.work_dir,
            placeholders={},
        )
        process = AgentProcess.start(launch, places)
        request.addfinalizer(process.close)
        return process

    return started
