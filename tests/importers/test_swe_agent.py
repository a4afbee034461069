"""SWE-agent trajectories: replies told from requeries and last words; whose submission it is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.source import find_trials, read_one, read_output
from pytest_regcase.records.trial import Trial

GOLD = Path(__file__).parent.parent / "gold" / "swe-agent"
Edit = Callable[[dict[str, Any]], None]


def gold(name: str) -> Path:
    return GOLD / f"{name}.traj"


@pytest.fixture
def edited(tmp_path: Path) -> Callable[..., Trial]:
    """Read a gold trajectory after an edit, whatever its outcome."""

    def read(name: str, edit: Edit) -> Trial:
        document = json.loads(gold(name).read_text())
        edit(document)
        (tmp_path / "x").write_text(json.dumps(document))
        return read_output(tmp_path / "x")

    return read


def test_half_a_patch_that_the_harness_submits_is_marked_as_its_own() -> None:
    trial = read_one(gold("autosubmitted"))
    assert (trial.termination, trial.error, trial.outcome) == ("limit", None, "undetermined")
    assert trial.submission is not None
    assert (trial.submission.by, trial.submission.mark) == ("harness", None)
    assert trial.partial_patch == trial.submission.patch
    assert trial.labels == ("swe-agent:exit_status:submitted (exit_cost)",)


def test_a_requery_opens_no_step_and_the_last_words_are_no_reply() -> None:
    trial = read_one(gold("autosubmitted"))
    assert [(line.step, line.role, line.error) for line in trial.steps] == [
        (0, "system", None),
        (0, "user", None),  # what the demonstration's environment said
        (0, "user", None),
        (1, "assistant", None),
        (1, "tool", None),
        (2, "assistant", "Your output could not be read."),
        (2, "assistant", None),
        (2, "tool", None),
    ]
    assert trial.failing_step == 2
    assert [call.name for line in trial.replies for call in line.tool_calls] == ["bash", "bash"]
    assert trial.steps[4].raw_output == "def add(a, b):\n    return a - b\n"
    assert any(each.startswith("1 reply of no use") for each in trial.missing)
    assert any(each.startswith("1 message of a demonstration") for each in trial.missing)


def test_a_dead_api_is_an_error_of_the_supplier_with_the_last_diff_kept() -> None:
    trial = read_one(gold("dead_api"))
    assert (trial.termination, trial.failing_step, trial.submission) == ("error", 3, None)
    assert trial.error is not None
    assert (trial.error.type, trial.error.raised_by) == ("exit_api", "supplier")
    assert [link.type for link in trial.error.chain] == ["APIConnectionError"]
    assert trial.partial_patch is not None
    assert trial.partial_patch.startswith("diff --git")


def test_no_exit_status_is_cut_off_where_a_reply_was_due() -> None:
    trial = read_one(gold("cut_off"))
    assert (trial.termination, trial.failing_step, trial.error) == ("cut-off", 3, None)
    assert (trial.harness, trial.revision, trial.model) == ("SWE-agent 1.1.0", "3f9c2e1", "test/model")
    assert (trial.task_id, trial.task_text) == ("calc__calc-1", "add() in calc.py subtracts")
    assert trial.conditions["model"] == {"per_instance_cost_limit": 3.0}


def test_a_clean_end_is_refused_until_a_person_says_that_it_failed() -> None:
    with pytest.raises(ImportRefused) as caught:
        read_one(gold("submitted"))
    assert caught.value.slug == "no-sign-of-failure"
    trial = read_one(gold("submitted"), failed_only=False)
    assert trial.submission is not None
    assert (trial.submission.by, trial.partial_patch, trial.failing_step) == ("agent", None, 2)


def test_a_flag_is_a_text_and_no_patch(edited: Callable[..., Trial]) -> None:
    trial = edited("submitted", lambda document: document["info"].update(submission="flag{d316}"))
    assert trial.submission is not None
    assert (trial.submission.text, trial.submission.patch) == ("flag{d316}", None)


@pytest.mark.parametrize(
    ("status", "termination", "raised_by"),
    [
        ("exit_total_execution_time", "limit", None),
        ("exit_context", "error", "unknown"),
        ("exit_format", "error", "unknown"),
        ("exit_environment_error", "error", "environment"),
        ("early_exit", "error", "environment"),
        ("submitted (exit_error)", "error", "unknown"),
        ("exit_forfeit", "finished", None),
        ("exit_command", "finished", None),
        ("skipped (exists)", "never-started", None),
        (None, "cut-off", None),
    ],
)
def test_each_exit_status_has_one_meaning(
    edited: Callable[..., Trial], status: str | None, termination: str, raised_by: str | None
) -> None:
    trial = edited("dead_api", lambda document: document["info"].update(exit_status=status))
    assert trial.termination == termination
    assert (trial.error.raised_by if trial.error is not None else None) == raised_by


def test_an_old_trajectory_has_its_state_as_text_and_no_query(edited: Callable[..., Trial]) -> None:
    def old(document: dict[str, Any]) -> None:
        del document["replay_config"]
        for step in document["trajectory"]:
            step["state"] = json.dumps(step["state"])
            del step["query"], step["execution_time"]

    trial = edited("dead_api", old)
    assert trial.partial_patch is not None
    assert (trial.task_id, trial.model, trial.failing_step) == (None, None, 3)
    assert trial.task_text == "ISSUE:\nadd() in calc.py subtracts"


def test_the_last_step_may_miss_in_the_history(edited: Callable[..., Trial]) -> None:
    trial = edited("submitted", lambda document: document["history"].pop())
    assert [line.text for line in trial.replies] == ["Look first.", "Done."]
    assert trial.replies[-1].tool_calls == ()


def test_a_trajectory_without_a_history_still_has_its_replies(edited: Callable[..., Trial]) -> None:
    trial = edited("cut_off", lambda document: document.update(history=[]))
    assert [line.role for line in trial.steps] == ["assistant", "user", "assistant"]
    assert len(trial.replies) == 2


def test_a_files_name_is_a_task_only_where_it_looks_like_one(tmp_path: Path) -> None:
    document = json.loads(gold("cut_off").read_text())
    del document["replay_config"]
    for name, task_id in (("pydicom__pydicom-1458", "pydicom__pydicom-1458"), ("my-run", None)):
        path = tmp_path / f"{name}.traj"
        path.write_text(json.dumps(document))
        assert read_output(path).task_id == task_id


def test_a_demonstration_is_refused_with_its_reason(tmp_path: Path) -> None:
    document = json.loads(gold("cut_off").read_text())
    (tmp_path / "x").write_text(json.dumps({"history": document["history"]}))
    with pytest.raises(ImportRefused) as caught:
        find_trials(tmp_path / "x")
    assert caught.value.slug == "no-trajectory"
