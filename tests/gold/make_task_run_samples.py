"""Makes the samples of Harbor, ATIF, terminal-bench, SWE-agent and aider.

Run from the repository root where the package is installed: ``python -m tests.gold.make_task_run_samples harbor``
(harbor 0.26.0, Python 3.12; it makes `atif` too), ``... terminal-bench`` (0.2.18), ``... aider`` (aider-chat
0.86.2), ``... swe-agent`` (no package: made by us after SWE-agent's `types.py` and `agent/agents.py`). The records
are built from the packages' own classes; no agent runs, so what happened in them is made up.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

GOLD = Path(__file__).parent
TASK = "add() in calc.py subtracts"
CODE = "def add(a, b):\n    return a - b\n"
HEAD = "diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n"
PATCH = f"{HEAD}@@ -2 +2 @@\n-    return a - b\n+    return a + b\n"
JOB_ID = "0b6c1c1e-3a53-4f0c-9c53-6f3f5a1d2e10"


def write(name: str, content: str) -> None:
    path = GOLD / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if content.endswith("\n") else content + "\n")


def make_harbor() -> None:
    """Write a job of five trials: a rejected key, a graded time-out, a pass, an end from outside, no result."""
    result: Any = import_module("harbor.models.trial.result")
    config: Any = import_module("harbor.models.trial.config")
    task_config: Any = import_module("harbor.models.task.id")
    job: Any = import_module("harbor.models.job.result")
    context: Any = import_module("harbor.models.agent.context").AgentContext
    verifier: Any = import_module("harbor.models.verifier.result").VerifierResult

    def configuration(name: str) -> Any:
        return config.TrialConfig(
            task=config.TaskConfig(path=Path("/opt/tasks/fix-add")),
            trial_name=name,
            trials_dir=Path("/opt/jobs/sweep"),
            agent=config.AgentConfig(
                name="terminus-2", model_name="openai/test-model", kwargs={"llm_call_kwargs": {"timeout": 3}}
            ),
            job_id=JOB_ID,
        )

    def at(second: float) -> str:
        return f"2026-05-04T10:{int(second) // 60:02d}:{second % 60:06.3f}Z"

    def trial(name: str, start: int, reward: float | None, exception: tuple[str, str, str] | None) -> Any:
        phases: dict[str, Any] = {
            "environment_setup": {"started_at": at(start + 1), "finished_at": at(start + 2)},
            "agent_setup": {"started_at": at(start + 2), "finished_at": at(start + 3)},
            "agent_execution": {"started_at": at(start + 3), "finished_at": at(start + 20)},
        }
        if reward is not None:
            phases["verifier"] = {"started_at": at(start + 21), "finished_at": at(start + 22)}
        return result.TrialResult(
            id=f"6d1f4f0e-0000-4000-8000-0000000000{start:02d}",
            task_name="fix-add",
            trial_name=name,
            trial_uri=f"file:///opt/jobs/sweep/{name}",
            task_id=task_config.LocalTaskId(path=Path("/opt/tasks/fix-add")),
            task_checksum="5847ab6b7754036ee4de922b86de931a",
            config=configuration(name),
            agent_info=result.AgentInfo(
                name="terminus-2",
                version="2.0.0",
                model_info=result.ModelInfo(name="test-model", provider="openai"),
            ),
            agent_result=context(n_input_tokens=400, n_output_tokens=40, metadata={"n_episodes": 3}),
            verifier_result=verifier(rewards={"reward": reward}) if reward is not None else None,
            exception_info=result.ExceptionInfo(
                exception_type=exception[0],
                exception_message=exception[1],
                exception_traceback=exception[2],
                occurred_at=at(start + 20.5),
            )
            if exception is not None
            else None,
            started_at=at(start),
            finished_at=at(start + 23),
            **phases,
        )

    site = '  File "/opt/site-packages/harbor'
    model_frame = (
        f'{site}/llms/lite_llm.py", line 389, in call\n    await acompletion()\n'
        '  File "/opt/site-packages/litellm/main.py", line 944, in acompletion\n    await pending\n'
    )
    rejected = "litellm.AuthenticationError: AuthenticationError: OpenAIException - Incorrect API key provided."
    timeout = "Agent execution timed out after 17.0 seconds"
    head = "Traceback (most recent call last):\n"
    cause = "\n\nThe above exception was the direct cause of the following exception:\n\n"
    deadline = f'{site}/trial/trial.py", line 789, in _run_agent_phase\n    raise AgentTimeoutError(\n'
    timed_out = (
        f"{head}{model_frame}asyncio.exceptions.CancelledError{cause}{head}{deadline}"
        f"harbor.trial.errors.AgentTimeoutError: {timeout}\n"
    )
    trials = [
        trial(
            "fix-add__aaaaaaa",
            0,
            None,
            (
                "AuthenticationError",
                rejected,
                f"{head}{model_frame}litellm.exceptions.AuthenticationError: {rejected}\n",
            ),
        ),
        trial(
            "fix-add__bbbbbbb",
            30,
            0.0,
            (
                "AgentTimeoutError",
                timeout,
                timed_out,
            ),
        ),
        trial("fix-add__ccccccc", 60, 1.0, None),
        trial("fix-add__ddddddd", 90, None, None),
    ]
    folder = "harbor/job"
    for each in trials:
        write(f"{folder}/{each.trial_name}/result.json", each.model_dump_json(indent=1))
        replies = 3 if each.trial_name.endswith("c") else 2
        write(f"{folder}/{each.trial_name}/agent/trajectory.json", trajectory(replies))
    write(f"{folder}/fix-add__eeeeeee/config.json", configuration("fix-add__eeeeeee").model_dump_json(indent=1))
    stats = job.JobStats.from_trial_results(trials, n_total_trials=5, n_running_trials=1)
    whole = job.JobResult(id=JOB_ID, started_at=at(0), n_total_trials=5, stats=stats)
    write(f"{folder}/result.json", whole.model_dump_json(indent=1))
    write(f"{folder}/config.json", json.dumps({"n_concurrent_trials": 4, "retry": {"max_retries": 0}}, indent=1))
    write(f"{folder}/lock.json", json.dumps({"schema_version": 3, "harbor": {"version": "0.26.0"}}, indent=1))
    make_atif()


def trajectory(replies: int, *, start: int = 1, **more: Any) -> str:
    """Return a trajectory as Harbor's classes write it: a task, then replies with one call and its result each."""
    classes: Any = import_module("harbor.models.trajectories")
    steps = list(more.pop("before", [])) or [classes.Step(step_id=1, source="user", message=TASK)]
    said = ["cat calc.py", "sed -i s/-/+/ calc.py", "python -m pytest", "git diff"]
    for number in range(start, start + replies):
        call_id = f"call_{number}"
        steps.append(
            classes.Step(
                step_id=len(steps) + 1,
                timestamp=f"2026-05-04T10:00:{number:02d}+00:00",
                source="agent",
                message=f"Step {number}.",
                tool_calls=[
                    classes.ToolCall(
                        tool_call_id=call_id, function_name="bash", arguments={"command": said[number - 1]}
                    )
                ],
                observation=classes.Observation(
                    results=[classes.ObservationResult(source_call_id=call_id, content=CODE)]
                ),
                metrics=classes.Metrics(prompt_tokens=200, completion_tokens=20, logprobs=[-0.1]),
            )
        )
    agent = classes.Agent(name="terminus-2", version="2.0.0", model_name="openai/test-model")
    document = classes.Trajectory(
        schema_version="ATIF-v1.8",
        session_id="run-1",
        agent=agent,
        steps=steps,
        **more,
    )
    return json.dumps(document.to_json_dict(), indent=1)


def make_atif() -> None:
    """Write one trajectory alone, and one that a second file continues with copies of what came before."""
    classes: Any = import_module("harbor.models.trajectories")
    write("atif/trajectory.json", trajectory(2, trajectory_id="trajectory-1"))
    write("atif/continued/first.json", trajectory(2, continued_trajectory_ref="first.cont-1.json"))
    before = [
        classes.Step(step_id=1, source="user", message=TASK, is_copied_context=True),
        classes.Step(step_id=2, source="agent", message="What is done so far?", is_copied_context=True),
        classes.Step(step_id=3, source="user", message="add() is fixed.", is_copied_context=True),
        classes.Step(step_id=4, source="agent", message="(a tool run by rule)", llm_call_count=0),
    ]
    write("atif/continued/first.cont-1.json", trajectory(2, start=3, before=before))


def make_terminal_bench() -> None:
    """Write a run of four trials, and beside its results one that ended after they were written."""
    models: Any = import_module("terminal_bench.harness.models")
    mode: Any = import_module("terminal_bench.agents.failure_mode").FailureMode

    def trial(task: str, number: int, resolved: bool | None, failure: Any) -> Any:
        return models.TrialResults(
            id=f"3f1d2c00-0000-4000-8000-00000000000{number}",
            trial_name=f"{task}.{number}-of-5.run-1",
            task_id=task,
            instruction=TASK,
            is_resolved=resolved,
            failure_mode=failure,
            parser_results={"test_add": "passed" if resolved else "failed"} if resolved is not None else None,
            trial_started_at=f"2025-06-01T10:0{number}:00+00:00",
            trial_ended_at=f"2025-06-01T10:0{number}:30+00:00",
        )

    trials = [
        trial("fix-add", 1, True, mode.AGENT_TIMEOUT),
        trial("fix-add", 2, False, mode.AGENT_TIMEOUT),
        trial("fix-add", 3, None, mode.PARSE_ERROR),
        trial("fix-add", 4, False, mode.UNSET),
    ]
    run = models.BenchmarkResults(id="3f1d2c00-0000-4000-8000-000000000000", results=trials)
    write("terminal-bench/results.json", run.model_dump_json(indent=1))
    write("terminal-bench/trial.json", trials[1].model_dump_json(indent=1))
    write("terminal-bench/run/results.json", run.model_dump_json(indent=1))
    late = trial("fix-add", 5, False, mode.UNKNOWN_AGENT_ERROR)
    for each in (trials[0], late):
        write(f"terminal-bench/run/fix-add/{each.trial_name}/results.json", each.model_dump_json(indent=1))
    metadata = models.RunMetadata(
        run_id="run-1",
        uuid="3f1d2c00-0000-4000-8000-00000000000a",
        dataset_name="terminal-bench-core",
        dataset_version="0.1.1",
        output_path="/opt/runs",
        agent_name="terminus",
        no_rebuild=False,
        cleanup=True,
        log_level=20,
        n_concurrent_trials=4,
        n_attempts=5,
        model_name="test/model",
        commit_hash="3f9c2e1",
    )
    write("terminal-bench/run/run_metadata.json", metadata.model_dump_json(indent=1))


def make_aider() -> None:
    """Have aider's own writer of chat histories write three sessions: a good one, a failed one, one that waits."""
    terminal: Any = import_module("aider.io").InputOutput
    edit = "calc.py\n```python\n<<<<<<< SEARCH\n    return a - b\n=======\n    return a + b\n>>>>>>> REPLACE\n```"
    broken = "litellm.APIConnectionError: APIConnectionError: OpenAIException - timed out"
    rejected = "litellm.AuthenticationError: AuthenticationError: OpenAIException - Incorrect API key provided."

    with tempfile.TemporaryDirectory() as scratch:
        history = Path(scratch) / "history.md"

        def begin() -> Any:
            io: Any = terminal(pretty=False, yes=True, fancy_input=False, chat_history_file=history)
            io.tool_output("Aider v0.86.2")
            io.tool_output("Model: openai/test-model with diff edit format")
            io.user_input(TASK)
            return io

        io = begin()
        io.ai_output(f"Fixing add.\n\n> as asked\n\n{edit}")
        io.tool_output("Tokens: 2.5k sent, 31 received.")
        io.tool_output("Applied edit to calc.py")
        io.tool_output("Commit a564649 fix: correct add")
        io = begin()
        io.ai_output("Fixing add.")
        io.tool_output("Tokens: 2.5k sent, 31 received.")
        io.tool_output("Attempt to fix test errors? (Y)es/(N)o [Yes]: y")
        io.ai_output("Now me")
        io.tool_error(broken)
        io.tool_output("Retrying in 0.2 seconds...")
        io.tool_warning(rejected)
        io.tool_error("The API provider is not able to authenticate you. Check your API key.")
        io = begin()
        io.tool_warning(broken)
        io.tool_output("Retrying in 0.2 seconds...")
        text = history.read_text()
    seconds = iter(range(10, 60))
    lines = [
        f"# aider chat started at 2026-05-04 10:00:{next(seconds)}" if line.startswith("# aider chat") else line
        for line in text.splitlines()
    ]
    write("aider/history.md", "\n".join(lines))


def make_swe_agent() -> None:
    """Write three trajectories by hand: an autosubmission after a requery, a dead API, an end from outside."""
    system = {"role": "system", "content": "You can run shell commands.", "agent": "main"}
    asked = {"role": "user", "content": f"ISSUE:\n{TASK}", "agent": "main"}
    demonstration = [
        {"role": "assistant", "content": "An example.", "agent": "main", "is_demo": True, "action": "ls"},
        {"role": "user", "content": "calc.py", "agent": "main", "is_demo": True},
    ]

    def step(response: str, action: str, observation: str, **more: Any) -> dict[str, Any]:
        return {
            "action": action,
            "observation": observation,
            "response": response,
            "thought": response,
            "execution_time": 0.2,
            "state": {"working_dir": "/repo"},
            "query": [system, asked],
            "extra_info": {},
            **more,
        }

    def said(response: str, action: str, number: int) -> dict[str, Any]:
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "bash", "arguments": f'{{"command": "{action}"}}'},
        }
        return {"role": "assistant", "content": response, "agent": "main", "action": action, "tool_calls": [call]}

    def result(observation: str, number: int) -> dict[str, Any]:
        return {
            "role": "tool",
            "content": f"OBSERVATION:\n{observation}",
            "agent": "main",
            "tool_call_ids": [f"call_{number}"],
        }

    look, fix = step("Look first.", "cat calc.py", CODE), step("Fix it.", "sed -i s/-/+/ calc.py", "")
    spoken = [
        said("Look first.", "cat calc.py", 1),
        result(CODE, 1),
        said("Fix it.", "sed -i s/-/+/ calc.py", 2),
        result("", 2),
    ]
    complaint = {"role": "user", "content": "Your output could not be read.", "agent": "main"}
    requeried = step("I think that is all", "", "")
    after = dict(fix, query=[system, asked, {"role": "assistant", "content": "I think that is all"}, complaint])

    def last(words: str, observation: str) -> tuple[dict[str, Any], dict[str, Any]]:
        return (
            step(words, "", observation, execution_time=0.0, state={}, query=[{}]),
            {"role": "assistant", "content": words, "agent": "main", "action": ""},
        )

    def document(trajectory: list[Any], history: list[Any], **info: Any) -> str:
        stats = {"instance_cost": 3.1, "tokens_sent": 900, "tokens_received": 60, "api_calls": 4}
        replay = {
            "agent": {"model": {"name": "test/model", "per_instance_cost_limit": 3.0, "api_key": None}},
            "problem_statement": {"type": "text", "text": TASK, "id": "calc__calc-1"},
        }
        whole = {
            "trajectory": trajectory,
            "history": [system, *demonstration, asked, *history],
            "info": {"swe_agent_version": "1.1.0", "swe_agent_hash": "3f9c2e1", "model_stats": stats, **info},
            "replay_config": json.dumps(replay),
            "environment": "main",
        }
        return json.dumps(whole, indent=1)

    step_of, message_of = last("Exit due to cost limit", "Exited (autosubmitted)")
    write(
        "swe-agent/autosubmitted.traj",
        document(
            [look, requeried, after, step_of],
            [*spoken, message_of],
            exit_status="submitted (exit_cost)",
            submission=PATCH,
        ),
    )
    words = "Exit due to retry error: RetryError[<Future at 0x7f0 state=finished raised APIConnectionError>]"
    step_of, message_of = last(words, "")
    dirty = dict(fix, state={"working_dir": "/repo", "diff": PATCH})
    write(
        "swe-agent/dead_api.traj",
        document([look, dirty, step_of], [*spoken, message_of], exit_status="exit_api", submission=None),
    )
    write("swe-agent/cut_off.traj", document([look, fix], spoken, exit_status=None, submission=None))
    write(
        "swe-agent/submitted.traj",
        document(
            [look, step("Done.", "submit", PATCH)],
            [*spoken[:2], said("Done.", "submit", 2)],
            exit_status="submitted",
            submission=PATCH,
        ),
    )


MAKERS: Mapping[str, Callable[[], None]] = {
    "harbor": make_harbor,
    "terminal-bench": make_terminal_bench,
    "aider": make_aider,
    "swe-agent": make_swe_agent,
}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        MAKERS[name]()
