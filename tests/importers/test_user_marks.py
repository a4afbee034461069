"""Task ids, attempts and outcomes that users write into free metadata: only what is unmistakable counts."""

from typing import Any

import pytest

from pytest_regcase.importers.user_marks import attempt_in, outcome_in, task_in


@pytest.mark.parametrize(
    ("metadata", "task", "attempt"),
    [
        ({"task_id": "calc-001", "epoch": 2}, "calc-001", 2),
        ({"instance_id": "a__b-1", "attempt": "3"}, "a__b-1", 3),
        ({"task_id": 7, "trial": 0}, "7", 0),
        ({"task_id": "", "attempt": True}, None, None),
        ({"task": "calc", "epoch": "two", "trial": -1}, None, None),
        ({"epoch": "9" * 5000}, None, None),
        ({}, None, None),
    ],
)
def test_task_and_attempt(metadata: dict[str, Any], task: str | None, attempt: int | None) -> None:
    assert (task_in(metadata), attempt_in(metadata)) == (task, attempt)


@pytest.mark.parametrize(
    ("scores", "outcome"),
    [
        ([("Resolved", True)], "passed"),
        ([("resolved", 0.0), ("passed", False), ("helpfulness", 1)], "failed"),
        ([("resolved", 1), ("passed", 0)], "undetermined"),
        ([("resolved", 0.5), ("correct", "yes"), ("success", None), ("pass", [])], "undetermined"),
        ([], "undetermined"),
    ],
)
def test_outcome(scores: list[tuple[str, Any]], outcome: str) -> None:
    assert outcome_in(scores) == outcome
