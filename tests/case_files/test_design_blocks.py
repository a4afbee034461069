"""Every TOML block of the design page is what the product reads, where the page is there."""

import re
from pathlib import Path

import pytest

from pytest_regcase.case_files import load_case, load_simulation, seal_case
from pytest_regcase.config import load_project
from pytest_regcase.records.canonical import digest

TRANSCRIPT = '{"role": "assistant", "text": "x"}\n'


@pytest.fixture(scope="module")
def blocks(repository: Path) -> list[str]:
    """The TOML blocks of the page, in order."""
    page = repository.parent / "shared" / "design" / "DESIGN.md"
    if not page.is_file():
        pytest.skip("the design page (../shared/design/DESIGN.md) is not here")
    return re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def test_the_kinds_of_blocks_are_those_that_are_tested(blocks: list[str]) -> None:
    kinds = ["observation" if "[observation]" in each else each.split("[", 1)[1].split("]")[0] for each in blocks]
    assert [kind if "tool" in kind or kind == "observation" else "fault" for kind in kinds] == [
        "observation",
        "fault",
        "tool.regcase.agents.default",
    ]


def test_the_case(blocks: list[str], tmp_path: Path) -> None:
    text = blocks[0].replace('jsonl" = "sha256:..."', f'jsonl" = "{digest(TRANSCRIPT.encode())}"')
    path = tmp_path / "sweep-0412-trial-37" / "case.toml"
    (path.parent / "recorded" / "work_tree").mkdir(parents=True)
    (path.parent / "recorded" / "task.txt").write_text("do it")
    (path.parent / "recorded" / "transcript.jsonl").write_text(TRANSCRIPT)
    (path.parent / "recorded" / "after.jsonl").write_text(TRANSCRIPT)
    path.write_text(text)
    seal_case(path)
    loaded = load_case(path)
    assert loaded.case.simulation_ids == ("deadline-no-answer-v1",)
    assert loaded.case.observation.redactions == {"api_key": 2}
    assert loaded.case.expected_recovery.under("auth").max_retries == 0


def test_the_simulation(blocks: list[str], tmp_path: Path) -> None:
    path = tmp_path / "deadline-no-answer-v1.toml"
    path.write_text(blocks[1])
    assert load_simulation(path).simulation.fault.kind == "no_answer"


def test_the_agent(blocks: list[str], tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(blocks[2])
    agent = load_project(tmp_path).config.agents["default"]
    assert agent.closing_reply is not None
    assert agent.revision_paths == ("src/my_agent", "prompts")
