"""Harbor trials: exception, reward and conversation kept apart; a job's trials told from one another."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.harbor import Harbor
from pytest_regcase.importers.source import find_trials, read_one, read_output
from pytest_regcase.records.trial import Trial, TrialRef

JOB = Path(__file__).parent.parent / "gold" / "harbor" / "job"
REJECTED, TIMED_OUT, PASSED, CUT_OFF, NO_RESULT = (f"fix-add__{letter * 7}" for letter in "abcde")
Edit = Callable[[dict[str, Any]], None]


@pytest.fixture
def edited(tmp_path: Path) -> Callable[..., Trial]:
    """Read one trial's folder after an edit of its result, whatever its outcome."""

    def read(name: str, edit: Edit) -> Trial:
        folder = tmp_path / "trial"
        shutil.copytree(JOB / name, folder)
        result = folder / "result.json"
        document = json.loads(result.read_text())
        edit(document)
        result.write_text(json.dumps(document))
        return read_output(folder)

    return read


def refs() -> dict[str, TrialRef]:
    return {ref.key: ref for ref in find_trials(JOB).refs}


def test_a_job_lists_each_of_its_trials_with_its_place_among_the_attempts() -> None:
    found = refs()
    assert list(found) == [REJECTED, TIMED_OUT, PASSED, CUT_OFF, NO_RESULT]
    assert [ref.attempt for ref in found.values()] == [1, 2, 3, 4, 5]
    assert [ref.failed for ref in found.values()] == [True, True, False, True, True]
    assert {ref.task_id for ref in found.values()} == {"fix-add"}


@pytest.mark.parametrize(
    "path", [JOB, JOB / REJECTED, JOB / REJECTED / "result.json"], ids=["job", "folder", "file"]
)
def test_a_trial_is_the_same_from_its_job_its_folder_and_its_file(path: Path) -> None:
    trial = read_one(path, key=REJECTED)
    assert trial.event_id == "6d1f4f0e-0000-4000-8000-000000000000"
    assert trial.event_id_from == "recorded"
    assert (trial.failing_step, trial.termination, trial.outcome) == (3, "error", "undetermined")
    assert trial.error is not None
    assert (trial.error.type, trial.error.raised_by) == ("AuthenticationError", "supplier")
    assert [line.role for line in trial.steps] == ["user", "assistant", "tool", "assistant", "tool"]
    assert list(trial.source_digests) == ["result.json", "agent/trajectory.json"]
    assert trial.harness == ("harbor 0.26.0" if path == JOB else "harbor")
    assert trial.model == "openai/test-model"


def test_exception_and_reward_may_both_be_there() -> None:
    trial = read_one(JOB, key=TIMED_OUT)
    assert (trial.outcome, trial.outcome_from, trial.termination) == ("failed", "log", "error")
    assert trial.error is not None
    assert (trial.error.type, trial.error.raised_by) == ("AgentTimeoutError", "harness")
    # The verifier ran after the deadline: the phase that failed is the one before.
    assert "harbor:phase:agent_execution" in trial.labels
    assert trial.failing_step == 3
    # What was graded was handed in, and no format can show here that it was not.
    assert "no_partial_submission" not in trial.can_show
    assert "keep_partial_patch" not in trial.can_show


def test_a_reward_that_harbor_calls_invalid_is_no_outcome(edited: Callable[..., Trial]) -> None:
    trial = edited(TIMED_OUT, lambda document: document.update(reward_valid=False))
    assert (trial.outcome, trial.outcome_from) == ("undetermined", None)
    assert {"harbor:reward:reward=0.0", "harbor:reward_valid=false"} <= set(trial.labels)
    # Graded all the same: the half-finished work went to the grader.
    assert "no_partial_submission" not in trial.can_show


@pytest.mark.parametrize(
    ("rewards", "outcome"),
    [
        ({"reward": 1}, "passed"),
        ({"speed": 0.0}, "failed"),
        ({"reward": 0.5}, "undetermined"),
        ({"a": 1, "b": 1}, "undetermined"),
        ({"reward": True}, "undetermined"),
        ({}, "undetermined"),
    ],
)
def test_one_reward_of_nothing_or_all_is_an_outcome(
    edited: Callable[..., Trial], rewards: dict[str, Any], outcome: str
) -> None:
    trial = edited(TIMED_OUT, lambda document: document["verifier_result"].update(rewards=rewards))
    assert trial.outcome == outcome


def test_neither_exception_nor_reward_is_cut_off_and_no_pass() -> None:
    trial = read_one(JOB, key=CUT_OFF)
    assert (trial.termination, trial.outcome, trial.error) == ("cut-off", "undetermined", None)
    assert trial.failing_step == 3
    assert any(each.startswith("how it ended") for each in trial.missing)


def test_a_trial_that_was_not_to_be_graded_is_no_cut_off_one(edited: Callable[..., Trial]) -> None:
    trial = edited(CUT_OFF, lambda document: document["config"]["verifier"].update(disable=True))
    assert (trial.termination, trial.outcome, trial.failing_step) == ("finished", "undetermined", 2)


def test_a_trial_without_a_result_is_read_from_its_configuration() -> None:
    for trial in (read_one(JOB, key=NO_RESULT), read_one(JOB / NO_RESULT)):
        assert (trial.termination, trial.outcome) == ("cut-off", "undetermined")
        assert (trial.task_id, trial.failing_step, trial.steps) == ("fix-add", None, ())
        assert list(trial.source_digests) == ["config.json"]
        assert "result: the trial was ended before Harbor wrote one" in trial.missing


def test_a_passed_trial_is_refused() -> None:
    with pytest.raises(ImportRefused) as caught:
        read_one(JOB, key=PASSED)
    assert caught.value.slug == "passed"
    assert read_one(JOB, key=PASSED, failed_only=False).failing_step == 3


def test_a_cancelled_trial_is_no_error(edited: Callable[..., Trial]) -> None:
    trial = edited(REJECTED, lambda document: document["exception_info"].update(exception_type="CancelledError"))
    assert trial.termination == "cancelled"


def test_times_without_a_zone_name_no_point_in_time(edited: Callable[..., Trial]) -> None:
    def naive(document: dict[str, Any]) -> None:
        for holder in (document, *(document[name] for name in ("agent_execution", "verifier", "exception_info"))):
            for name, value in holder.items():
                if name.endswith("_at"):
                    holder[name] = value.removesuffix("Z")

    trial = edited(TIMED_OUT, naive)
    assert (trial.started_at, trial.ended_at) == (None, None)
    assert trial.conditions["started_at_without_zone"] == "2026-05-04T10:00:30"
    assert "harbor:phase:agent_execution" in trial.labels


@pytest.mark.parametrize(("phase", "raised_by"), [("environment_setup", "environment"), ("verifier", "grader")])
def test_who_raised_it_follows_from_the_phase(edited: Callable[..., Trial], phase: str, raised_by: str) -> None:
    def fail_in(document: dict[str, Any]) -> None:
        if phase == "environment_setup":
            for name in ("agent_setup", "agent_execution", "verifier"):
                document[name] = None
        document["exception_info"].update(exception_type="Whatever", occurred_at="2026-05-04T10:00:52Z")

    trial = edited(TIMED_OUT, fail_in)
    assert trial.error is not None
    assert (trial.error.type, trial.error.raised_by) == ("Whatever", raised_by)
    assert trial.failing_step == 2  # no reply was due


def test_a_task_of_several_steps_shows_the_run_that_failed(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    shutil.copytree(JOB / CUT_OFF, folder)
    for name in ("first", "second"):
        (folder / "steps" / name).mkdir(parents=True)
    shutil.move(folder / "agent", folder / "steps" / "second" / "agent")
    result = folder / "result.json"
    document = json.loads(result.read_text())
    rejected = json.loads((JOB / REJECTED / "result.json").read_text())
    document["step_results"] = [
        {"step_name": "first", "verifier_result": {"rewards": {"reward": 1.0}}},
        {
            "step_name": "second",
            "exception_info": rejected["exception_info"],
            "agent_execution": rejected["agent_execution"],
        },
    ]
    result.write_text(json.dumps(document))
    trial = read_one(folder)
    assert trial.error is not None
    assert (trial.error.type, trial.termination, trial.failing_step) == ("AuthenticationError", "error", 3)
    assert list(trial.source_digests) == ["result.json", "steps/second/agent/trajectory.json"]
    assert trial.missing[0].startswith("the agent runs of 1 other task steps")


@pytest.mark.parametrize("name", ["..", "../..", "/etc", "x" * 300, "a/b", "\0"])
def test_a_step_name_never_leads_out_of_the_folder(edited: Callable[..., Trial], name: str) -> None:
    trial = edited(CUT_OFF, lambda document: document.update(step_results=[{"step_name": name}]))
    assert trial.steps == ()


def test_a_damaged_trajectory_does_not_lose_the_trial(tmp_path: Path) -> None:
    shutil.copytree(JOB / REJECTED, tmp_path / "trial")
    (tmp_path / "trial" / "agent" / "trajectory.json").write_text('{"schema_version": "ATIF-v1.8", "st')
    trial = read_one(tmp_path / "trial")
    assert (trial.termination, trial.failing_step, trial.steps) == ("error", None, ())
    assert any(each.startswith("conversation: it is no valid JSON") for each in trial.missing)


def test_a_damaged_trial_does_not_lose_its_job(tmp_path: Path) -> None:
    shutil.copytree(JOB, tmp_path / "job")
    (tmp_path / "job" / TIMED_OUT / "result.json").write_text('{"task_name": ')
    found = {ref.key: ref for ref in find_trials(tmp_path / "job").refs}
    assert (found[TIMED_OUT].refusal, found[TIMED_OUT].failed) == ("corrupt", False)
    assert found[REJECTED].failed
    with pytest.raises(ImportRefused) as caught:
        Harbor().read(tmp_path / "job", found[TIMED_OUT])
    assert caught.value.slug == "corrupt"


def test_a_key_that_is_not_listed_is_refused() -> None:
    with pytest.raises(ImportRefused) as caught:
        Harbor().read(JOB, TrialRef(key=f"../job/{REJECTED}"))
    assert caught.value.slug == "no-such-trial"


def test_conditions_never_hold_the_agents_environment(edited: Callable[..., Trial]) -> None:
    trial = edited(REJECTED, lambda document: document["config"]["agent"].update(env={"KEY": "secret-value"}))
    assert trial.conditions["agent"]["kwargs"] == {"llm_call_kwargs": {"timeout": 3}}
    assert "secret-value" not in trial.model_dump_json()


def test_a_job_says_under_what_its_trials_ran() -> None:
    assert read_one(JOB, key=REJECTED).conditions["job"] == {"n_concurrent_trials": 4, "max_retries": 0}


def test_a_long_message_keeps_its_first_line(edited: Callable[..., Trial]) -> None:
    long = "Command failed\n" + "x" * 5000
    trial = edited(REJECTED, lambda document: document["exception_info"].update(exception_message=long))
    assert trial.error is not None
    assert trial.error.message == "Command failed"


def test_the_task_is_taken_out_of_what_terminus_puts_around_it(tmp_path: Path) -> None:
    shutil.copytree(JOB / REJECTED, tmp_path / "trial")
    trajectory = tmp_path / "trial" / "agent" / "trajectory.json"
    document = json.loads(trajectory.read_text())
    task = "Fix add().\n\nBoth of it."
    around = f"Be an assistant.\n\nTask Description:\n{task}\n\n\nCurrent terminal state:\n$"
    document["steps"][0]["message"] = around
    trajectory.write_text(json.dumps(document))
    trial = read_one(tmp_path / "trial")
    assert trial.task_text == task
    assert trial.steps[0].text == around
