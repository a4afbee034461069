"""What cannot be recorded is refused before anything is written."""

from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.capture import Task, TaskStep, TrialConfig, check_task_id, record_trial, run_trial
from pytest_regcase.errors import FileError, UsageRefused


@pytest.mark.parametrize("task_id", ["sympy__sympy-20590", "a", "Task 7", "größe", "x" * 200, "a.b"])
def test_task_ids(task_id: str) -> None:
    assert check_task_id(task_id) == task_id


@pytest.mark.parametrize(
    ("task_id", "says"),
    [
        ("", "empty"),
        ("  ", "empty"),
        (None, "NoneType"),
        (7, "int"),
        (" a", "space"),
        ("a/b", "slash"),
        ("..", "dot"),
        ("-rf", "hyphen"),
        ("a\nb", "printable"),
        ("e\u0301", "spell"),
        ("x" * 201, "longer"),
    ],
)
def test_what_is_no_task_id_propagates_and_nothing_is_written(tmp_path: Path, task_id: Any, says: str) -> None:
    with pytest.raises(UsageRefused, match=says) as caught:
        record_trial(tmp_path / "trial", task_id=task_id)
    assert caught.value.slug == "invalid-task-id"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"modell": "m"}, "modell"),
        ({"attempt": 0}, "attempt"),
        ({"attempt": "1"}, "attempt"),
        ({"conditions": [1]}, "conditions"),
        ("model=m", "it is str"),
    ],
)
def test_a_bad_config_propagates_and_nothing_is_written(tmp_path: Path, config: Any, says: str) -> None:
    with pytest.raises(UsageRefused, match=says) as caught:
        record_trial(tmp_path / "trial", task_id="t", config=config)
    assert caught.value.slug == "invalid-config"
    with pytest.raises(UsageRefused, match=says):
        run_trial(tmp_path / "trial", task=Task(id="t"), agent=lambda _: None, config=config)
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_cannot_be_run_propagates_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageRefused, match="no type of step"):
        run_trial(
            tmp_path / "trial", task=Task(id="t", step=(TaskStep(id="a", type="fly"),)), agent=lambda _: None
        )
    with pytest.raises(FileError, match="no such file"):
        run_trial(
            tmp_path / "trial", task=Task(id="t", text_file="gone.txt", folder=tmp_path), agent=lambda _: None
        )
    with pytest.raises(UsageRefused, match="work_dir"):
        run_trial(
            tmp_path / "trial", task=Task(id="t"), agent=lambda _: None, config=TrialConfig(work_dir=tmp_path)
        )
    assert list(tmp_path.iterdir()) == []


def test_a_work_dir_may_be_a_text(tmp_path: Path) -> None:
    with record_trial(tmp_path / "trial", task_id="t", config={"work_dir": str(tmp_path)}) as trial:
        assert trial.work_dir == tmp_path
