"""The record of an attempt that started and left none: a crashed worker, an exception of ours, a foreign timer."""

import secrets
from datetime import UTC, datetime
from typing import Any

from pytest_regcase.case_files import LoadedCase, LoadedSimulation
from pytest_regcase.config import Project
from pytest_regcase.records.attempt import AttemptPlan, AttemptRecord, Digests
from pytest_regcase.records.canonical import digest_of
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.records.words import InconclusiveReason


def attempt_digests(
    project: Project,
    loaded: LoadedCase,
    simulation: LoadedSimulation | None,
    plan: AttemptPlan,
    snapshot: SessionSnapshot,
) -> Digests:
    """Return what a count of this attempt belongs to."""
    upstream = project.config.upstream
    config = project.config.agents.get(plan.key.agent)
    model = config.model if config is not None else None
    return Digests(
        case=loaded.digest_for(plan.hypothesis, plan.kind),
        simulation=simulation.digest if simulation is not None else None,
        agent=snapshot.agent_digests.get(plan.key.agent, "unknown"),
        model=digest_of({"model": model, "base_url": upstream.base_url})
        if plan.kind == "live" and upstream is not None
        else None,
    )


def unfinished_record(
    project: Project,
    loaded: LoadedCase,
    simulation: LoadedSimulation | None,
    plan: AttemptPlan,
    snapshot: SessionSnapshot,
    *,
    try_number: int,
    why: InconclusiveReason,
    text: str,
) -> AttemptRecord:
    """Return an inconclusive record: the attempt happened and proves nothing."""
    return AttemptRecord.model_validate(
        {
            **identity(project, loaded, simulation, plan, snapshot, try_number=try_number),
            "started_at": datetime.now(UTC),
            "verdict": "inconclusive",
            "reason": why,
            "says": text,
        }
    )


def identity(
    project: Project,
    loaded: LoadedCase,
    simulation: LoadedSimulation | None,
    plan: AttemptPlan,
    snapshot: SessionSnapshot,
    *,
    try_number: int,
) -> dict[str, Any]:
    """Return the fields of an attempt record that say which attempt it is; the id is new with every call."""
    key = plan.key
    return {
        "attempt_id": (
            f"{snapshot.session_id}.{key.case_id}.{key.scenario}.{key.run}.{try_number}.{secrets.token_hex(3)}"
        ),
        "session_id": snapshot.session_id,
        "case_id": key.case_id,
        "agent": key.agent,
        "scenario": key.scenario,
        "run": key.run,
        "try_number": try_number,
        "planned_total": plan.planned_total,
        "digests": attempt_digests(project, loaded, simulation, plan, snapshot),
    }
