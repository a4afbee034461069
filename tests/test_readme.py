"""The examples of the README and of docs are true: TOML loads, Python runs, tables list what there is."""

import re
import tomllib
from pathlib import Path

import pytest

from pytest_regcase.case_files import load_case, load_simulations, seal_case
from pytest_regcase.cli import COMMANDS
from pytest_regcase.config import RegcaseConfig, load_project
from pytest_regcase.importers.source import read_one

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
SIMULATIONS = PAGES["simulations.md"]
EVERYTHING = "\n".join((README, *PAGES.values()))


def blocks(kind: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{re.escape(kind)}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_there_is_one_command_to_run_and_one_to_test() -> None:
    (run,), (test,) = blocks("sh run"), blocks("sh test")
    assert run.splitlines()[-1].endswith("pytest --regcase")
    assert ".[test" in test


@pytest.mark.parametrize("code", blocks("python", EVERYTHING))
def test_python_blocks_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})


def test_every_page_is_linked_from_the_readme_and_every_link_leads_somewhere() -> None:
    assert set(re.findall(r"\]\(docs/([a-z]+\.md)\)", README)) == set(PAGES)
    for folder, text in ((ROOT, README), *((ROOT / "docs", page) for page in PAGES.values())):
        assert [each for each in re.findall(r"\]\(([^)#:]+)\)", text) if not (folder / each).is_file()] == []


def test_the_agent_entries_are_a_configuration(tmp_path: Path) -> None:
    texts = [each for each in blocks("toml", README + PAGES["agents.md"]) if "tool" in tomllib.loads(each)]
    (tmp_path / "pyproject.toml").write_text("\n".join(texts), encoding="utf-8")
    config = load_project(tmp_path).config
    assert (set(config.agents), config.supplier.reach) == ({"default", "boxed"}, "docker")


def test_the_trial_it_shows_is_read_whole(tmp_path: Path) -> None:
    (text,) = blocks("json lines")
    (tmp_path / "trial.jsonl").write_text(text, encoding="utf-8")
    trial = read_one(tmp_path)
    assert trial.missing == ()
    assert (trial.failing_step, trial.termination, trial.partial_patch) == (2, "error", "")


def test_the_smallest_case_needs_a_seal_and_nothing_else(tmp_path: Path) -> None:
    (text,) = [each for each in blocks("toml") if "observation" in tomllib.loads(each)]
    path = tmp_path / "sweep-0412-trial-37" / "case.toml"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    seal_case(path)
    assert load_case(path).case.cause_status == "unknown"


def test_the_table_of_simulations_is_the_catalogue(tmp_path: Path) -> None:
    row = re.compile(r"^\| `([a-z0-9-]+-v\d+)` \| ([a-z-]+) \| (.*) \|$", re.MULTILINE)
    known = {name: each.simulation.hypothesis for name, each in load_simulations(load_project(tmp_path)).items()}
    assert {name: hypothesis for name, hypothesis, _ in row.findall(SIMULATIONS)} == known
    assert set(row.findall(README)) < set(row.findall(SIMULATIONS))
    assert f"There are {len(known)} built-in simulations" in README


def test_every_command_and_option_it_names_exists() -> None:
    assert set(re.findall(r"^regcase ([a-z]+)", EVERYTHING, re.MULTILINE)) <= set(COMMANDS)
    plugin = (Path(__file__).parent.parent / "pytest_regcase" / "plugin.py").read_text(encoding="utf-8")
    options = set(re.findall(r'"(--regcase[a-z-]*)"', plugin))
    assert set(re.findall(r"^\| `(--regcase[a-z-]*)", README, re.MULTILINE)) == options


def test_every_key_of_the_rules_page_exists_and_is_the_default(tmp_path: Path) -> None:
    page = PAGES["rules.md"]
    (text,) = blocks("toml", page)
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    shown = load_project(tmp_path).config
    assert shown.model_copy(update={"limits": RegcaseConfig().limits}) == RegcaseConfig()
    keys = {
        each for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for each in re.findall(r"`(\w+)`", row)
    }
    assert keys <= set(RegcaseConfig.model_fields)
