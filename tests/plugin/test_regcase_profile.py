"""`--regcase-profile`."""

import json

import pytest

from tests.plugin.gate_project import GateProject


def test_pull_request_is_the_default_and_the_decision_names_it(project: GateProject) -> None:
    project.add_case("trial-37", [])
    project.run("--regcase-report=a.json")
    project.run("--regcase-report=b.json", "--regcase-profile=nightly")
    named = [json.loads((project.root / each).read_text())["gate"]["profile"] for each in ("a.json", "b.json")]
    assert named == ["pull-request", "nightly"]


def test_release_is_refused_and_another_word_too(project: GateProject) -> None:
    project.add_case("trial-37", [])
    result = project.run("--regcase-profile=release")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--regcase-profile=release is not in this version*"])
    result = project.run("--regcase-profile=weekly")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*invalid choice: 'weekly'*pull-request*nightly*release*"])
    assert project.calls() == []
