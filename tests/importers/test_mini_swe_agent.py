"""mini-swe-agent trajectories: three facts kept apart, nothing promoted, nothing filled in."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import ImportRefused
from pytest_regcase.importers.mini_swe_agent import MiniSweAgent
from pytest_regcase.importers.protocol import Peek
from pytest_regcase.importers.reading import HEAD_BYTES, read_head
from pytest_regcase.importers.source import read_one, read_output
from pytest_regcase.records.trial import Trial

GOLD = Path(__file__).parent.parent / "gold" / "mini-swe-agent"
Edit = Callable[[dict[str, Any]], None]


def gold(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLD / f"{name}.traj.json").read_text())
    return found


@pytest.fixture
def edited(tmp_path: Path) -> Callable[..., Trial]:
    """Read a gold trajectory after an edit, whatever its outcome."""

    def read(name: str, edit: Edit) -> Trial:
        document = gold(name)
        edit(document)
        path = tmp_path / "x.json"
        path.write_text(json.dumps(document))
        return read_output(path)

    return read


def v1(**info: Any) -> dict[str, Any]:
    """A trajectory as 1.17.0 wrote it: observations as user messages, no exit message."""
    return {
        "info": {"model_stats": {"instance_cost": 2.0, "api_calls": 2}, "mini_version": "1.17.0", **info},
        "messages": [
            {"role": "system", "content": "You can do anything.", "timestamp": 1775986260.0},
            {"role": "user", "content": "Your task: x. Reply with one command.", "timestamp": 1775986261.0},
            {"role": "assistant", "content": "```bash\ncat calc.py\n```", "timestamp": 1775986262.0},
            {"role": "user", "content": "Observation: def add", "timestamp": 1775986263.0},
        ],
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": "calc-001",
    }  # fmt: skip


def write(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_a_failed_call_is_the_step_after_the_last_reply() -> None:
    trial = read_one(GOLD / "call_failed.traj.json")
    assert (trial.failing_step, len(trial.replies), trial.termination) == (3, 2, "error")
    assert (trial.outcome, trial.outcome_from, trial.submission) == ("undetermined", None, None)
    assert trial.error is not None
    assert (trial.error.type, trial.error.message, trial.error.raised_by) == (
        "TimeoutError",
        "no answer within 3 s",
        "supplier",
    )
    assert trial.labels == ("mini:exit_status:TimeoutError",)
    assert trial.harness == "mini-swe-agent 2.4.6"
    assert (trial.run_id, trial.task_id, trial.attempt, trial.revision) == (None, None, None, None)
    assert (trial.event_id_from, trial.event_id[:7]) == ("digest", "sha256:")
    assert trial.task_text == "add() in calc.py subtracts"


def test_replies_results_and_raw_outputs_have_their_steps() -> None:
    trial = read_one(GOLD / "call_failed.traj.json")
    assert [(line.step, line.role) for line in trial.steps] == [
        (0, "system"), (0, "user"), (1, "assistant"), (1, "tool"), (2, "assistant"), (2, "tool"),
    ]  # fmt: skip
    reply, result = trial.steps[2], trial.steps[3]
    assert [(call.id, call.name, json.loads(call.arguments)) for call in reply.tool_calls] == [
        ("call_1", "bash", {"command": "cat calc.py"})
    ]
    assert result.tool_call_id == "call_1"
    assert result.raw_output == "def add(a, b):\n    return a - b\n"
    assert result.text != result.raw_output
    assert result.origin == "messages[3]"
    assert reply.at is not None


def test_an_interrupted_file_is_cut_off_and_not_without_failure() -> None:
    trial = read_one(GOLD / "cut_off.traj.json")
    assert (trial.termination, trial.error, trial.failing_step) == ("cut-off", None, 3)
    assert trial.labels == ()


def test_interrupted_while_a_command_runs_the_step_is_the_reply_before(edited: Callable[..., Trial]) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["messages"].pop()

    trial = edited("cut_off", edit)
    assert (trial.termination, trial.failing_step, len(trial.replies)) == ("cut-off", 2, 2)


@pytest.mark.parametrize("status", ["LimitsExceeded", "TimeExceeded"])
def test_a_limit_is_a_limit(edited: Callable[..., Trial], status: str) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["info"]["exit_status"] = status

    trial = edited("limit", edit)
    assert (trial.termination, trial.error, trial.failing_step, trial.submission) == ("limit", None, 2, None)
    assert trial.labels == (f"mini:exit_status:{status}",)


def test_a_submitted_trial_is_refused_for_want_of_a_verdict() -> None:
    with pytest.raises(ImportRefused) as caught:
        read_one(GOLD / "submitted.traj.json")
    assert caught.value.slug == "no-sign-of-failure"
    trial = read_one(GOLD / "submitted.traj.json", failed_only=False)
    assert (trial.termination, trial.outcome) == ("finished", "undetermined")
    assert trial.submission is not None
    assert trial.submission.patch is not None
    assert "+    return a + b" in trial.submission.patch
    assert trial.submission.by == "agent"


def test_only_a_submitted_run_has_a_submission(edited: Callable[..., Trial]) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["info"] |= {"exit_status": "LimitsExceeded", "submission": "diff --git a/x b/x\n"}

    assert edited("submitted", edit).submission is None


@pytest.mark.parametrize(
    ("instance_id", "submission", "patch", "text"),
    [
        (None, "", None, ""),
        ("x-1", "", "", None),
        (None, "the answer", None, "the answer"),
        (None, None, None, None),
    ],
)
def test_an_empty_submission_is_not_an_absent_one(
    edited: Callable[..., Trial],
    instance_id: str | None,
    submission: str | None,
    patch: str | None,
    text: str | None,
) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["info"]["submission"] = submission
        if instance_id:
            document["instance_id"] = instance_id

    found = edited("submitted", edit).submission
    assert (found.patch if found else None, found.text if found else None) == (patch, text)
    assert (found is None) == (submission is None)


def test_v1_exception_text_in_the_place_of_the_patch_is_no_patch(tmp_path: Path) -> None:
    document = v1(exit_status="StallError", submission="Request timed out", traceback="not a traceback")
    trial = read_one(write(tmp_path / "x.json", document))
    assert trial.submission is None
    assert trial.error is not None
    assert (trial.error.type, trial.error.message, trial.error.raised_by) == (
        "StallError",
        "Request timed out",
        "unknown",
    )
    assert (trial.task_id, trial.failing_step, trial.model_requests) == ("calc-001", 2, 2)
    assert [line.step for line in trial.steps] == [0, 0, 1, 1]


def test_who_raised_it_is_said_only_where_the_last_frames_show_it(edited: Callable[..., Trial]) -> None:
    def raised_by(traceback: str) -> str:
        def edit(document: dict[str, Any]) -> None:
            document["messages"][-1]["extra"]["traceback"] = traceback

        error = edited("call_failed", edit).error
        assert error is not None
        return str(error.raised_by)

    head = "Traceback (most recent call last):\n"
    query = (
        '  File "/x/minisweagent/agents/default.py", line 9, in query\n    x = self.model.query(self.messages)\n'
    )
    execute = (
        '  File "/x/minisweagent/agents/default.py", line 9, in act\n    [self.env.execute(each) for each in x]\n'
    )
    client = '  File "/x/litellm/main.py", line 1, in completion\n    raise error\n'
    cost = '  File "/x/minisweagent/models/litellm_model.py", line 1, in _cost\n    raise error\n'
    docker = '  File "/x/subprocess.py", line 1, in run\n    raise error\n'
    assert raised_by(head + query + client + "Timeout: x") == "supplier"
    assert raised_by(head + query + cost + "RuntimeError: x") == "harness"
    assert raised_by(head + execute + docker + "OSError: x") == "environment"
    assert raised_by(head + client + "Timeout: x") == "unknown"
    assert raised_by("") == "unknown"


def test_format_errors_are_no_replies_and_are_kept(edited: Callable[..., Trial]) -> None:
    refused = {
        "role": "user",
        "content": "No tool call found.",
        "extra": {
            "interrupt_type": "FormatError",
            "response": {"choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}]},
        },
    }

    def edit(document: dict[str, Any]) -> None:
        end = {"exit_status": "RepeatedFormatError", "submission": ""}
        document["messages"][-1:] = [refused, refused, {"role": "exit", "content": "x", "extra": end}]
        document["info"] |= end

    trial = edited("call_failed", edit)
    assert trial.error is not None
    assert (trial.error.type, trial.error.message, trial.error.raised_by) == (
        "RepeatedFormatError",
        None,
        "unknown",
    )
    assert (trial.termination, trial.failing_step, len(trial.replies)) == ("error", 3, 2)
    assert [line.error for line in trial.steps[-4:]] == ["FormatError", None, "FormatError", None]
    assert trial.steps[-4].text == ""


def test_a_persons_interruption_is_cancelled(edited: Callable[..., Trial]) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["messages"].append(
            {"role": "user", "content": "stop", "extra": {"interrupt_type": "UserInterruption"}}
        )

    assert edited("cut_off", edit).termination == "cancelled"


def test_the_bare_list_of_v0_is_read_and_says_nothing_of_its_end(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "Finish with `echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT`."},
        {"role": "user", "content": "Please solve this: x"},
        {"role": "assistant", "content": "```bash\nls\n```"},
    ]
    path = write(tmp_path / "x.json", messages)
    trial = read_output(path)
    assert (trial.termination, trial.outcome, trial.harness) == (None, "undetermined", "mini-swe-agent")
    assert trial.task_text == "Please solve this: x"
    assert any("as a whole" in sentence for sentence in trial.missing)
    with pytest.raises(ImportRefused) as caught:
        read_one(path)
    assert caught.value.slug == "no-sign-of-failure"


@pytest.mark.parametrize(
    ("document", "is_minis"),
    [
        ([{"role": "user", "content": "hello"}], False),
        ({"trajectory": [], "history": [], "info": {}, "messages": []}, False),
        ({"info": {}, "tasks": [], "simulations": [], "messages": []}, False),
        ({"info": {}}, False),
        ({"messages": ["x" * HEAD_BYTES]}, False),
        ({"info": {}, "messages": [], "instance_id": "a"}, True),
        ({"messages": ["x" * HEAD_BYTES], "info": {}}, True),
        ({"info": {"submission": "x" * HEAD_BYTES}, "messages": []}, True),
        ({"messages": [], "trajectory_format": "mini-swe-agent-3", "anything": 1}, True),
    ],
    ids=["list", "swe-agent", "tau2", "info", "messages", "alone", "long list", "long patch", "named"],
)
def test_what_is_taken_for_a_trajectory(tmp_path: Path, document: Any, is_minis: bool) -> None:
    path = write(tmp_path / "x.json", document)
    assert MiniSweAgent().handles(Peek(path, "file", read_head(path))) is is_minis


@pytest.mark.parametrize(
    ("template", "message", "expected"),
    [
        ("Solve: {{task}}\n\nRules follow here.", "Solve: a\n\nb\n\nRules follow here.", "a\n\nb"),
        ("{{ task }}", "only the task", "only the task"),
        ("<x>{{task}}</x>\n{% if y %}", "<x>t</x>\nmore", "t"),
        ("{{system}} task: {{task}}. Go.", "Linux task: t. Go.", "t"),
        ("twice {{task}} and {{task}}", "twice a and a", None),
        ("Solve: {{task}} End.", "Solve: a End. b End.", None),
        ("Other {{task}}", "Solve: a", None),
    ],
)
def test_the_task_is_cut_out_only_where_its_place_is_certain(
    edited: Callable[..., Trial], template: str, message: str, expected: str | None
) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["info"]["config"]["agent"]["instance_template"] = template
        document["messages"][1]["content"] = message

    trial = edited("call_failed", edit)
    assert trial.task_text == (expected if expected is not None else message)
    assert any(sentence.startswith("task text") for sentence in trial.missing) == (expected is None)


def test_commands_that_a_replay_would_not_run_are_said(edited: Callable[..., Trial]) -> None:
    def edit(document: dict[str, Any]) -> None:
        for message in document["messages"]:
            message.pop("tool_calls", None)

    assert any("2 replies ran commands" in sentence for sentence in edited("call_failed", edit).missing)


def test_responses_items_are_replies_and_results(edited: Callable[..., Trial]) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["messages"][2:4] = [
            {
                "object": "response",
                "output": [
                    {"type": "message", "content": [{"type": "output_text", "text": "Look."}]},
                    {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "ls"}'},
                ],
                "usage": {"input_tokens": 3},
                "extra": {"actions": [{"command": "ls", "tool_call_id": "c1"}]},
            },
            {
                "type": "function_call_output",
                "call_id": "c1",
                "output": "calc.py",
                "extra": {"raw_output": "calc.py"},
            },
        ]

    trial = edited("call_failed", edit)
    reply, result = trial.steps[2:4]
    assert (reply.step, reply.text, reply.tool_calls[0].id, reply.usage) == (1, "Look.", "c1", {"input_tokens": 3})
    assert (result.step, result.role, result.tool_call_id, result.text) == (1, "tool", "c1", "calc.py")


def test_conditions_hold_limits_and_no_templates() -> None:
    conditions = read_one(GOLD / "limit.traj.json").conditions
    assert conditions["agent"]["step_limit"] == 2
    assert "template" not in json.dumps(conditions)


def test_nothing_recorded_is_filled_in(tmp_path: Path) -> None:
    trial = read_output(write(tmp_path / "x.json", {"info": {}, "messages": [], "trajectory_format": "x"}))
    assert (trial.termination, trial.failing_step, trial.task_text, trial.model, trial.model_requests) == (
        None,
    ) * 5
    assert (trial.conditions, trial.labels, trial.steps) == ({}, (), ())


def test_it_has_one_trial_and_a_name() -> None:
    refs = list(MiniSweAgent().list_trials(GOLD / "call_failed.traj.json"))
    assert [(ref.key, ref.failed, ref.why_not, ref.error_type) for ref in refs] == [
        ("trial", True, None, "TimeoutError")
    ]
