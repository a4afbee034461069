"""The conftest.py of the plugin's test projects: attempts do what script.json says, and nothing is started."""

import json
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_regcase.case_files import LoadedCase, LoadedSimulation
from pytest_regcase.config import Project
from pytest_regcase.records.attempt import AttemptPlan, AttemptRecord, Draw, Finding
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.session import attempt
from pytest_regcase.session.attempts.function_attempt import FunctionAttempt, FunctionEnd
from pytest_regcase.session.attempts.unfinished import attempt_digests

STALL_SECONDS = 1.5
GOOD = {"control": "finished", "simulation": "recovered", "live": "clean"}


def scripted_attempt(
    project: Project,
    loaded: LoadedCase,
    simulation: LoadedSimulation | None,
    plan: AttemptPlan,
    snapshot: SessionSnapshot,
    *,
    try_number: int,
) -> AttemptRecord:
    function = plan.key.agent.rpartition("::")[2] if "::" in plan.key.agent else None
    name = f"{function or plan.key.case_id}::{plan.key.scenario}"
    called = _note_call(project.root, name, plan.key.run, try_number)
    script = json.loads((project.root / "script.json").read_text())
    verdicts = script.get(name, [])
    index = plan.key.run - 1 if plan.kind == "live" else called
    verdict = verdicts[index] if index < len(verdicts) else GOOD[plan.kind]
    if verdict == "stall":
        time.sleep(STALL_SECONDS)
        verdict = GOOD[plan.kind]
    _do(verdict)
    return AttemptRecord.model_validate(
        {
            "attempt_id": f"{snapshot.session_id}.{name}.{plan.key.run}.{try_number}.{called}",
            "session_id": snapshot.session_id,
            "case_id": plan.key.case_id,
            "agent": plan.key.agent,
            "scenario": plan.key.scenario,
            "run": plan.key.run,
            "try_number": try_number,
            "planned_total": plan.planned_total,
            "digests": attempt_digests(project, loaded, simulation, plan, snapshot),
            "started_at": datetime.now(UTC),
            "duration_seconds": script.get("seconds", 0.0),
            "findings": _findings(verdict) if plan.kind == "simulation" else (),
            "verdict": verdict,
            "says": "the fault was never delivered" if verdict == "inconclusive" else None,
            "reason": "not-delivered" if verdict == "inconclusive" else None,
            "draw": _draw(f"{name}-{plan.key.run}") if plan.kind == "live" else None,
            "folder": "a/folder",
        }
    )


def scripted_finish(function_attempt: FunctionAttempt, ended: FunctionEnd) -> AttemptRecord:
    """Judge a function that returned as the script says; what another one shows is not scripted."""
    if ended.how != "returned":
        return _finish(function_attempt, ended)
    begun = function_attempt._begun
    return scripted_attempt(
        begun.project, begun.loaded, begun.simulation, begun.plan, begun.snapshot, try_number=begun.try_number
    )


def _findings(verdict: str) -> tuple[Finding, ...]:
    if verdict == "inconclusive":
        return ()
    retries = (
        Finding(expectation="max_retries", status="broken", says="5 requests after the first, 3 allowed")
        if verdict == "not-recovered"
        else Finding(expectation="max_retries", status="kept", says="2 requests after the first")
    )
    return (Finding(expectation="log_failure", status="kept", says="the failure stands in stderr"), retries)


def _draw(name: str) -> Draw:
    return Draw(fresh=True, response_digest=name, upstream_ids=(name,))


def _do(verdict: str) -> None:
    """Do what is no verdict."""
    if verdict == "raise":
        raise RuntimeError("a bug of ours")
    if verdict == "fail":
        pytest.fail("Timeout >1.0s")
    if verdict == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if verdict == "exit":
        os._exit(0)
    if verdict == "interrupt":
        raise KeyboardInterrupt
    if verdict == "terminate-pytest":
        # A worker is a child of its controller.
        os.kill(os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid(), signal.SIGTERM)
        time.sleep(30)


def _note_call(root: Path, name: str, run: int, try_number: int) -> int:
    """Note the call and return how many there were of this scenario before."""
    calls = root / "calls.jsonl"
    before = 0
    if calls.exists():
        # Of the last line another worker may have written a part yet, where it crosses a page of the file.
        lines = [each for each in calls.read_text().splitlines() if each.endswith("}")]
        before = sum(json.loads(line)["name"] == name for line in lines)
    line = {"name": name, "run": run, "try": try_number, "worker": os.environ.get("PYTEST_XDIST_WORKER")}
    with calls.open("a") as file:
        file.write(json.dumps(line) + "\n")
    return before


attempt.run_attempt = scripted_attempt
_finish, FunctionAttempt.finish = FunctionAttempt.finish, scripted_finish  # type: ignore[method-assign, assignment]
