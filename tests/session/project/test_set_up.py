from pathlib import Path

import pytest

from pytest_regcase.config import AgentConfig, read_config
from pytest_regcase.errors import FileError, UnknownName, UsageRefused
from pytest_regcase.session.project.set_up import PRESETS, agent_entry, set_up
from pytest_regcase.toml_lines import parse_toml


def entry(harness: str, folder: Path) -> AgentConfig:
    text = agent_entry(harness, "default")
    return read_config(parse_toml(folder / "pyproject.toml", text.encode())).agents["default"]


@pytest.mark.parametrize("harness", list(PRESETS))
def test_every_entry_is_read_and_names_no_folder_of_this_machine(harness: str, tmp_path: Path) -> None:
    agent = entry(harness, tmp_path)
    assert (agent.command is None) == (harness == "python")
    assert str(tmp_path) not in agent_entry(harness, "default")


@pytest.mark.parametrize("harness", ["mini-swe-agent", "inspect"])
def test_a_healthy_run_ends_by_the_harness_own_submission(harness: str, tmp_path: Path) -> None:
    closing = entry(harness, tmp_path).closing_reply
    assert closing is not None
    assert closing.tool_calls[0].name in ("bash", "submit")


def test_an_unknown_harness_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="Known: mini-swe-agent, inspect, python"):
        set_up(tmp_path, harness="other")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("in_the_way", [".gitattributes", ".gitignore"])
def test_what_cannot_be_written_whole_is_not_begun(in_the_way: str, tmp_path: Path) -> None:
    (tmp_path / in_the_way).mkdir()
    with pytest.raises(FileError, match=f"{in_the_way}: is not a regular file"):
        set_up(tmp_path, harness="python")
    assert [each.name for each in tmp_path.iterdir()] == [in_the_way]
    (tmp_path / in_the_way).rmdir()
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / in_the_way).symlink_to("elsewhere")
    with pytest.raises(FileError, match="is a symbolic link"):
        set_up(tmp_path, harness="python")
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([in_the_way, "elsewhere"])


@pytest.mark.parametrize("text", ["tool = 3\n", "tool = { x = { a = 1 } }\n", "tool = []\n"])
def test_a_file_to_which_no_table_can_be_added_is_refused_in_words(text: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(
        UsageRefused, match=r"tool is written there in a form that no \[tool\.regcase\] can be added"
    ):
        set_up(tmp_path, harness="python")
    assert (tmp_path / "pyproject.toml").read_text() == text
