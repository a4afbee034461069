from pathlib import Path

import pytest

from pytest_regcase.config import AgentConfig, read_config
from pytest_regcase.errors import UnknownName
from pytest_regcase.session.set_up import PRESETS, agent_entry, set_up
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
