"""The example of the docs, for real: the demo agent inside pytest, its supplier, the judge, and the hooks."""

import re
from pathlib import Path

import pytest

from tests.plugin.real_project import RealProject
from tests.test_readme import PAGES

SIMULATIONS = ["deadline-no-answer-v1", "auth-rejected-v1"]


def _block(heading: str) -> str:
    _, _, rest = PAGES["agents.md"].partition(f"## {heading}\n")
    found = re.search(r"^```python\n(.*?)^```$", rest, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_of_the_docs_passes_with_its_hooks(pytester: pytest.Pytester) -> None:
    project = RealProject(pytester)
    (project.root / "pyproject.toml").write_text("[tool.regcase]\n")
    project.add_real_case("sweep-0412-trial-37", SIMULATIONS)
    pytester.makepyfile(test_agent=_block("Cases as test functions"))
    pytester.makeconftest(_block("Hooks"))
    result = project.run("-W", "error")
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.OK
    rows = project.rows()
    assert [(row.agent, row.scenario, row.verdict) for row in rows] == [
        ("test_agent.py::test_my_agent", "control", "finished"),
        ("test_agent.py::test_my_agent", "deadline-no-answer-v1", "recovered"),
        ("test_agent.py::test_my_agent", "auth-rejected-v1", "recovered"),
    ]
    assert all(each.status == "kept" for row in rows for each in row.findings), rows
    assert (project.root / "attempts.txt").read_text().splitlines() == [
        f"sweep-0412-trial-37 {row.scenario} {row.verdict}" for row in rows
    ]
    folder = Path(rows[1].folder or "")
    assert (project.root / folder / "wire.jsonl").is_file()
