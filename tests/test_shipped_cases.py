"""This repository's own cases: sealed, their cause unknown, every hypothesis with a simulation that exists."""

import json
from pathlib import Path

import pytest

from pytest_regcase.case_files import find_case_files, json_schema, load_case, load_simulations
from pytest_regcase.config import load_project

ROOT = Path(__file__).parent.parent
CASES = find_case_files([ROOT / "cases"])


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_each_is_sealed_and_says_nothing_of_a_cause(path: Path) -> None:
    loaded = load_case(path)
    assert loaded.case.cause_status == loaded.case.computed_cause_status == "unknown"
    assert loaded.id == path.parent.name
    assert set(loaded.case.simulation_ids) <= set(load_simulations(load_project(ROOT)))
    assert loaded.reply_lines()
    assert loaded.work_tree() is not None


def test_trial_37_is_there_and_four_that_regcase_new_made() -> None:
    assert len(CASES) == 5
    by_hand = load_case(ROOT / "cases" / "sweep-0412-trial-37" / "case.toml")
    assert by_hand.case.simulation_ids == ("deadline-no-answer-v1", "oom-killed-v1")
    assert sum(line.is_reply for line in by_hand.reply_lines()) == 5
    for path in CASES:
        if path.parent.name != by_hand.id:
            assert [each.id for each in load_case(path).case.hypotheses] == [
                "deadline",
                "resource-exhaustion",
                "auth",
                "hidden",
            ]


def test_the_schema_that_case_files_name_is_the_present_one() -> None:
    written = json.loads((ROOT / "regcase-case.schema.json").read_text(encoding="utf-8"))
    assert written == json_schema("case")
